"""Imports that a fix needs, and imports that it leaves without use."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.errors import RenderError
from torchlint.edits.locate import Locator
from torchlint.edits.operations import AddImport
from torchlint.edits.text import apply_edits, is_word, next_line

_HARMLESS = frozenset({"torch", "torchvision", "torchaudio", "numpy"}) | sys.stdlib_module_names
"""Modules that nobody imports for what importing them does."""


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


def orphaned_imports(locator: Locator, edits: tuple[TextEdit, ...], path: str) -> list[TextEdit]:
    """Return the edits that remove imports of which these edits remove the last use.

    An import stays if its name occurs anywhere else, be it in a comment or a string, in ``__init__.py``, and if its
    module may be imported for its side effects.
    """
    if path.replace("\\", "/").rpartition("/")[2] == "__init__.py":
        return []
    removed = " ".join(locator.text[edit.range.start : edit.range.end] for edit in edits)
    # A trimmed edit can cut a word in two: look at the whole words around each edit.
    words = set(re.findall(r"\w+", removed)) | {_word_at(locator.text, e.range.start) for e in edits}
    found: list[TextEdit] = []
    for statement in _module_imports(locator.module):
        for alias in _aliases(statement):
            name = _bound_name(alias)
            if name in words and _is_harmless(statement, alias):
                found += _removal(locator, statement, alias, name, edits)
    return found


def _word_at(text: str, offset: int) -> str:
    start = end = offset
    while start and is_word(text[start - 1]):
        start -= 1
    while end < len(text) and is_word(text[end]):
        end += 1
    return text[start:end]


def _is_harmless(statement: cst.Import | cst.ImportFrom, alias: cst.ImportAlias) -> bool:
    if isinstance(statement, cst.Import):
        return alias.evaluated_name.partition(".")[0] in _HARMLESS
    if statement.relative or statement.module is None:
        return False
    module = cst.helpers.get_full_name_for_node(statement.module) or ""
    return module.partition(".")[0] in _HARMLESS


def _removal(
    locator: Locator,
    statement: cst.Import | cst.ImportFrom,
    alias: cst.ImportAlias,
    name: str,
    edits: tuple[TextEdit, ...],
) -> list[TextEdit]:
    place = locator.syntactic(statement)
    if any(edit.range.start < place.end and edit.range.end > place.start for edit in edits):
        return []
    masked = TextEdit(place, "")
    rest = apply_edits(locator.text, tuple(sorted((*edits, masked), key=lambda edit: edit.range)))
    if re.search(rf"\b{re.escape(name)}\b", rest):
        return []
    aliases = _aliases(statement)
    if len(aliases) > 1:
        return [_without_alias(locator, statement, aliases, alias)]
    line = locator.parent(statement)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or line.trailing_whitespace.comment:
        return []
    return [TextEdit(Range(place.start, next_line(locator.text, place.end)), "")]


def _without_alias(
    locator: Locator, statement: cst.CSTNode, aliases: tuple[cst.ImportAlias, ...], alias: cst.ImportAlias
) -> TextEdit:
    index = next(i for i, other in enumerate(aliases) if other is alias)
    places = [locator.syntactic(other, statement) for other in aliases]
    if index + 1 < len(places):
        return TextEdit(Range(places[index].start, places[index + 1].start), "")
    return TextEdit(Range(places[index - 1].end, places[index].end), "")
