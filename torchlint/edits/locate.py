"""Exact ranges of nodes, found without libcst's position providers.

The code of the line is generated alone, and looked up in the source. The tree is lossless, so that code stands in the
source: found exactly once, its place is certain. Otherwise the enclosing definitions are tried, innermost first, then
the top-level statement, and at last the whole module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst
from libcst._nodes.internal import CodegenState

from torchlint.diagnostic import Range

if TYPE_CHECKING:
    from torchlint.syntax.parse import Parsed

Parent: TypeAlias = Callable[[cst.CSTNode], "cst.CSTNode | None"]


_MOST_GENERATED = 200
"""Pieces of code that are kept at a time, each with the places of all of its nodes."""


class LocateError(Exception):
    """The place of a node is not certain."""


class _RecordingState(CodegenState):
    """Generates code and notes between which of its tokens each node lies."""

    def __init__(self, module: cst.Module, indents: list[str]) -> None:
        super().__init__(
            default_indent=module.default_indent, default_newline=module.default_newline, indent_tokens=indents
        )
        self.full: dict[int, tuple[int, int]] = {}
        self.syntactic: dict[int, tuple[int, int]] = {}
        self._starts: list[int] = []

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        self.full[id(node)] = (self._starts.pop(), len(self.tokens))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = len(self.tokens)
        yield
        end = len(self.tokens)
        self.syntactic[id(node)] = (
            start if start_node is None else self.place(start_node)[0],
            end if end_node is None else self.place(end_node)[1],
        )

    def place(self, node: cst.CSTNode) -> tuple[int, int]:
        return self.syntactic.get(id(node)) or self.full[id(node)]


class _Generated(NamedTuple):
    """The code of one anchor, where it lies in the source, and the offset in the source of every token."""

    state: _RecordingState
    offsets: tuple[int, ...]

    def range(self, tokens: tuple[int, int]) -> Range:
        last = len(self.offsets) - 1  # generating a module takes back the newline that a file may lack
        return Range(self.offsets[min(tokens[0], last)], self.offsets[min(tokens[1], last)])


class Locator:
    """Answers where nodes of one module stand; every enclosing definition is generated at most once."""

    def __init__(self, parsed: Parsed, parent: Parent) -> None:
        self.text = parsed.source.text
        self.module = parsed.module
        self.parent = parent
        # The code of a last line ends with a newline even where the file does not.
        ends = self.text.endswith(("\n", "\r"))
        self._searched = self.text if ends else self.text + self.module.default_newline
        self._generated: dict[int, _Generated | None] = {}
        self._places: dict[str, int | None] = {}

    def full(self, node: cst.CSTNode, owner: cst.CSTNode | None = None) -> Range:
        """Return the range of a node with the parentheses and the white space that belong to it.

        ``owner`` is an enclosing node whose parent is known, for nodes that the parents leave out.

        Raises:
            LocateError: the tree does not give the text back.
        """
        generated = self._find(node, owner or node)
        return generated.range(generated.state.full[id(node)])

    def syntactic(self, node: cst.CSTNode, owner: cst.CSTNode | None = None) -> Range:
        """Return the range of a node without the parentheses around it, decorators and surrounding white space.

        Raises:
            LocateError: the tree does not give the text back.
        """
        generated = self._find(node, owner or node)
        return generated.range(generated.state.place(node))

    def enclosing(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the node and its ancestors, innermost first."""
        current: cst.CSTNode | None = node
        while current is not None:
            yield current
            current = self.parent(current)

    def _find(self, node: cst.CSTNode, owner: cst.CSTNode) -> _Generated:
        for anchor in self._anchors(owner):
            if id(anchor) not in self._generated:
                if len(self._generated) >= _MOST_GENERATED:
                    self._generated.clear()
                self._generated[id(anchor)] = self._generate(anchor)
            generated = self._generated[id(anchor)]
            if generated is not None and id(node) in generated.state.full:
                return generated
        raise LocateError(
            "the parser does not keep the layout of this file (a form feed in an indentation is one cause)"
        )

    def _anchors(self, owner: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the line of a node, the definitions around it, its top-level statement and the module."""
        for node in self.enclosing(owner):
            is_top = self.parent(node) is self.module
            if is_top or isinstance(node, (cst.SimpleStatementLine, cst.FunctionDef, cst.ClassDef)):
                yield node
        yield self.module

    def _generate(self, anchor: cst.CSTNode) -> _Generated | None:
        state = _RecordingState(self.module, [] if anchor is self.module else self._indents(anchor))
        anchor._codegen(state)
        offsets = tuple(accumulate(map(len, state.tokens), initial=0))
        code = "".join(state.tokens)
        start = self._only_place(code, anchor)
        end = len(self.text)
        return None if start is None else _Generated(state, tuple(min(start + offset, end) for offset in offsets))

    def _only_place(self, code: str, anchor: cst.CSTNode) -> int | None:
        if anchor is self.module:
            # libcst overlooks the last newline where newlines are carriage returns.
            return 0 if self.text in (code, code + self.module.default_newline) else None
        if code not in self._places:
            starts = (start for start in _occurrences(self._searched, code) if _starts_line(self.text, start))
            found = list(islice(starts, 2))
            self._places[code] = found[0] if len(found) == 1 else None
        return self._places[code]

    def _indents(self, anchor: cst.CSTNode) -> list[str]:
        indents: list[str] = []
        inner = anchor
        for node in self.enclosing(anchor):
            is_block = isinstance(node, cst.IndentedBlock) or (
                isinstance(node, cst.Match) and isinstance(inner, cst.MatchCase)
            )
            if node is not anchor and is_block:
                indent = node.indent  # type: ignore[attr-defined]
                indents.append(self.module.default_indent if indent is None else indent)
            inner = node
        return indents[::-1]


def _occurrences(text: str, code: str) -> Iterator[int]:
    start = text.find(code)
    while code and start >= 0:
        yield start
        start = text.find(code, start + 1)


def _starts_line(text: str, offset: int) -> bool:
    return offset == 0 or text[offset - 1] in "\r\n"
