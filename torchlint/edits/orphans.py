"""Imports that a fix leaves without use, which are removed with it."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.idle import PRAGMA
from torchlint.edits.importers import taken_by_others
from torchlint.edits.text import Rows, apply_edits, is_word, line_end, line_start, next_line, without_gap_at_top
from torchlint.edits.verify import Original, parse_python, place_of, uses_of_names

HARMLESS = sys.stdlib_module_names | {
    "PIL",
    "accelerate",
    "cv2",
    "functorch",
    "kornia",
    "lightning",
    "matplotlib",
    "monai",
    "numpy",
    "pandas",
    "pytorch_lightning",
    "scipy",
    "sklearn",
    "timm",
    "torch",
    "torch_geometric",
    "torchaudio",
    "torchvision",
    "tqdm",
    "transformers",
}
"""Modules that nobody imports for what importing them does."""

_OWNERS = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)
_SWALLOWING = frozenset(("suppress", "raises", "assertRaises", "assertRaisesRegex"))
"""Contexts that may go on without what was to be imported in them."""

_MOST_LINES = 50
_CONTINUATION = re.compile(r"(?:[ \t]*\\(?:\r\n|\r|\n))+")
_SEMICOLON_BEFORE = re.compile(r"[ \t]*;[ \t]*$")
_SEMICOLON_AFTER = re.compile(r"[ \t]*;[ \t]*(?=[^\s#\\])")
_TYPE_COMMENT = re.compile(r"#\s*type:(.*)")
_KEPT = re.compile(r"#.*\bF401\b|#\s*noqa\s*$", re.MULTILINE)
"""A comment that tells linters to let an import without use be."""

_IMPORT = re.compile(r"^[ \t]*(?:from\b[^\n]*?\s)?import\b\s*(?:\([^)]*\)|[^\n]*(?:\\\r?\n[^\n]*)*)", re.MULTILINE)


class Orphan(NamedTuple):
    """The removal of an import without use, and what it risks (empty: nothing)."""

    edit: TextEdit
    risk: str = ""


def orphaned_imports(original: Original, path: str, edits: Sequence[TextEdit]) -> list[Orphan]:
    """Return the edits that remove the imports of which these edits remove the last use."""
    removed = _touched_words(original.text, edits)
    candidates = [name for name in removed if name in _imported_words(original.text)]
    candidates = [name for name in candidates if not _is_plainly_used(original.text, name, edits)]
    names = {name for name in candidates if 0 < original.uses[name] <= removed[name]}
    after = parse_python(apply_edits(original.text, edits)) if names else None
    if after is None:
        return []
    left = uses_of_names(after)
    return removals(original, path, {name for name in names if not left[name]}, edits)


def removals(
    original: Original, path: str, names: Set[str], edits: Sequence[TextEdit] = (), *, of_module_only: bool = False
) -> list[Orphan]:
    """Return the edits that remove imports of these names, those in functions too unless it is the module's only.

    An import stays in ``__init__.py``, if it stands where other names could be bound instead (in a ``try`` with
    handlers, under ``suppress``, or in an ``if`` where something else binds the name too), if ``edits`` change it
    already, if it is written for others (``import a as a``, ``# noqa: F401``) or taken by them, for a comment that says
    a type, and in a file that looks names up.
    """
    if original.tree is None or original.looks_up_names or path.replace("\\", "/").rpartition("/")[2] == "__init__.py":
        return []
    found: list[Orphan] = []
    rows = Rows(original.text)
    names = names - _words_of_type_comments(original.text)
    names = names - taken_by_others(path, names)
    for statement in original.tree.body if of_module_only else _imports(original.tree):
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        place = place_of(rows, statement)
        unused = [
            alias
            for alias in statement.names
            if _local_name(alias) in names
            and alias.asname != alias.name
            and not any(_is_kept(original.text, around) for around in (place, place_of(rows, alias)))
        ]
        if unused and not any(e.range.start < place.end and e.range.end > place.start for e in edits):
            gone = _removal(original.text, rows, statement, unused)
            found += [each._replace(edit=_without_gap_at_top(original.text, each.edit, edits)) for each in gone]
    return found


def _without_gap_at_top(text: str, removal: TextEdit, edits: Sequence[TextEdit]) -> TextEdit:
    """Return the removal with the blank lines below, where nothing else would stand above them."""
    place = removal.range
    end = without_gap_at_top(text, place).end
    is_free = not any(edit.range.start < end and edit.range.end >= place.end for edit in edits)
    return TextEdit(Range(place.start, end), "") if is_free else removal


def _is_kept(text: str, place: Range) -> bool:
    """Return whether a comment on its first or last line tells linters to let what stands at a place be."""
    ends = {line_end(text, place.start), line_end(text, place.end)}
    return any(_KEPT.search(text, line_start(text, end), end) for end in ends)


def _touched_words(text: str, edits: Sequence[TextEdit]) -> Counter[str]:
    """Return how often each word stands in and around what edits remove."""
    words: Counter[str] = Counter()
    for edit in edits:
        start, end = edit.range.start, edit.range.end
        while start and is_word(text[start - 1]):
            start -= 1
        while end < len(text) and is_word(text[end]):
            end += 1
        words.update(re.findall(r"\w+", text[start:end]))
    return words


@lru_cache(maxsize=4)
def _words_of_type_comments(text: str) -> frozenset[str]:
    return frozenset(word for found in _TYPE_COMMENT.findall(text) for word in re.findall(r"\w+", found))


@lru_cache(maxsize=4)
def _imported_words(text: str) -> frozenset[str]:
    """Return the words of all lines that may be imports."""
    return frozenset(word for found in _IMPORT.finditer(text) for word in re.findall(r"\w+", found[0]))


def _is_plainly_used(text: str, name: str, edits: Sequence[TextEdit]) -> bool:
    """Return whether a line that no edit touches uses a name, as far as a look at the line can tell.

    What this takes for a use by mistake is cleared when all fixes are done.
    """
    return any(
        not any(edit.range.start <= line.end and line.start <= edit.range.end for edit in edits)
        for line in _lines_with_use(text, name)
    )


@lru_cache(maxsize=64)
def _lines_with_use(text: str, name: str) -> tuple[Range, ...]:
    """Return the first lines that use a name, as many as edits of one fix are likely to leave one of."""
    return tuple(islice(_plain_uses(text, name), _MOST_LINES))


def _plain_uses(text: str, name: str) -> Iterator[Range]:
    for found in re.finditer(rf"(?<![\w.]){re.escape(name)}\b", text):
        start = line_start(text, found.start())
        line = text[start : found.start()]
        if "=" in line and not any(mark in line for mark in "#'\""):
            yield Range(start, line_end(text, found.start()))


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of the module, functions, loops and contexts, other than the only statement of a body.

    Those under an ``if`` only where nothing else in the file binds the same name.
    """
    for owner in ast.walk(tree):
        if isinstance(owner, _OWNERS):
            for statement, is_chosen in _imports_of_block(owner.body, isinstance(owner, ast.Module)):
                if not is_chosen or all(_is_bound_once(_local_name(alias), tree) for alias in statement.names):
                    yield statement


def _imports_of_block(
    body: list[ast.stmt], is_module: bool = False, is_chosen: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the imports of a block and those below, with whether they stand under an ``if``."""
    imports = [child for child in body if isinstance(child, (ast.Import, ast.ImportFrom))]
    if is_module or len(imports) < len(body):
        yield from ((statement, is_chosen) for statement in imports)
    for child in body:
        if isinstance(child, _BLOCKS) and not _swallows(child):
            yield from _imports_of_block(child.body, is_chosen=is_chosen)
        elif isinstance(child, ast.If):
            yield from _imports_of_block(child.body, is_chosen=True)
            yield from _imports_of_block(child.orelse, is_chosen=True)
        elif isinstance(child, ast.Try) and not child.handlers:
            yield from _imports_of_block(child.body, is_chosen=is_chosen)
            yield from _imports_of_block(child.finalbody, is_chosen=is_chosen)


def _is_bound_once(name: str, tree: ast.Module) -> bool:
    bound = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            bound += _local_name(node) == name
        elif isinstance(node, ast.Name):
            bound += node.id == name and isinstance(node.ctx, ast.Store)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound += node.name == name
    return bound == 1


def _swallows(block: ast.stmt) -> bool:
    """Whether a block goes on where an import in it fails: ``with suppress(ImportError):``."""
    contexts = [item.context_expr for item in block.items] if isinstance(block, (ast.With, ast.AsyncWith)) else []
    called = [context.func for context in contexts if isinstance(context, ast.Call)]
    return any(getattr(each, "attr", getattr(each, "id", "")) in _SWALLOWING for each in called)


def _local_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _risk(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    is_absolute = isinstance(statement, ast.Import) or not statement.level
    module = alias.name if isinstance(statement, ast.Import) else statement.module or ""
    if is_absolute and module.partition(".")[0] in HARMLESS:
        return ""
    return (
        f"The import of `{_local_name(alias)}`, which nothing uses any more, goes too, and with it what importing does."
    )


def _removal(
    text: str, rows: Rows, statement: ast.Import | ast.ImportFrom, unused: Sequence[ast.alias]
) -> list[Orphan]:
    if len(unused) < len(statement.names):
        # One at a time: the next pass finds the others.
        return [Orphan(_without_alias(rows, statement.names, unused[0]), _risk(statement, unused[0]))]
    place = place_of(rows, statement)
    gone = _with_separator(text, place)
    if gone is not None:
        return [Orphan(TextEdit(gone, ""), _risk(statement, unused[0]))]
    gone = _with_comment(text, place)
    if gone is not None:
        return [Orphan(TextEdit(gone, ""), _risk(statement, unused[0]) or "The comment behind an import goes with it.")]
    return []


def _with_separator(text: str, place: Range) -> Range | None:
    """Return what goes with a statement: its lines, or the semicolon that parts it from another; None if unclear."""
    start, end = line_start(text, place.start), line_end(text, place.end)
    before, after = text[start : place.start], text[place.end : end]
    last = _CONTINUATION.match(text, place.end)
    blank = last.end() if last else place.end
    if not before.strip() and text[blank : line_end(text, blank)].strip() in ("", ";"):
        return Range(start, next_line(text, blank))
    if following := _SEMICOLON_AFTER.match(after):
        return Range(place.start, place.end + following.end())
    preceding = _SEMICOLON_BEFORE.search(before)
    return Range(start + preceding.start(), place.end) if preceding else None


def _with_comment(text: str, place: Range) -> Range | None:
    """Return the lines of a statement with a mere comment behind it, None if that tells a tool to keep it."""
    start, end = line_start(text, place.start), line_end(text, place.end)
    before, after = text[start : place.start], text[place.end : end].strip()
    if before.strip() or not after.startswith("#") or PRAGMA.match(after):
        return None
    return Range(start, next_line(text, end))


def _without_alias(rows: Rows, aliases: Sequence[ast.alias], alias: ast.alias) -> TextEdit:
    index = aliases.index(alias)
    places = [place_of(rows, other) for other in aliases]
    if index + 1 < len(places):
        return TextEdit(Range(places[index].start, places[index + 1].start), "")
    return TextEdit(Range(places[index - 1].end, places[index].end), "")
