"""Every operation on calls and expressions, in every style of writing that is known to go wrong."""

from __future__ import annotations

import ast

import pytest

from tests.edits.support import Code
from torchlint.edits import operations as op
from torchlint.edits.errors import RenderError


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(k=1)\n"),
        ("f( )\n", "f(k=1 )\n"),
        ("f(a)\n", "f(a, k=1)\n"),
        ("f(a,)\n", "f(a, k=1,)\n"),
        ("f(a, )\n", "f(a, k=1, )\n"),
        ("f(*a)\n", "f(*a, k=1)\n"),
        ("f(*a, **b)\n", "f(*a, **b, k=1)\n"),
        ("f((x for x in y))\n", "f((x for x in y), k=1)\n"),
        ("f(\n    a,\n    b,\n)\n", "f(\n    a,\n    b,\n    k=1,\n)\n"),
        ("f(\r\n    a,\r\n    b,\r\n)\r\n", "f(\r\n    a,\r\n    b,\r\n    k=1,\r\n)\r\n"),
        ("f(\n\ta,\n\tb\n)\n", "f(\n\ta,\n\tb,\n\tk=1\n)\n"),
        ("f(\n    a, b\n)\n", "f(\n    a, b, k=1\n)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b,\n  k=1)\n"),
        ("f(a,  # one\n  b)  # two\n", "f(a,  # one\n  b,\n  k=1)  # two\n"),
        ("f(\n    a,  # one\n)\n", "f(\n    a,  # one\n    k=1,\n)\n"),
        ("f(\n    a  # one\n)\n", "f(\n    a,  # one\n    k=1\n)\n"),
        ("f(\n    a\n    # one\n)\n", "f(\n    a,\n    k=1\n    # one\n)\n"),
        ("f(\n    # one\n)\n", "f(\n    # one\n    k=1,\n)\n"),
        ("f(\n)\n", "f(\n    k=1,\n)\n"),
        ("f(a # one\n)\n", "f(a, # one\nk=1\n)\n"),
        ("x = [lambda: f(a)]\n", "x = [lambda: f(a, k=1)]\n"),
        ("x = f'{f(a)}'\n", "x = f'{f(a, k=1)}'\n"),
        ("@f(a)\ndef g(): pass\n", "@f(a, k=1)\ndef g(): pass\n"),
        ("f (a)\n", "f (a, k=1)\n"),
    ],
)
def test_a_keyword_is_added_in_the_style_of_the_call(before: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.AddKeyword(code.call("f"), "k", "1")) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(0)\n"),
        ("f( )\n", "f(0 )\n"),
        ("f(a)\n", "f(0, a)\n"),
        ("f(*a, k=1)\n", "f(0, *a, k=1)\n"),
        ("f( a )\n", "f( 0, a )\n"),
        ("f(\n    a,  # b\n)\n", "f(\n    0,\n    a,  # b\n)\n"),
        ("f(  # b\n    # c\n    a\n)\n", "f(  # b\n    # c\n    0,\n    a\n)\n"),
        ("f(\n    # b\n)\n", "f(\n    # b\n    0,\n)\n"),
        ("(f)(a)\n", "(f)(0, a)\n"),
        ("f(a, f(b))\n", "f(0, a, f(b))\n"),
    ],
)
def test_an_argument_is_put_before_the_others(before: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.AddPositional(code.call("f"), "0")) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "removed", "after"),
    [
        ("f(a, k=b)\n", 2, "f(0, l=1)\n"),
        ("f(a, *b)\n", 1, "f(0, l=1, *b)\n"),
        ("f(\n    a,  # c\n    **b\n)\n", 1, "f(\n    0,\n    l=1,  # c\n    **b\n)\n"),
    ],
)
def test_an_argument_is_put_where_the_first_ones_become_keywords(before: str, removed: int, after: str) -> None:
    code = Code(before)
    call = code.call("f")
    edits: list[op.Edit] = [op.RemoveArgument(call, argument) for argument in call.args[:removed]]
    assert code.edited(*edits, op.AddPositional(call, "0"), op.AddKeyword(call, "l", "1")) == after
    ast.parse(after)


@pytest.mark.parametrize(("text", "removed"), [("f(a for a in b)\n", 0), ("f(a, b)\n", 1)])
def test_an_argument_that_cannot_be_the_first_is_refused(text: str, removed: int) -> None:
    code = Code(text)
    call = code.call("f")
    edits: list[op.Edit] = [op.RemoveArgument(call, argument) for argument in call.args[:removed]]
    with pytest.raises(RenderError):
        code.edited(*edits, op.AddPositional(call, "0"), op.AddKeyword(call, "l", "1"))


def test_two_keywords_keep_their_order() -> None:
    code = Code("f()\ng(a)\n")
    f, g = code.call("f"), code.call("g")
    edits = [op.AddKeyword(f, "k", "1"), op.AddKeyword(g, "k", "1"), op.AddKeyword(f, "l", "2")]
    assert code.edited(*edits) == "f(k=1, l=2)\ng(a, k=1)\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [("f(x for x in y)\n", "k"), ("f(k=2)\n", "k"), ("x = f'{f(a)}'\n", "'k'")],
)
def test_a_keyword_that_does_not_fit_is_refused(text: str, name: str) -> None:
    code = Code(text)
    with pytest.raises(RenderError):
        code.edited(op.AddKeyword(code.call("f"), "k", name))


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        ("f(a)\n", 0, "f()\n"),
        ("f(a,)\n", 0, "f()\n"),
        ("f( a )\n", 0, "f()\n"),
        ("f(a, b)\n", 0, "f(b)\n"),
        ("f(a, b)\n", 1, "f(a)\n"),
        ("f(a, b,)\n", 1, "f(a,)\n"),
        ("f(a, b, c)\n", 1, "f(a, c)\n"),
        ("f(a, *b, **c)\n", 2, "f(a, *b)\n"),
        ("f(\n    a,\n)\n", 0, "f()\n"),
        ("f(\n    a,\n    b,\n)\n", 0, "f(\n    b,\n)\n"),
        ("f(\n    a,\n    b,\n)\n", 1, "f(\n    a,\n)\n"),
        ("f(\r\n    a,\r\n    b,\r\n)\r\n", 0, "f(\r\n    b,\r\n)\r\n"),
        ("f(\n    a,  # one\n    b,\n)\n", 1, "f(\n    a,  # one\n)\n"),
        ("f(\n    a,  # one\n    b\n)\n", 1, "f(\n    a,  # one\n)\n"),
        ("f(\n    a,\n    # two\n    b,\n    c,\n)\n", 1, "f(\n    a,\n    # two\n    c,\n)\n"),
        ("f(a,\n  b)\n", 0, "f(b)\n"),
        ("f(a,\n  b)\n", 1, "f(a)\n"),
    ],
)
def test_an_argument_goes_with_its_comma(before: str, index: int, after: str) -> None:
    code = Code(before)
    call = code.call("f")
    assert code.edited(op.RemoveArgument(call, call.args[index])) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "removed", "after"),
    [
        ("f(a)\n", [0], "f(k=1)\n"),
        ("f(a, b)\n", [1], "f(a, k=1)\n"),
        ("f(a, b)\n", [0], "f(b, k=1)\n"),
        ("f(a, x=2, y=3)\n", [1], "f(a, k=1, y=3)\n"),
        ("f(a, b, c)\n", [1, 2], "f(a, k=1)\n"),
        ("f(a, b, c)\n", [0, 2], "f(b, k=1)\n"),
        ("f(\n    a,\n    b,\n)\n", [1], "f(\n    a,\n    k=1,\n)\n"),
    ],
)
def test_arguments_are_exchanged(before: str, removed: list[int], after: str) -> None:
    code = Code(before)
    call = code.call("f")
    edits: list[op.Edit] = [op.RemoveArgument(call, call.args[index]) for index in removed]
    assert code.edited(*edits, op.AddKeyword(call, "k", "1")) == after
    assert code.edited(op.AddKeyword(call, "k", "1"), *edits) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = g(f(a).m())\n", "x = g(f(a, k=1))\n"),
        ("x = (f(a)\n     .m())\n", "x = (f(a, k=1))\n"),
        ("x = f(a) \\\n    .m()\n", "x = f(a, k=1)\n"),
        ("x = f(a).m()if y else z\n", "x = f(a, k=1)if y else z\n"),
        ("x = (f(a)).m()\n", "x = (f(a, k=1))\n"),
        ("def g(): return(f(a)).m()\n", "def g(): return(f(a, k=1))\n"),
        ("x = f'{f(a).m()}'\n", "x = f'{f(a, k=1)}'\n"),
        ("f(a).m().n()\n", "f(a, k=1).n()\n"),
        ("f(\n  a\n).m(  # why\n)\n", "f(\n  a,\n  k=1\n)\n"),
    ],
)
def test_a_call_is_unwrapped_while_its_inside_changes(before: str, after: str) -> None:
    code = Code(before)
    edits = [op.Unwrap(code.call("m"), code.call("f")), op.AddKeyword(code.call("f"), "k", "1")]
    assert code.edited(*edits) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = f(a + b) * 2\n", "x = (a + b) * 2\n"),
        ("x = f(a + b)\n", "x = a + b\n"),
        ("x = f((a + b)) * 2\n", "x = (a + b) * 2\n"),
        ("x = f(lambda: 1)()\n", "x = (lambda: 1)()\n"),
        ("x = g(f(y for y in z))\n", "x = g((y for y in z))\n"),
        ("x = f(\n    a +\n    b\n)\n", "x = (a +\n    b)\n"),
        ("x = [f(\n    a.b\n)]\n", "x = [a.b]\n"),
        ("x = -f(a ** b)\n", "x = -(a ** b)\n"),
        ("x = a if f(b)else c\n", "x = a if b else c\n"),
        ("x = not(f)(b)\n", "x = not b\n"),
        ("assert(f)('b')\n", "assert 'b'\n"),
        ("x = f'{f({a})}'\n", "x = f'{({a})}'\n"),
        ("x = f(1).real\n", "x = (1).real\n"),
    ],
)
def test_what_is_left_keeps_its_meaning(before: str, after: str) -> None:
    code = Code(before)
    call = code.call("f")
    assert code.edited(op.Unwrap(call, call.args[0].value)) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("x = f(a)\n", "g(a)", "x = g(a)\n"),
        ("x = f(a) ** 2\n", "a + b", "x = (a + b) ** 2\n"),
        ("x = (f(a)) ** 2\n", "a + b", "x = (a + b) ** 2\n"),
        ("x = g(f(a))\n", "a + b", "x = g(a + b)\n"),
        ("x = g(f(a))\n", "a, b", "x = g((a, b))\n"),
        ("def g():\n    return f(a)\n", "a, b", "def g():\n    return a, b\n"),
        ("x = a if f(a)else b\n", "c", "x = a if c else b\n"),
    ],
)
def test_an_expression_is_replaced(before: str, new: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.Replace(code.call("f"), new)) == after


def test_a_replacement_changes_only_what_differs() -> None:
    code = Code("f(workers=0)\n")
    from torchlint.edits.render import render

    (edit,) = render(code.locator, [op.Replace(code.call("f").args[0], "workers=4")])
    assert (edit.range.start, edit.range.end, edit.content) == (10, 11, "4")


@pytest.mark.parametrize("field", ["f(a)=", "f(a)=!r", "[g(f(a))]=:>3"])
def test_code_that_an_f_string_shows_is_left_alone(field: str) -> None:
    code = Code(f"x = f'{{{field}}}'\n")
    call = code.call("f")
    for edit in (op.Replace(call, "b"), op.Unwrap(call, call.args[0].value), op.AddKeyword(call, "k", "1")):
        with pytest.raises(RenderError):
            code.edited(edit)


def test_what_is_no_expression_is_refused() -> None:
    code = Code("x = f(a)\n")
    with pytest.raises(RenderError):
        code.edited(op.Replace(code.call("f"), "a b"))


def test_an_argument_that_a_mapping_brings_is_not_added() -> None:
    for call in ("f(a, **{'k': 2})", "f(a, **dict(k=2))"):
        code = Code(f"x = {call}\n")
        with pytest.raises(RenderError):
            code.edited(op.AddKeyword(code.call("f"), "k", "1"))


def test_overlapping_edits_of_one_fix_are_refused() -> None:
    code = Code("x = f(g(a))\n")
    with pytest.raises(RenderError):
        code.edited(op.Replace(code.call("f"), "h()"), op.AddKeyword(code.call("g"), "k", "1"))
