"""What must hold of a text after it was edited: it parses, means the same outside the edits, and binds its names."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.text import Places, Rows, Shift, apply_edits, comments
from torchlint.source import source_from_text
from torchlint.syntax.parse import SyntaxFailure, parse

_MODULE_NAMES = frozenset({"__file__", "__name__", "__doc__", "__path__", "__spec__", "__loader__", "__package__"}) | {
    "__builtins__",
    "__annotations__",
    "__conditional_annotations__",
    "__debug__",
    "__cached__",
    "WindowsError",
}
_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")
_DEVICES = frozenset(("cpu", "cuda", "mps", "xpu"))
_TAKING_DEVICES = frozenset(("device", "device_type", "map_location"))
_LOOKING = frozenset(("eval", "exec", "globals", "locals"))
_LOOKING_BARE = frozenset(("vars", "dir"))
"""What looks into the file if it is called without arguments."""

_MODULE = -1
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


class Original:
    """A text before it is edited, with what its edited versions are compared with."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tree(self) -> ast.Module | None:
        """The tree of Python's own parser, None if that does not know the syntax."""
        return parse_python(self.text)

    @cached_property
    def comments(self) -> tuple[Range, ...] | None:
        """Where the comments stand, None if Python cannot tokenize the text."""
        return comments(self.text)

    @cached_property
    def _read_and_spoken(self) -> tuple[Counter[str], Counter[str]]:
        return _read_and_spoken(self.tree) if self.tree else (Counter(), Counter())

    @cached_property
    def uses(self) -> Counter[str]:
        """How often each name is used."""
        read, spoken = self._read_and_spoken
        return read + spoken

    @cached_property
    def uses_of_module(self) -> frozenset[str]:
        """The names of the module that it uses: what another scope binds and uses under the same name is none."""
        if self.tree is None or not self._compiles:
            return frozenset(self.uses)
        return names_of_module(self.text) | _untold(self.tree) | self._read_and_spoken[1].keys()

    @cached_property
    def looks_up_names(self) -> bool:
        """Whether something in the text finds names by other means than writing them."""
        return self.tree is not None and looks_up_names(self.tree)

    def parses_with(self, edits: Sequence[TextEdit]) -> bool:
        """Return whether the edited text parses, by the parser that knows the original."""
        text = apply_edits(self.text, edits)
        if parse_python(text) is not None:
            return True
        return self.tree is None and not isinstance(parse(source_from_text(text)), SyntaxFailure)

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
        after = parse_python(text)
        if self.tree is None or after is None:
            return "the result does not parse"
        shift = Shift(edits)
        old = _statements(self.tree, self.text, [edit.range for edit in edits])
        new = _statements(after, text, [shift.content(index) for index in range(len(edits))])
        moved = {statement.moved(shift) for statement in old}
        if moved != set(new):
            return "code outside the edits means something else"
        return "a string becomes documentation" if docstrings(after) - docstrings(self.tree) else ""

    def _uncompilable(self, edits: Sequence[TextEdit]) -> str:
        if not self._compiles:
            return ""
        text = apply_edits(self.text, edits)
        error = _compile_error(text)
        if error:
            return f"the result does not compile: {error}"
        names = undefined_names(text) - self._undefined
        return f"{min(names)!r} would be used without being bound" if names else ""


def parse_python(text: str) -> ast.Module | None:
    """Return the tree of Python's own parser, None if that does not know the syntax."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except _PARSE_ERRORS:
            return None


def place_of(rows: Rows, node: ast.stmt | ast.expr | ast.alias) -> Range:
    """Return where a node of Python's own parser stands."""
    end_row, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Range(rows.offset(node.lineno, node.col_offset), rows.offset(end_row, end_column))


def _compile_error(text: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<fixed>", "exec", dont_inherit=True)
        except SyntaxError as error:
            return error.msg
        except _PARSE_ERRORS as error:
            return str(error) or type(error).__name__
    return None


class _Statement(NamedTuple):
    """A statement that no edit touches; of a compound one the header.

    ``parent`` is where the one around it starts: None where edits touch that, ``_MODULE`` where there is none.
    """

    start: int
    parent: int | None
    block: str
    dump: str

    def moved(self, shift: Shift) -> _Statement:
        parent = self.parent if self.parent in (None, _MODULE) else shift.offset(self.parent)
        return self._replace(start=shift.offset(self.start), parent=parent)


def _statements(tree: ast.Module, text: str, edited: Sequence[Range]) -> Iterator[_Statement]:
    """Yield every statement that no edit touches."""
    rows, places = Rows(text), Places(edited)
    stack: list[tuple[ast.AST, int | None, str]] = [(tree, _MODULE, "")]
    while stack:
        node, parent, block = stack.pop()
        own = parent
        if isinstance(node, ast.stmt):
            start, end = _header_start(node, rows), _header_end(node, rows)
            is_touched = places.touch(Range(start, end))
            own = None if is_touched else start
            if not is_touched:
                yield _Statement(start, parent, block, _header_dump(node))
        for name in _BLOCKS:
            below = getattr(node, name, None)
            if isinstance(below, list):
                stack += [(child, own, name) for child in below]


def _header_start(node: ast.stmt, rows: Rows) -> int:
    """Return where a statement begins, its decorators included."""
    decorators = getattr(node, "decorator_list", None)
    first = decorators[0] if decorators else node
    return rows.offset(first.lineno, first.col_offset)


def _header_end(node: ast.stmt, rows: Rows) -> int:
    """Return where a statement ends; of a compound one, where the line above its body does."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return rows.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    row = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", ()))])
    if row > node.lineno:
        return rows.offset(rows.code_above(row) + 1, 0) - 1
    return max(rows.offset(row, first.col_offset) - 1, rows.offset(node.lineno, node.col_offset))


def _header_dump(statement: ast.stmt) -> str:
    """Return what tells statements apart, without the statements below and without recursion."""
    parts: list[str] = []
    stack: list[object] = [statement]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            parts.append(f"[{len(value)}]")
            stack += reversed(value)
        elif isinstance(value, ast.AST):
            parts.append(type(value).__name__)
            below = _BLOCKS if value is statement else ()
            stack += [getattr(value, name, None) for name in value._fields if name not in below][::-1]
        else:
            parts.append(repr(value))
    return " ".join(parts)


def docstrings(tree: ast.Module) -> Counter[str]:
    """Return how often each string documents the module, a class or a function."""
    owners = (node for node in ast.walk(tree) if isinstance(node, _DOCUMENTED) and node.body)
    first = (owner.body[0] for owner in owners)
    texts = (line.value for line in first if isinstance(line, ast.Expr))
    return Counter(text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str))


def uses_of_names(tree: ast.AST) -> Counter[str]:
    """Return how often each name is read in the tree, in strings too, which may be looked up, run or filled in.

    A string that names a device is none of them: ``x.to("cuda")`` does not use ``from torch import cuda``. Neither is
    prose, which stands as a statement and holds no example.
    """
    read, spoken = _read_and_spoken(tree)
    return read + spoken


def _read_and_spoken(tree: ast.AST) -> tuple[Counter[str], Counter[str]]:
    """Return how often each name is read in the tree, and how often strings speak of it."""
    read: Counter[str] = Counter()
    spoken: Counter[str] = Counter()
    silent: set[ast.expr] = set()
    for node in ast.walk(tree):  # from the outside to the inside
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            read[node.id] += 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read[node.target.id] += 1
        elif isinstance(node, ast.Call):
            silent.update(argument for argument in node.args if _is_device(argument))
        elif (isinstance(node, ast.keyword) and node.arg in _TAKING_DEVICES) or (
            isinstance(node, ast.Expr) and _is_prose(node.value)
        ):
            silent.add(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            spoken.update(_WORD.findall(node.value))
    return read, spoken


def _is_device(argument: ast.expr) -> bool:
    text = argument.value if isinstance(argument, ast.Constant) else None
    return isinstance(text, str) and text.partition(":")[0] in _DEVICES


def _is_prose(statement: ast.expr) -> bool:
    text = statement.value if isinstance(statement, ast.Constant) else None
    return isinstance(text, str) and ">>>" not in text


def looks_up_names(tree: ast.AST) -> bool:
    """Return whether something in the tree finds the names of the file by other means than writing them."""
    return any(map(_looks_up, ast.walk(tree)))


def _looks_up(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_bare = not node.args and not node.keywords
        return node.func.id in _LOOKING or (is_bare and node.func.id in _LOOKING_BARE)
    if isinstance(node, ast.Attribute):
        return node.attr == "modules" and isinstance(node.value, ast.Name) and node.value.id == "sys"
    return isinstance(node, ast.Import) and any(alias.name == "__main__" for alias in node.names)


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


def names_of_module(text: str) -> frozenset[str]:
    """Return the names that the module or a class reads, or a function that does not bind them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = _tables(symtable.symtable(text, "<file>", "exec"))
    return frozenset(
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table.get_type() != "function" or symbol.is_global())
    )


def _untold(tree: ast.Module) -> frozenset[str]:
    """Return the names of which symbol tables do not always tell that the module reads them.

    Those in comprehensions outside functions since Python 3.12, those in annotations since 3.14.
    """
    parts: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)):
            parts.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts.append(node.returns)
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            parts.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack += [*getattr(node, "decorator_list", ()), node.args]
        else:
            stack += ast.iter_child_nodes(node)
    read = (inner for part in parts if part is not None for inner in ast.walk(part))
    return frozenset(inner.id for inner in read if isinstance(inner, ast.Name))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    stack = [table]
    while stack:
        current = stack.pop()
        yield current
        stack += current.get_children()
