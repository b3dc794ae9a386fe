"""Statements removed, replaced, inserted and moved out of a ``with``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.errors import RenderError
from torchlint.edits.idle import PRAGMA, asks_for_device, comments_inside, is_idle_test
from torchlint.edits.locate import Locator
from torchlint.edits.text import (
    indentation,
    line_before,
    line_end,
    line_start,
    next_line,
    without_gap_below,
    without_one_gap,
)

_INDENT_OF_LINES = "    "
_MOST_LINES = 4
_KEPT = re.compile(rf"{PRAGMA.pattern}|[-=#*~_]{{4}}", re.IGNORECASE)
"""Comments that stay: those that tools read, and headings."""


def remove_statement(
    locator: Locator, statement: cst.CSTNode, removed: Set[int], about: re.Pattern[str] | None = None
) -> list[TextEdit]:
    """Return the edits that drop a statement, and the comment above it that speaks of it.

    ``removed`` are the ids of all that the fix drops.

    Raises:
        RenderError: the statement cannot go alone.
    """
    line = _line(locator, statement)
    siblings = _siblings(line)
    if siblings is not None and len(siblings) > 1 and not all(id(sibling) in removed for sibling in siblings):
        return [_remove_from_line(locator, statement, siblings, removed)]
    block = line if isinstance(line, cst.SimpleStatementSuite) else locator.parent(line)
    if not isinstance(block, (cst.Module, cst.BaseSuite)):
        raise RenderError("the statement is not one of a body")
    if not isinstance(block, cst.Module) and all(_is_removed(other, removed) for other in block.body):
        is_first = _first_statement(block) in (line, statement) and (siblings or (statement,))[0] is statement
        condition = _idle_condition(locator, block, is_wide=about is not None)
        if isinstance(condition, cst.If):
            removed = {*removed, id(condition)}
            return remove_statement(locator, condition, removed, about) if is_first else []
        if condition is not None:
            return [TextEdit(_lines(locator, condition), "")] if is_first else []
        if block is line or block.body[0] is line:
            return _pass_instead(locator, statement, siblings or ())
    elif siblings is not None and siblings[0] is not statement:
        return []  # the first statement of the line takes all of it
    lines = _without_gap(locator, line, block, _with_comment(locator, line, about))
    return [TextEdit(_without_final_newline(locator.text, lines), "")]


def _idle_condition(locator: Locator, block: cst.BaseSuite, *, is_wide: bool) -> cst.If | cst.Else | cst.Finally | None:
    """Return the ``if torch.cuda.is_available()`` around a body, unless more than the body hangs on it.

    Widely taken it is any condition that only looks, and an ``else`` or a ``finally`` that others can do without.
    """
    condition = locator.parent(block)
    if not isinstance(condition, (cst.If, cst.Else, cst.Finally)) or any(comments_inside(condition)):
        return None
    around, is_above = locator.parent(condition), any(line.comment is not None for line in condition.leading_lines)
    if not isinstance(condition, cst.If):
        can_go = isinstance(condition, cst.Else) or (isinstance(around, cst.Try) and bool(around.handlers))
        return condition if is_wide and can_go and not is_above else None
    if condition.orelse is not None or isinstance(around, (cst.If, cst.Else)):
        return None  # an `elif` keeps the others from running
    if is_wide:
        return condition if is_idle_test(condition.test) else None
    return condition if asks_for_device(condition.test) and not is_above else None


def _with_comment(locator: Locator, line: cst.CSTNode, about: re.Pattern[str] | None) -> Range:
    """Return the lines of a statement, with the comment right above that speaks of it and not of what follows."""
    lines = _lines(locator, line)
    above: Sequence[cst.EmptyLine] = getattr(line, "leading_lines", ())
    near = takewhile(lambda each: each.comment is not None, reversed(above))
    texts = [each.comment.value for each in near if each.comment is not None]
    is_about = about is not None and any(about.search(each) for each in texts)
    if about is None or not is_about or len(texts) > _MOST_LINES or any(_KEPT.search(each) for each in texts):
        return lines
    following = locator.text[lines.end : line_end(locator.text, lines.end)].strip()
    if following.startswith("del ") or about.search(following.partition("#")[0]):
        return lines
    start = lines.start
    for _ in texts:
        start = line_start(locator.text, line_before(locator.text, start))
    return Range(start, lines.end)


def _without_gap(locator: Locator, line: cst.CSTNode, block: cst.Module | cst.BaseSuite, lines: Range) -> Range:
    """Return the lines with blank ones around, so that one gap is left, and none at the top of a body."""
    is_top = isinstance(block, cst.IndentedBlock) and block.body[0] is line and lines.start <= _top(locator, line)
    found = without_one_gap(locator.text, lines)
    return without_gap_below(locator.text, found) if is_top else found


def _top(locator: Locator, line: cst.CSTNode) -> int:
    """Return where the comment above a statement begins, or the statement."""
    above = [each for each in getattr(line, "leading_lines", ()) if each.comment is not None]
    start = _lines(locator, line).start
    for _ in above:
        start = line_start(locator.text, line_before(locator.text, start))
    return start


def _without_final_newline(text: str, lines: Range) -> Range:
    """Return the lines, or, where they end a text that has no final newline, the newline before them instead."""
    if lines.end == len(text) and not text.endswith(("\n", "\r")):
        return Range(line_before(text, lines.start), lines.end)
    return lines


def _is_removed(statement: cst.CSTNode, removed: Set[int]) -> bool:
    if isinstance(statement, cst.SimpleStatementLine):
        return all(id(small) in removed for small in statement.body)
    return id(statement) in removed


def _pass_instead(locator: Locator, statement: cst.CSTNode, siblings: Sequence[cst.CSTNode]) -> list[TextEdit]:
    if not siblings:
        return [TextEdit(_extent(locator, statement), "pass")]
    if siblings[0] is not statement:
        return []
    start, end = locator.syntactic(siblings[0]).start, locator.syntactic(siblings[-1]).end
    return [TextEdit(Range(start, end), "pass")]


def _remove_from_line(
    locator: Locator, statement: cst.CSTNode, siblings: Sequence[cst.CSTNode], removed: Set[int]
) -> TextEdit:
    index = next(i for i, sibling in enumerate(siblings) if sibling is statement)
    if any(id(sibling) not in removed for sibling in siblings[index + 1 :]):
        return TextEdit(Range(locator.syntactic(statement).start, locator.syntactic(siblings[index + 1]).start), "")
    return TextEdit(Range(locator.syntactic(siblings[index - 1]).end, locator.syntactic(statement).end), "")


def replace_statement(locator: Locator, statement: cst.CSTNode, lines: Sequence[str]) -> list[TextEdit]:
    """Return the edits that write lines in place of a statement.

    Raises:
        RenderError: the statement shares its line and the lines are several.
    """
    line = _line(locator, statement)
    siblings = _siblings(line)
    is_shared = isinstance(line, cst.SimpleStatementSuite) or (siblings is not None and len(siblings) > 1)
    if is_shared and len(lines) != 1:
        raise RenderError("the statement shares its line")
    extent = locator.syntactic(statement) if siblings is not None else _extent(locator, statement)
    return [TextEdit(extent, _joined(locator, extent.start, lines))]


def insert_before(locator: Locator, statement: cst.CSTNode, lines: Sequence[str]) -> list[TextEdit]:
    """Return the edit that writes lines before the line of a statement.

    Raises:
        RenderError: the statement does not have its lines to itself.
    """
    line = _own_line(locator, statement)
    start = _lines(locator, line).start
    first = _first_offset(locator, line)
    newline = locator.module.default_newline
    content = indentation(locator.text, first) + _joined(locator, first, lines) + newline
    return [TextEdit(Range(start, start), content)]


def insert_after(locator: Locator, statement: cst.CSTNode, lines: Sequence[str]) -> list[TextEdit]:
    """Return the edit that writes lines after the last line of a statement.

    Raises:
        RenderError: the statement does not have its lines to itself.
    """
    line = _own_line(locator, statement)
    first = _first_offset(locator, line)
    end = _lines(locator, line).end
    newline = locator.module.default_newline
    content = indentation(locator.text, first) + _joined(locator, first, lines)
    ends_text = end == len(locator.text) and not locator.text.endswith(("\n", "\r"))
    return [TextEdit(Range(end, end), newline + content if ends_text else content + newline)]


def add_decorator(locator: Locator, function: cst.FunctionDef, code: str) -> list[TextEdit]:
    """Return the edit that puts a decorator directly above a function."""
    start = locator.syntactic(function).start
    indent = indentation(locator.text, line_start(locator.text, start))
    return [TextEdit(Range(start, start), f"@{code}{locator.module.default_newline}{indent}")]


def remove_with_item(locator: Locator, statement: cst.With, item: cst.WithItem) -> list[TextEdit]:
    """Return the edit that drops one of several items of a ``with``.

    Raises:
        RenderError: it is the only one.
    """
    index = next((i for i, other in enumerate(statement.items) if other is item), None)
    if index is None or len(statement.items) == 1:
        raise RenderError("the item is not one of several")
    places = [locator.syntactic(other, statement) for other in statement.items]
    if index + 1 < len(places):
        return [TextEdit(Range(places[index].start, places[index + 1].start), "")]
    return [TextEdit(Range(places[index - 1].end, places[index].end), "")]


def dedent(locator: Locator, statement: cst.With) -> list[TextEdit]:
    """Return the edits that drop the header of a ``with`` and move its body out; strings never change.

    Raises:
        RenderError: the header binds a name, or more than it would be dropped.
    """
    if len(statement.items) != 1 or statement.items[0].asname or statement.asynchronous:
        raise RenderError("only a with statement of one item without a name can be dropped")
    text = locator.text
    start = locator.syntactic(statement).start
    first = locator.syntactic(_first_statement(statement.body), statement).start
    if isinstance(statement.body, cst.SimpleStatementSuite):
        return [TextEdit(Range(start, first), "")]
    body = statement.body
    if not isinstance(body, cst.IndentedBlock):
        raise RenderError("the body is not a block")
    header_end = locator.full(body).start
    after_header = next_line(text, header_end)
    end = locator.full(statement).end
    inner = body.indent if body.indent is not None else locator.module.default_indent
    outer = indentation(text, start)
    strings = _multiline_strings(locator, body)
    edits = [TextEdit(Range(line_start(text, start), after_header), "")]
    for offset in _line_starts(text, after_header, end):
        if not any(string.start < offset < string.end for string in strings) and text.startswith(outer + inner, offset):
            moved = offset + len(outer)
            edits.append(TextEdit(Range(moved, moved + len(inner)), ""))
    return edits


def _first_statement(body: cst.BaseSuite) -> cst.CSTNode:
    first: cst.CSTNode = body.body[0]
    return first


def _line_starts(text: str, start: int, end: int) -> Iterator[int]:
    offset = start
    while offset < end:
        yield offset
        offset = next_line(text, offset)


def _multiline_strings(locator: Locator, body: cst.CSTNode) -> list[Range]:
    """Return the ranges of all strings below a node that hold a line break."""
    found = []
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.SimpleString, cst.FormattedString)):
            place = locator.syntactic(node)
            if line_end(locator.text, place.start) < place.end:
                found.append(place)
        else:
            stack.extend(node.children)
    return found


def _line(locator: Locator, statement: cst.CSTNode) -> cst.CSTNode:
    """Return the line of a small statement, the statement itself if it is compound."""
    if isinstance(statement, cst.BaseSmallStatement):
        parent = locator.parent(statement)
        if parent is None:
            raise RenderError("the statement is not in the file")
        return parent
    return statement


def _siblings(line: cst.CSTNode) -> Sequence[cst.CSTNode] | None:
    """Return the small statements of a line, None for a compound statement."""
    return line.body if isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) else None


def _own_line(locator: Locator, statement: cst.CSTNode) -> cst.CSTNode:
    line = _line(locator, statement)
    siblings = _siblings(line)
    if isinstance(line, cst.SimpleStatementSuite) or (siblings is not None and len(siblings) > 1):
        raise RenderError("the statement shares its line")
    if not isinstance(locator.parent(line), (cst.Module, cst.IndentedBlock)):
        raise RenderError("the statement is not one of a body")
    return line


def _first_offset(locator: Locator, line: cst.CSTNode) -> int:
    """Return where a statement begins, its decorators included."""
    if isinstance(line, (cst.FunctionDef, cst.ClassDef)) and line.decorators:
        return locator.syntactic(line.decorators[0], line).start
    return locator.syntactic(line).start


def _lines(locator: Locator, line: cst.CSTNode) -> Range:
    """Return the whole lines of a statement; comment lines above are none of them."""
    return Range(line_start(locator.text, _first_offset(locator, line)), locator.full(line).end)


def _extent(locator: Locator, statement: cst.CSTNode) -> Range:
    """Return a statement from its first decorator to the end of its last line, without the newline."""
    end = locator.full(statement).end
    text = locator.text
    if isinstance(statement, cst.BaseSmallStatement):
        return locator.syntactic(statement)
    if end > line_start(text, end) or end == 0:
        return Range(_first_offset(locator, statement), end)
    return Range(_first_offset(locator, statement), line_before(text, end))


def _joined(locator: Locator, start: int, lines: Sequence[str]) -> str:
    """Return lines joined at the indentation of an offset, their own indentation in the style of the file."""
    separator: str = locator.module.default_newline + indentation(locator.text, start)
    return separator.join(_reindented(line, locator.module.default_indent) for line in lines)


def _reindented(line: str, indent: str) -> str:
    depth = 0
    while line.startswith(_INDENT_OF_LINES, depth * len(_INDENT_OF_LINES)):
        depth += 1
    return indent * depth + line[depth * len(_INDENT_OF_LINES) :]
