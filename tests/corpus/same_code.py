"""Whether two texts are the same program outside the places where they differ.

Made from the texts alone: what changed is found by comparing lines, not asked of the tool that changed it.
"""

from __future__ import annotations

import ast
import difflib
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Step = tuple[str, int]
"""A field of a node, and the index in it if it is a list, else -1."""

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_OPAQUE = (ast.JoinedStr,)
"""Before Python 3.12 the places of nodes inside f-strings are wrong."""


def parsed(text: str) -> ast.Module | None:
    """Return the tree of a text, None if it does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@dataclass(frozen=True, slots=True)
class Hunk:
    """A place where two texts differ: half-open ranges of offsets."""

    old: tuple[int, int]
    new: tuple[int, int]


def hunks(old: str, new: str, *, indented: bool = False) -> list[Hunk]:
    """Return the smallest places that differ, line by line.

    White space in front of a line makes no difference unless ``indented``.
    """
    one, other = _lines(old), _lines(new)
    starts, ends = _starts(one), _starts(other)
    texts = (one, other) if indented else ([line.strip() for line in one], [line.strip() for line in other])
    matcher = difflib.SequenceMatcher(None, *texts, autojunk=False)
    found = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        pairs = zip(range(i, j), range(k, m), strict=True) if j - i == m - k else [(i, k)]
        lengths = (1, 1) if j - i == m - k else (j - i, m - k)
        for left, right in pairs:
            pair = "".join(one[left : left + lengths[0]]), "".join(other[right : right + lengths[1]])
            found.append(_trimmed(pair, starts[left], ends[right]))
    return found


def _lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


def _starts(lines: Sequence[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _trimmed(texts: tuple[str, str], old: int, new: int) -> Hunk:
    """Return two differing texts without what they begin and end with in common."""
    one, other = texts
    shorter = min(len(one), len(other))
    head = next((index for index in range(shorter) if one[index] != other[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if one[-1 - index] != other[-1 - index]), rest)
    return Hunk((old + head, old + len(one) - tail), (new + head, new + len(other) - tail))


class _Text:
    """A tree with the offsets of its nodes."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.tree = tree
        self._lines = _lines(text)
        self._starts = _starts(self._lines)
        self.blank: set[int] = set()
        """Identities of expressions that become the placeholder."""

        self.loose: set[int] = set()
        """Identities of statements of which nothing but the statements below them is kept."""

        self.gone: set[int] = set()
        """Identities of decorators that are left out."""

    def _offset(self, row: int, column: int) -> int:
        line = self._lines[row - 1]
        return self._starts[row - 1] + (column if line.isascii() else len(line.encode()[:column].decode()))

    def range(self, node: ast.AST) -> tuple[int, int] | None:
        """Return the range of a node, decorators included; None for one that has no place of its own."""
        if not hasattr(node, "lineno"):
            return None
        first = min([node, *getattr(node, "decorator_list", [])], key=lambda n: (n.lineno, n.col_offset))
        return self._offset(first.lineno, first.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def path(self, place: tuple[int, int]) -> tuple[ast.stmt, list[tuple[Step, ast.AST]]] | None:
        """Return the innermost statement around a place, and the way down from it to the innermost expression."""
        statement, way = None, []
        node: ast.AST | None = self.tree
        while node is not None:
            inner = next((pair for pair in _children(node) if self._holds(pair[1], place)), None)
            if inner is None:
                break
            node = inner[1]
            if isinstance(node, ast.stmt):
                statement, way = node, []
            else:
                way.append(inner)
            if isinstance(node, _OPAQUE):
                break
        return None if statement is None else (statement, way)

    def _holds(self, node: ast.AST, place: tuple[int, int]) -> bool:
        if isinstance(node, ast.arguments):
            return any(self._holds(child, place) for _, child in _children(node))
        own = self.range(node) or self._hull(node)
        return own is not None and own[0] <= place[0] and place[1] <= own[1]

    def _hull(self, node: ast.AST) -> tuple[int, int] | None:
        """Return the range of a node without a place of its own: that of what it consists of."""
        ranges = [found for _, child in _children(node) if (found := self.range(child) or self._hull(child))]
        return (min(r[0] for r in ranges), max(r[1] for r in ranges)) if ranges else None

    def loosen(self, place: tuple[int, int]) -> None:
        """Mark the innermost statements that a place touches, or at whose end it begins."""
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.stmt):
                start, end = self.range(node) or (0, 0)
                if not (start < place[1] and place[0] <= end):
                    continue
                header = self._header_end(node, end)
                if place[0] < header or header == end:
                    self.loose.add(id(node))
            stack += [child for _, child in _children(node) if _is_block_part(child)]

    def decorators(self, place: tuple[int, int]) -> list[ast.expr]:
        """Return the decorators that a place covers, if it lies above the line that they decorate."""
        for node in ast.walk(self.tree):
            listed = getattr(node, "decorator_list", [])
            if listed and self._starts[listed[0].lineno - 1] <= place[0] and place[1] <= self._starts[node.lineno - 1]:
                ranges = [(one, self.range(one) or (0, 0)) for one in listed]
                return [one for one, (start, end) in ranges if place[0] <= start and end <= place[1]]
        return []

    def in_header(self, node: ast.stmt, place: tuple[int, int]) -> bool:
        """Return whether a place lies before the first statement below a statement."""
        start, end = self.range(node) or (0, 0)
        return start <= place[0] and place[1] <= self._header_end(node, end)

    def _header_end(self, node: ast.stmt, end: int) -> int:
        starts = [found[0] for _, child in _children(node) if _is_block_part(child) and (found := self._extent(child))]
        return min(starts, default=end)

    def _extent(self, node: ast.AST) -> tuple[int, int] | None:
        return self.range(node) or self._hull(node)

    def rest(self) -> str:
        """Return what is left when the marked places are replaced."""
        return "\n".join(self._rest(self.tree))

    def _rest(self, node: object) -> Iterator[str]:
        stack: list[object] = [node]
        while stack:
            item = stack.pop()
            if isinstance(item, ast.AST):
                if id(item) in self.blank:
                    stack.append("<edited>")
                elif id(item) in self.loose:
                    stack += [getattr(item, name) for name in reversed(_BLOCKS) if getattr(item, name, None)]
                else:
                    parts = [(name, getattr(item, name, None)) for name in item._fields]
                    stack += [part for name, value in reversed(parts) for part in (self._part(value), f".{name}")]
                    yield type(item).__name__
            elif isinstance(item, (tuple, list)):
                stack += item[::-1]
            else:
                yield item if isinstance(item, str) else repr(item)

    def _part(self, value: object) -> object:
        if isinstance(value, list):
            return ("[", *(item for item in value if id(item) not in self.gone), "]")
        return value if isinstance(value, ast.AST) else repr(value)


def _is_block_part(node: ast.AST) -> bool:
    return isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case))


def _children(node: ast.AST) -> Iterator[tuple[Step, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (name, -1), value
        elif isinstance(value, list):
            yield from (((name, index), item) for index, item in enumerate(value) if isinstance(item, ast.AST))


def difference(old: str, new: str) -> str:
    """Return where two texts differ as programs outside the places where they differ as texts, empty if nowhere.

    Lines that recur can be matched in more than one way: if no line was indented anew, their indentation tells which.
    """
    old, new = (text if text.endswith(("\n", "\r")) else f"{text}\n" for text in (old, new))
    before, after = parsed(old), parsed(new)
    if before is None or after is None:
        return "does not parse"
    found = _difference(old, new, before, after, indented=False)
    if not found or _is_indented_anew(old, new):
        return found
    return found if _difference(old, new, before, after, indented=True) else ""


def _is_indented_anew(old: str, new: str) -> bool:
    """Return whether a line is gone at one indentation and there at another."""
    one, other = Counter(_lines(old)), Counter(_lines(new))
    gone, added = {line.strip() for line in one - other}, {line.strip() for line in other - one}
    return bool(gone & added - {""})


def _difference(old: str, new: str, before: ast.Module, after: ast.Module, *, indented: bool) -> str:
    one, other = _Text(old, before), _Text(new, after)
    for hunk in hunks(old, new, indented=indented):
        _mark(one, other, hunk)
    rests = one.rest(), other.rest()
    if rests[0] == rests[1]:
        return ""
    pairs = zip(rests[0].splitlines(), rests[1].splitlines(), strict=False)
    index, pair = next(((i, p) for i, p in enumerate(pairs) if p[0] != p[1]), (-1, ("", "more or less")))
    return f"{pair[0]!r} became {pair[1]!r} at node {index}"


def _mark(one: _Text, other: _Text, hunk: Hunk) -> None:
    """Replace the same expression in both trees, or leave the statements that the hunk touches out of both."""
    removed, added = one.decorators(hunk.old), other.decorators(hunk.new)
    if removed or added:
        one.gone.update(map(id, removed))
        other.gone.update(map(id, added))
        return
    left, right = one.path(hunk.old), other.path(hunk.new)
    if left and right and type(left[0]) is type(right[0]):
        common = 0
        ways = [step for step, _ in left[1]], [step for step, _ in right[1]]
        while common < min(map(len, ways)) and ways[0][common] == ways[1][common]:
            common += 1
        if common:
            one.blank.add(id(left[1][common - 1][1]))
            other.blank.add(id(right[1][common - 1][1]))
            return
        if one.in_header(left[0], hunk.old) and other.in_header(right[0], hunk.new):
            one.loose.add(id(left[0]))
            other.loose.add(id(right[0]))
            return
    one.loosen(hunk.old)
    other.loosen(hunk.new)
