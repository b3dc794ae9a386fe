"""What must hold of a text after it was edited: it parses, means the same outside the edits, and binds its names."""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.text import Shift, apply_edits

_MODULE_NAMES = frozenset({"__file__", "__name__", "__doc__", "__path__", "__spec__", "__loader__", "__package__"}) | {
    "__builtins__",
    "__annotations__",
    "__debug__",
    "__cached__",
    "WindowsError",
}
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


class Original:
    """A text before it is edited, with what its edited versions are compared with."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tree(self) -> ast.Module | None:
        """The tree of Python's own parser, None if that does not know the syntax."""
        return _parse(self.text)

    def parses_with(self, edits: Sequence[TextEdit]) -> bool:
        """Return whether the edited text parses, by the parser that knows the original."""
        text = apply_edits(self.text, edits)
        if self.tree is not None:
            return _parse(text) is not None
        try:
            cst.parse_module(text)
        except cst.ParserSyntaxError:
            return False
        return True

    @cached_property
    def _compiles(self) -> bool:
        return self.tree is not None and _compile_error(self.text) is None

    @cached_property
    def _undefined(self) -> frozenset[str]:
        return undefined_names(self.text)

    def broken_by(self, edits: Sequence[TextEdit]) -> str:
        """Return why the edited text is no longer the program it was, empty if it is sound."""
        if not self.parses_with(edits):
            return "the result does not parse"
        if self.tree is None:
            return ""
        return self._changed(edits) or self._uncompilable(edits)

    def _changed(self, edits: Sequence[TextEdit]) -> str:
        text = apply_edits(self.text, edits)
        after = _parse(text)
        if self.tree is None or after is None:
            return "the result does not parse"
        shift = Shift(edits)
        old = _statements(self.tree, self.text, [edit.range for edit in edits])
        new = _statements(after, text, [shift.content(index) for index in range(len(edits))])
        moved = Counter((shift.offset(start), dump) for start, dump in old)
        return "" if moved == Counter(new) else "code outside the edits means something else"

    def _uncompilable(self, edits: Sequence[TextEdit]) -> str:
        if not self._compiles:
            return ""
        text = apply_edits(self.text, edits)
        error = _compile_error(text)
        if error:
            return f"the result does not compile: {error}"
        names = undefined_names(text) - self._undefined
        return f"{min(names)!r} would be used without being bound" if names else ""


def _parse(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except _PARSE_ERRORS:
            return None


def _compile_error(text: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<fixed>", "exec", dont_inherit=True)
        except _PARSE_ERRORS as error:
            return str(error)
    return None


def _statements(tree: ast.Module, text: str, edited: Sequence[Range]) -> Iterator[tuple[int, str]]:
    """Yield offset and dump of every statement that no edit touches; of compound ones the header."""
    lines = _Lines(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            start, end = lines.offset(node.lineno, node.col_offset), _header_end(node, lines)
            if not any(edit.start <= end and start <= edit.end for edit in edited):
                yield start, _header_dump(node)


def _header_end(node: ast.stmt, lines: _Lines) -> int:
    """Return where a statement ends, or the header of a compound one."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    first = body[0] if body else None
    if isinstance(first, ast.match_case):
        first = first.pattern
    if first is None:
        return lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
    return max(lines.offset(first.lineno, first.col_offset) - 1, lines.offset(node.lineno, node.col_offset))


def _header_dump(node: ast.stmt) -> str:
    """Return the dump of a statement without the statements below it."""
    parts = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "finalbody", "handlers", "cases"):
            continue
        values = value if isinstance(value, list) else [value]
        parts.append(name)
        parts += [ast.dump(part) if isinstance(part, ast.AST) else repr(part) for part in values]
    return " ".join(parts)


class _Lines:
    """Turns the rows and UTF-8 columns of ``ast`` into offsets."""

    def __init__(self, text: str) -> None:
        self._lines = ast._splitlines_no_ff(text)  # type: ignore[attr-defined]
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, row: int, column: int) -> int:
        line = self._lines[row - 1]
        if not line.isascii():
            column = len(line.encode()[:column].decode(errors="replace"))
        return self._starts[row - 1] + column


def undefined_names(text: str) -> frozenset[str]:
    """Return the names that are read somewhere and bound nowhere that the reader can see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = symtable.symtable(text, "<file>", "exec")
    tables = list(_tables(table))
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    for inner in tables:
        bound |= {s.get_name() for s in inner.get_symbols() if s.is_declared_global() and s.is_assigned()}
    known = bound | set(dir(builtins)) | _MODULE_NAMES
    if "*" in bound or " import *" in text:
        return frozenset()
    return frozenset(
        symbol.get_name()
        for inner in tables
        for symbol in inner.get_symbols()
        if symbol.is_referenced() and symbol.is_global() and symbol.get_name() not in known
    )


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    stack = [table]
    while stack:
        current = stack.pop()
        yield current
        stack += current.get_children()
