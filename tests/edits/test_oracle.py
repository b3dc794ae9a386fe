"""Edits of the text do to real code what the same edit of Python's own tree does."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.edits.support import Code
from torchlint.diagnostic import Range, TextEdit
from torchlint.edits import operations as op
from torchlint.edits.errors import RenderError
from torchlint.edits.text import Rows, Shift, apply_edits, merged

STDLIB = Path(sysconfig.get_paths()["stdlib"])
FILES = [
    ("contextlib.py", "\n"),
    ("shlex.py", "\r\n"),
    ("gzip.py", "\n"),
    ("textwrap.py", "\r\n"),
    ("csv.py", "\n"),
    ("timeit.py", "\r\n"),
]
FILES_WITH_WITH = [("queue.py", "\n"), ("sched.py", "\r\n"), ("linecache.py", "\n"), ("tempfile.py", "\r\n")]
SAMPLE = 10


def code_of(name: str, newline: str) -> Code:
    return Code((STDLIB / name).read_bytes().decode("utf-8").replace("\n", newline))


def sample(code: Code, *node_types: type[cst.CSTNode]) -> list[cst.CSTNode]:
    found = [node for node_type in node_types for node in code.tree.nodes(node_type)]
    return random.Random(0).sample(found, min(SAMPLE, len(found)))


def python_node(tree: ast.AST, rows: Rows, place: Range, node_type: type[ast.AST]) -> ast.AST:
    """Return the node of Python's tree that begins and ends where the range does."""
    for node in ast.walk(tree):
        if isinstance(node, node_type) and isinstance(node, (ast.expr, ast.stmt)):
            start = rows.offset(node.lineno, node.col_offset)
            end = rows.offset(node.end_lineno or 0, node.end_col_offset or 0)
            if (start, end) == (place.start, place.end):
                return node
    raise LookupError(place)


def inside_string(code: Code, node: cst.CSTNode) -> bool:
    return any(isinstance(ancestor, cst.FormattedString) for ancestor in code.tree.ancestors(node))


def assert_same(edited: str, tree: ast.AST) -> None:
    assert ast.dump(ast.parse(edited)) == ast.dump(tree)


@pytest.mark.parametrize(("name", "newline"), FILES)
def test_keywords_are_added_and_arguments_removed(name: str, newline: str) -> None:
    code = code_of(name, newline)
    rows = Rows(code.text)
    for call in sample(code, cst.Call):
        assert isinstance(call, cst.Call)
        if inside_string(code, call):
            continue
        positional = [arg for arg in call.args if not arg.keyword and not arg.star]
        tree = ast.parse(code.text)
        node = python_node(tree, rows, code.locator.syntactic(call), ast.Call)
        assert isinstance(node, ast.Call)
        if call.args and isinstance(call.args[0].value, cst.GeneratorExp):
            continue
        edits: list[op.Edit] = [op.AddKeyword(call, "added", "0")]
        added = ast.keyword("added", ast.Constant(0))
        node.keywords.append(added)
        if positional and call.args[0] is positional[0]:
            edits.append(op.RemoveArgument(call, positional[0]))
            del node.args[0]
            if all(argument.keyword or argument.star for argument in call.args[1:]):
                node.keywords = [added, *node.keywords[:-1]]
        assert_same(code.edited(*edits), tree)


@pytest.mark.parametrize(("name", "newline"), FILES)
def test_calls_are_unwrapped(name: str, newline: str) -> None:
    code = code_of(name, newline)
    rows = Rows(code.text)
    for call in sample(code, cst.Call):
        assert isinstance(call, cst.Call)
        if not call.args or call.args[0].star or inside_string(code, call):
            continue
        tree = ast.parse(code.text)
        node = python_node(tree, rows, code.locator.syntactic(call), ast.Call)
        assert isinstance(node, ast.Call)
        inner = node.args[0] if node.args and not call.args[0].keyword else node.keywords[0].value
        _exchange(tree, node, inner)
        assert_same(code.edited(op.Unwrap(call, call.args[0].value)), tree)


def _exchange(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and old in value:
                value[value.index(old)] = new


@pytest.mark.parametrize("code_text", ["a + b", "lambda: 1", "x if y else z", "not x", "x, y", "x[0]", "x := 1", "-1"])
@pytest.mark.parametrize(("name", "newline"), FILES[:3])
def test_calls_are_replaced_by_any_expression(name: str, newline: str, code_text: str) -> None:
    code = code_of(name, newline)
    rows = Rows(code.text)
    for call in sample(code, cst.Call):
        assert isinstance(call, cst.Call)
        if inside_string(code, call):
            continue
        tree = ast.parse(code.text)
        node = python_node(tree, rows, code.locator.syntactic(call), ast.Call)
        _exchange(tree, node, ast.parse(f"({code_text})", mode="eval").body)
        try:
            edited = code.edited(op.Replace(call, code_text))
        except RenderError:
            continue
        assert_same(edited, tree)


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for parent in ast.walk(tree):
        for _, value in ast.iter_fields(parent):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


@pytest.mark.parametrize(("name", "newline"), FILES)
def test_statements_are_removed_and_inserted(name: str, newline: str) -> None:
    code = code_of(name, newline)
    rows = Rows(code.text)
    for statement in sample(code, cst.Expr, cst.Assign, cst.Return, cst.Raise, cst.AugAssign):
        assert isinstance(statement, cst.BaseSmallStatement)
        tree = ast.parse(code.text)
        node = python_node(tree, rows, code.locator.syntactic(statement), ast.stmt)
        body = next(body for body in blocks(tree) if node in body)
        index = body.index(node)  # type: ignore[arg-type]
        body[index : index + 1] = [] if len(body) > 1 else [ast.Pass()]
        assert_same(code.edited(op.RemoveStatement(statement)), tree)
        line = code.tree.parent(statement)
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            new = ast.parse("if u:\n    v").body
            body[index : index + (len(body) == 1 and isinstance(body[0], ast.Pass))] = [*new, node, *new]  # type: ignore[list-item]
            lines = ("if u:", "    v")
            assert_same(code.edited(op.InsertBefore(statement, lines), op.InsertAfter(statement, lines)), tree)


@pytest.mark.parametrize(("name", "newline"), FILES_WITH_WITH)
def test_withs_are_dropped(name: str, newline: str) -> None:
    code = code_of(name, newline)
    rows = Rows(code.text)
    for statement in code.tree.nodes(cst.With):
        tree = ast.parse(code.text)
        start = code.locator.syntactic(statement).start
        (node,) = (
            n for n in ast.walk(tree) if isinstance(n, ast.With) and rows.offset(n.lineno, n.col_offset) == start
        )
        body = next(body for body in blocks(tree) if node in body)
        index = body.index(node)
        body[index : index + 1] = node.body
        try:
            edited = code.edited(op.Dedent(statement))
        except RenderError:
            assert len(node.items) > 1 or node.items[0].optional_vars
            continue
        assert_same(edited, tree)


def edit_lists(text: str) -> st.SearchStrategy[list[TextEdit]]:
    place = st.integers(0, len(text))
    edit = st.tuples(place, place, st.sampled_from(["", "x", "\r\n", "# é\n"]))
    return st.lists(edit.map(lambda t: TextEdit(Range(min(t[:2]), max(t[:2])), t[2])), max_size=6)


TEXT = "import os\r\n\tif a:\n    f(x)  # ä\n\n'''\r\n'''\n"


@settings(max_examples=300, deadline=None)
@given(edit_lists(TEXT))
def test_text_outside_of_edits_stays(edits: list[TextEdit]) -> None:
    plan = merged(edits)
    if plan is None:
        return
    after = apply_edits(TEXT, plan)
    shift = Shift(plan)
    position = 0
    for index, edit in enumerate(plan):
        content = shift.content(index)
        assert after[content.start : content.end] == edit.content
        assert after[shift.offset(position) : content.start].endswith(TEXT[position : edit.range.start])
        position = edit.range.end
    assert after.endswith(TEXT[position:])
    for offset in range(len(TEXT)):
        if not any(edit.range.start <= offset < edit.range.end for edit in plan):
            assert after[shift.offset(offset)] == TEXT[offset]
            assert shift.end(offset + 1) == shift.offset(offset) + 1
