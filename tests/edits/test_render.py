"""Every operation, in every style of writing that is known to go wrong."""

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
def test_a_keyword_is_added_in_the_style_of_the_call(before: str, after: str | None) -> None:
    code = Code(before)
    if after is None:
        return
    assert code.edited(op.AddKeyword(code.call("f"), "k", "1")) == after
    ast.parse(after)


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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\ns()\nb\n", "a\nb\n"),
        ("a\n# why\ns()\nb\n", "a\n# why\nb\n"),
        ("a\ns()  # gone\nb\n", "a\nb\n"),
        ("a\r\ns()\r\nb\r\n", "a\r\nb\r\n"),
        ("s(); b\n", "b\n"),
        ("a; s(); b\n", "a; b\n"),
        ("a; s()\n", "a\n"),
        ("a; s();\n", "a;\n"),
        ("if x:\n    s()\n", "if x:\n    pass\n"),
        ("if x:\n    s();\n", "if x:\n    pass;\n"),
        ("if x:\n    # why\n    s()  # kept\n", "if x:\n    # why\n    pass  # kept\n"),
        ("if x: s()\n", "if x: pass\n"),
        ("if x: s(); b\n", "if x: b\n"),
        ("if x: a; s()\n", "if x: a\n"),
        ("if x:\n\ta\n\ts()", "if x:\n\ta"),
        ("s()", ""),
        ("a\n\ns()\n\nb\n", "a\n\nb\n"),
        ("a\n\ns()\n\n\ndef b(): ...\n", "a\n\n\ndef b(): ...\n"),
        ("a\n\n\ns()\n\nb\n", "a\n\n\nb\n"),
        ("a\r\n\t\r\ns()\r\n\r\nb\r\n", "a\r\n\r\nb\r\n"),
        ("a\n\ns()\nb\n", "a\n\nb\n"),
        ("a\n\n\ns()\n", "a\n"),
        ("a\n\ns()", "a"),
        ("def g():\n    s(\n        1,\n    )\n    return\n", "def g():\n    return\n"),
    ],
)
def test_a_statement_is_removed(before: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.RemoveStatement(code.statement("s("))) == after
    ast.parse(after)


def test_all_statements_of_a_body_leave_one_pass() -> None:
    code = Code("if x:\n    a; b\n    c\n")
    edits = [op.RemoveStatement(code.statement(name)) for name in "abc"]
    assert code.edited(*edits) == "if x:\n    pass\n"


def test_several_statements_of_a_line_are_removed() -> None:
    code = Code("if x:\n    a; b; c; d\n    e\n")
    assert code.edited(*(op.RemoveStatement(code.statement(n)) for n in "bcd")) == "if x:\n    a\n    e\n"
    assert code.edited(*(op.RemoveStatement(code.statement(n)) for n in "ac")) == "if x:\n    b; d\n    e\n"
    assert code.edited(*(op.RemoveStatement(code.statement(n)) for n in "abcd")) == "if x:\n    e\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nfor x in y:\n    z\nb\n", "a\nb\n"),
        ("if a:\n    for x in y:\n        z\n", "if a:\n    pass\n"),
        ("# why\nfor x in y: z\n", "# why\n"),
    ],
)
def test_a_compound_statement_is_removed(before: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.RemoveStatement(code.statement("for"))) == after


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("if a:\n    for x in y:\n        z\n    b\n", ("u()",), "if a:\n    u()\n    b\n"),
        ("if a:\n\tfor x in y:\n\t\tz\n", ("if u:", "    v"), "if a:\n\tif u:\n\t\tv\n"),
        ("for x in y: z  # why\n", ("u",), "u\n"),
        ("for x in y:\r\n    z\r\n", ("u", "v"), "u\r\nv\r\n"),
        ("for x in y:\n    z", ("u",), "u"),
    ],
)
def test_a_compound_statement_is_replaced(before: str, lines: tuple[str, ...], after: str) -> None:
    code = Code(before)
    assert code.edited(op.ReplaceStatement(code.statement("for"), lines)) == after


def test_a_small_statement_is_replaced_where_it_stands() -> None:
    code = Code("if a: s(); b\nif a:\n    s()  # why\n")
    first, second = (node for node in code.tree.nodes(type(code.statement("s()"))) if code.code(node) != "b")
    assert code.edited(op.ReplaceStatement(first, ("u()",))) == "if a: u(); b\nif a:\n    s()  # why\n"
    assert code.edited(op.ReplaceStatement(second, ("u", "v"))) == "if a: s(); b\nif a:\n    u\n    v  # why\n"
    with pytest.raises(RenderError):
        code.edited(op.ReplaceStatement(first, ("u", "v")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s()\n", "u\ns()\nv\n"),
        ("s()", "u\ns()\nv"),
        ("if a:\n\ts()\r\n", "if a:\n\tu\n\ts()\r\n\tv\n"),
        ("# why\ns()  # how\nb\n", "# why\nu\ns()  # how\nv\nb\n"),
        ("if a:\n    s(\n)\nelse:\n    b\n", "if a:\n    u\n    s(\n)\n    v\nelse:\n    b\n"),
    ],
)
def test_lines_are_inserted_around_a_statement(before: str, after: str) -> None:
    code = Code(before)
    statement = code.statement("s(")
    assert code.edited(op.InsertBefore(statement, ("u",)), op.InsertAfter(statement, ("v",))) == after


def test_lines_are_inserted_around_a_loop() -> None:
    code = Code("def g():\n    for x in y:\n        z\n        # end\n\n    return\n")
    loop = code.statement("for")
    expected = "def g():\n    u\n    for x in y:\n        z\n        # end\n    v\n\n    return\n"
    assert code.edited(op.InsertBefore(loop, ("u",)), op.InsertAfter(loop, ("v",))) == expected


@pytest.mark.parametrize("text", ["a; s()\n", "if a: s()\n"])
@pytest.mark.parametrize("operation", [op.InsertBefore, op.InsertAfter])
def test_no_line_is_inserted_around_a_statement_that_shares_its_own(text: str, operation: type) -> None:
    code = Code(text)
    with pytest.raises(RenderError):
        code.edited(operation(code.statement("s("), ("u",)))


def test_a_decorator_goes_below_those_that_are_there() -> None:
    code = Code("class A:\n    @b\n    # why\n    async def f(self): pass\n")
    expected = "class A:\n    @b\n    # why\n    @torch.no_grad()\n    async def f(self): pass\n"
    assert code.edited(op.AddDecorator(code.statement("async def"), "torch.no_grad()")) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with f():\n    a\n    b\nc\n", "a\nb\nc\n"),
        ("with f(): a; b\nc\n", "a; b\nc\n"),
        ("if x:\n\twith f():\n\t\ta\n\t\tif b:\n\t\t\tc\n", "if x:\n\ta\n\tif b:\n\t\tc\n"),
        ("with f():\r\n  a\r\n  b\r\n", "a\r\nb\r\n"),
        ("with f():\n    a = '''\n    one\n    '''\n    b\n", "a = '''\n    one\n    '''\nb\n"),
        ("with f():\n    a = (1,\n         2)\n    b = 3 \\\n        + 4\n", "a = (1,\n     2)\nb = 3 \\\n    + 4\n"),
        ("with f():\n    a\n\n    # why\n    b\n    # end\n", "a\n\n# why\nb\n# end\n"),
        ("with f():\n    a = 'x\\\n    y'\n", "a = 'x\\\n    y'\n"),
        ("with f():\n    a = (\n  1)\n", "a = (\n  1)\n"),
        ("with (f()):\n    a", "a"),
    ],
)
def test_a_with_is_dropped_and_its_body_kept(before: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.Dedent(code.statement("with"))) == after
    ast.parse(after)


@pytest.mark.parametrize("header", ["with f() as x", "with f(), g()", "async with f()"])
def test_a_with_that_does_more_is_not_dropped(header: str) -> None:
    code = Code(f"async def h():\n    {header}:\n        a\n")
    with pytest.raises(RenderError):
        code.edited(op.Dedent(code.statement(header)))


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        ("with f(), g() as x: pass\n", 0, "with g() as x: pass\n"),
        ("with f(), g() as x: pass\n", 1, "with f(): pass\n"),
        ("with (\n    f(),\n    g(),\n): pass\n", 1, "with (\n    f(),\n): pass\n"),
    ],
)
def test_an_item_of_a_with_is_dropped(before: str, index: int, after: str) -> None:
    code = Code(before)
    statement = code.statement("with")
    assert code.edited(op.RemoveWithItem(statement, statement.items[index])) == after


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ("import os\n\nx\n", op.AddImport("torch"), "import os\nimport torch\n\nx\n"),
        ("import torch\nx\n", op.AddImport("torch"), "import torch\nx\n"),
        ("import torch.nn\nx\n", op.AddImport("torch"), "import torch.nn\nx\n"),
        ("import torch as t\nx\n", op.AddImport("torch"), "import torch as t\nimport torch\nx\n"),
        ("from torch import nn\n", op.AddImport("torch", "nn"), "from torch import nn\n"),
        (
            "from torch import nn as n\n",
            op.AddImport("torch", "nn"),
            "from torch import nn as n\nfrom torch import nn\n",
        ),
        ("'''doc'''\nx\n", op.AddImport("torch"), "'''doc'''\n\nimport torch\nx\n"),
        ("# top\n\nx\n", op.AddImport("torch"), "# top\n\nimport torch\n\nx\n"),
        (
            "from __future__ import annotations\nx\n",
            op.AddImport("torch"),
            "from __future__ import annotations\n\nimport torch\nx\n",
        ),
        ("'''doc'''\nimport os\r\nx\n", op.AddImport("torch"), "'''doc'''\nimport os\r\nimport torch\nx\n"),
        ("import os", op.AddImport("torch"), "import os\nimport torch\n"),
    ],
)
def test_an_import_is_added_once_and_where_it_belongs(before: str, wanted: op.AddImport, after: str) -> None:
    code = Code(before)
    assert code.edited(wanted) == after
    assert Code(after).edited(wanted) == after


@pytest.mark.parametrize("text", ["torch = None\n", "def f(torch): pass\n", "import a as torch\n"])
def test_an_import_of_a_taken_name_is_refused(text: str) -> None:
    with pytest.raises(RenderError):
        Code(text).edited(op.AddImport("torch"))
