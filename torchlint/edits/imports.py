"""Imports that a fix needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.errors import RenderError
from torchlint.edits.locate import Locator
from torchlint.edits.operations import AddImport
from torchlint.edits.text import indentation, line_start
from torchlint.edits.verify import parse_python


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
    beside = _first_beside(locator, wanted)
    if any(_satisfies(found, alias, wanted) for found in _imports_of(beside) for alias in _aliases(found)):
        return []
    if beside is not None and not any(beside is top for top in _at_top(locator.module)):
        return [_beside(locator, beside, line)]
    offset, before, after = _place(locator)
    return [TextEdit(Range(offset, offset), before + line + newline + after)]


def _first_beside(locator: Locator, wanted: AddImport) -> cst.CSTNode | None:
    """Return the line of the first import from the package in the block of the import that shows where to go."""
    line = locator.parent(wanted.beside) if wanted.beside is not None else None
    block = locator.parent(line) if line is not None else None
    package = wanted.module.partition(".")[0]
    for other in block.body if isinstance(block, (cst.Module, cst.IndentedBlock)) else ():
        if any(package in _packages(statement) for statement in _imports_of(other)):
            return other
    return line


def _packages(statement: cst.Import | cst.ImportFrom) -> set[str]:
    """Return the packages that an import imports from."""
    if isinstance(statement, cst.Import):
        return {alias.evaluated_name.partition(".")[0] for alias in statement.names}
    if statement.relative or statement.module is None:
        return set()
    return {(cst.helpers.get_full_name_for_node(statement.module) or "").partition(".")[0]}


def _at_top(module: cst.Module) -> list[cst.CSTNode]:
    """Return the lines behind which the imports at the top of a file end."""
    return [*module.body[:1], *_imports_at_top(module)]


def _beside(locator: Locator, place: cst.CSTNode, line: str) -> TextEdit:
    """Return the edit that writes an import above another one: behind what has to run first, and as often."""
    if not isinstance(place, cst.SimpleStatementLine):
        raise RenderError("there is no line for an import")
    start = locator.syntactic(place).start
    offset = line_start(locator.text, start)
    content = indentation(locator.text, start) + line + locator.module.default_newline
    return TextEdit(Range(offset, offset), content)


def _module_imports(module: cst.Module) -> Iterator[cst.Import | cst.ImportFrom]:
    for line in module.body:
        yield from _imports_of(line)


def _imports_of(line: cst.CSTNode | None) -> Iterator[cst.Import | cst.ImportFrom]:
    """Yield the imports on a line."""
    for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
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
    """Return whether something in the file gives the identifier another meaning."""
    statements = _module_imports(locator.module)
    if any(_bound_name(alias) == name for statement in statements for alias in _aliases(statement)):
        return True
    bound = _bound_names(locator.text)
    return (
        name in bound if bound is not None else re.search(rf"(?<![\w.]){re.escape(name)}\b", locator.text) is not None
    )


@lru_cache(maxsize=2)
def _bound_names(text: str) -> frozenset[str] | None:
    """Return the names that a text binds other than by ``import name``, None if Python does not know its syntax."""
    tree = parse_python(text)
    return frozenset(name for node in ast.walk(tree) for name in _names_bound_by(node)) if tree is not None else None


def _names_bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        is_plain = isinstance(node, ast.Import)
        yield from (alias.asname or alias.name for alias in node.names if alias.asname or not is_plain)
    elif isinstance(node, ast.arg):
        yield node.arg
    elif not isinstance(node, ast.alias):
        names = (getattr(node, "name", None), getattr(node, "rest", None))
        yield from (name for name in names if isinstance(name, str))


def _place(locator: Locator) -> tuple[int, str, str]:
    """Return where an import goes, and what separates it from what stands before and after."""
    module = locator.module
    newline = module.default_newline
    imports = _imports_at_top(module)
    has_block = bool(imports) and not _is_future(imports[-1].body[0])
    anchors = [*(line for line in module.body[:1] if _is_docstring(line)), *imports]
    if not anchors:
        return _header_end(locator), "", newline if module.body else ""
    end = locator.full(anchors[-1]).end
    missing = "" if locator.text[:end].endswith(("\n", "\r")) else newline
    return end, missing if has_block else missing + newline, ""


def _imports_at_top(module: cst.Module) -> list[cst.SimpleStatementLine]:
    """Return the lines of imports with which a file begins, behind its docstring."""
    lines = module.body[1:] if module.body and _is_docstring(module.body[0]) else module.body
    found: list[cst.SimpleStatementLine] = []
    for line in lines:
        if not isinstance(line, cst.SimpleStatementLine):
            break
        if not all(isinstance(statement, (cst.Import, cst.ImportFrom)) for statement in line.body):
            break
        found.append(line)
    return found


def _is_docstring(line: cst.CSTNode) -> bool:
    """Return whether a line begins with a string."""
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(statement, cst.Expr) and isinstance(statement.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_future(statement: cst.CSTNode) -> bool:
    module = statement.module if isinstance(statement, cst.ImportFrom) else None
    return isinstance(module, cst.Name) and module.value == "__future__"


def _header_end(locator: Locator) -> int:
    """Return the offset of the first statement's line: comments at the top stay at the top."""
    if not locator.module.body:
        return len(locator.text)
    first = locator.module.body[0]
    if isinstance(first, (cst.FunctionDef, cst.ClassDef)) and first.decorators:
        return locator.syntactic(first.decorators[0], first).start
    return locator.syntactic(first).start
