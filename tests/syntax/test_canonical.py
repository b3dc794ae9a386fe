"""Expressions that are the same but for their layout."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.syntax.canonical import canonical, is_same
from torchlint.syntax.draft import draft


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a.b", "a . b"),
        ("a[0]", "a[ 0 ]"),
        ("f(x, 'y')", 'f(x,"y",)'),
        ("(a + b) * c", "((a+b)) * c"),
        ("'ab'", "'a' 'b'"),
        ("1000", "1_000"),
        ("x[1:2]", "x[1 : 2]"),
    ],
)
def test_layout_does_not_count(left: str, right: str) -> None:
    assert is_same(cst.parse_expression(left), cst.parse_expression(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a.b", "a.c"),
        ("a", "a.b"),
        ("a[0]", "a[1]"),
        ("f(x)", "f(*x)"),
        ("f(x=y)", "f(y)"),
        ("a + b", "a - b"),
        ("a < b", "a > b"),
        ("(a + b) * c", "a + b * c"),
        ("'a'", "a"),
        ("f'{a}'", "f'{b}'"),
    ],
)
def test_everything_else_does(left: str, right: str) -> None:
    assert not is_same(cst.parse_expression(left), cst.parse_expression(right))


def test_a_draft_has_the_same_text() -> None:
    text = "self.a[i, 0](b, *c, d='e', **f) + (1 if not g else -h)"
    statement = draft(text + "\n").module.body[0]
    assert isinstance(statement, cst.SimpleStatementLine)
    assert isinstance(statement.body[0], cst.Expr)
    assert canonical(statement.body[0].value) == canonical(cst.parse_expression(text))
