"""Imports that a fix needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.errors import RenderError
from torchlint.edits.locate import Locator
from torchlint.edits.operations import AddImport


def add_import(locator: Locator, wanted: AddImport) -> list[TextEdit]:
    """Return the edit that brings an import into force, none if one is.

    Raises:
        RenderError: the name means something else in the file.
    """
    bound = wanted.name or wanted.module.partition(".")[0]
    for statement in _module_imports(locator.module):
        if any(_satisfies(statement, alias, wanted) for alias in _aliases(statement)):
            return []
    if _is_bound(locator, bound):
        raise RenderError(f"the name {bound!r} is taken in this file")
    newline = locator.module.default_newline
    line = f"from {wanted.module} import {wanted.name}" if wanted.name else f"import {wanted.module}"
    offset, before, after = _place(locator)
    return [TextEdit(Range(offset, offset), before + line + newline + after)]


def _module_imports(module: cst.Module) -> Iterator[cst.Import | cst.ImportFrom]:
    for line in module.body:
        if isinstance(line, cst.SimpleStatementLine):
            for statement in line.body:
                if isinstance(statement, (cst.Import, cst.ImportFrom)):
                    yield statement


def _aliases(statement: cst.Import | cst.ImportFrom) -> tuple[cst.ImportAlias, ...]:
    return () if isinstance(statement.names, cst.ImportStar) else tuple(statement.names)


def _satisfies(statement: cst.Import | cst.ImportFrom, alias: cst.ImportAlias, wanted: AddImport) -> bool:
    if isinstance(statement, cst.ImportFrom):
        if not wanted.name or statement.relative or statement.module is None:
            return False
        is_module = cst.helpers.get_full_name_for_node(statement.module) == wanted.module
        return is_module and _bound_name(alias) == wanted.name == alias.evaluated_name
    if wanted.name or alias.asname:
        return False
    return alias.evaluated_name == wanted.module or alias.evaluated_name.startswith(wanted.module + ".")


def _bound_name(alias: cst.ImportAlias) -> str:
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _is_bound(locator: Locator, name: str) -> bool:
    """Return whether an identifier stands anywhere in the text other than after a dot or in an import's path."""
    pattern = re.compile(
        rf"(?<![\w.]){re.escape(name)}\s*(?:=(?!=)|,|\)|:|\bin\b)|\b(?:def|class|as|global|nonlocal)\s+{re.escape(name)}\b"
    )
    return any(
        _bound_name(alias) == name for statement in _module_imports(locator.module) for alias in _aliases(statement)
    ) or bool(pattern.search(locator.text))


def _place(locator: Locator) -> tuple[int, str, str]:
    """Return where an import goes, and what separates it from what stands before and after."""
    module = locator.module
    newline = module.default_newline
    anchor: cst.CSTNode | None = None
    has_block = False
    for index, line in enumerate(module.body):
        statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        is_import = isinstance(statement, (cst.Import, cst.ImportFrom))
        if is_import or (index == 0 and _is_docstring(statement)):
            anchor, has_block = line, is_import
            is_future = isinstance(statement, cst.ImportFrom) and _is_future(statement)
            has_block = is_import and not is_future
        else:
            break
    if anchor is None:
        return _header_end(locator), "", newline if module.body else ""
    end = locator.full(anchor).end
    missing = "" if locator.text[:end].endswith(("\n", "\r")) else newline
    return end, missing if has_block else missing + newline, ""


def _is_docstring(statement: cst.CSTNode | None) -> bool:
    return isinstance(statement, cst.Expr) and isinstance(statement.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_future(statement: cst.ImportFrom) -> bool:
    return isinstance(statement.module, cst.Name) and statement.module.value == "__future__"


def _header_end(locator: Locator) -> int:
    """Return the offset of the first statement's line: comments at the top stay at the top."""
    if not locator.module.body:
        return len(locator.text)
    first = locator.module.body[0]
    if isinstance(first, (cst.FunctionDef, cst.ClassDef)) and first.decorators:
        return locator.syntactic(first.decorators[0], first).start
    return locator.syntactic(first).start
