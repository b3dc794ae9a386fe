"""Every operation on statements, in every style of writing that is known to go wrong."""

from __future__ import annotations

import ast
import re

import pytest

from tests.edits.support import Code
from torchlint.edits import operations as op
from torchlint.edits.errors import RenderError


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
        ("a\nif t.cuda.is_available():\n    s()\nb\n", "a\nb\n"),
        ("if t.cuda.is_available(): s()\nb\n", "b\n"),
        ("def f():\n    if t.cuda.is_available():\n        s()\n", "def f():\n    pass\n"),
        ("if t.cuda.is_available():\n    s()\n    b\n", "if t.cuda.is_available():\n    b\n"),
        ("if t.cuda.is_available():\n    s()\nelse:\n    b\n", "if t.cuda.is_available():\n    pass\nelse:\n    b\n"),
        (
            "if a:\n    b\nelif t.cuda.is_available():\n    s()\n",
            "if a:\n    b\nelif t.cuda.is_available():\n    pass\n",
        ),
        ("if t.cuda.is_available():\n    # why\n    s()\n", "if t.cuda.is_available():\n    # why\n    pass\n"),
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\n# wait here\ns()\n\nb\n", "a\n\nb\n"),
        ("a\n# other\ns()\nb\n", "a\n# other\nb\n"),
        ("a\n# wait here\n\ns()\nb\n", "a\n# wait here\n\nb\n"),
        ("a\n# see there,\n# where it waits\ns()\nb\n", "a\nb\n"),
        ("a\n# noqa: wait\ns()\nb\n", "a\n# noqa: wait\nb\n"),
        ("a\n# ---- wait ----\ns()\nb\n", "a\n# ---- wait ----\nb\n"),
        ("a\n# wait, then drop\ns()\ndel b\n", "a\n# wait, then drop\ndel b\n"),
        ("a\n# wait\ns()\nwait()\n", "a\n# wait\nwait()\n"),
        ("a\r\n# wait\r\ns()\r\nb\r\n", "a\r\nb\r\n"),
        ("if a:\n    # wait\n    s()\n\n    b\n", "if a:\n    b\n"),
        ("if a:\n    # other\n    s()\n\n    b\n", "if a:\n    # other\n\n    b\n"),
        ("if a.b == 'c' and not d:\n    s()\nb\n", "b\n"),
        ("if a():\n    s()\nb\n", "if a():\n    pass\nb\n"),
        ("if a:\n    b\nelse:\n    s()\n", "if a:\n    b\n"),
        ("if a:\n    b\nelse: s()\nc\n", "if a:\n    b\nc\n"),
        ("if a:\n    b\n# not a\nelse:\n    s()\nc\n", "if a:\n    b\n# not a\nelse:\n    pass\nc\n"),
        ("if a:\n    b\nelse:\n    # why\n    s()\n", "if a:\n    b\nelse:\n    # why\n    pass\n"),
        ("try:\n    a\nexcept b:\n    c\nfinally:\n    s()\n", "try:\n    a\nexcept b:\n    c\n"),
        ("try:\n    a\nfinally:\n    s()\n", "try:\n    a\nfinally:\n    pass\n"),
        ("for a in b:\n    c\nelse:\n    s()\nd\n", "for a in b:\n    c\nd\n"),
        ("if a:\n    b\nelif c:\n    s()\n", "if a:\n    b\nelif c:\n    pass\n"),
    ],
)
def test_what_is_there_for_its_sake_goes_with_a_statement(before: str, after: str) -> None:
    code = Code(before)
    assert code.edited(op.RemoveStatement(code.statement("s("), re.compile("wait"))) == after
    ast.parse(after)


def test_all_statements_of_a_body_leave_one_pass() -> None:
    code = Code("if x:\n    a; b\n    c\n")
    edits = [op.RemoveStatement(code.statement(name)) for name in "abc"]
    assert code.edited(*edits) == "if x:\n    pass\n"


def test_all_statements_of_a_body_take_the_test_of_a_backend_with_them() -> None:
    code = Code("x\nif t.cuda.is_available():\n    a; b\n    c\ny\n")
    edits = [op.RemoveStatement(code.statement(name)) for name in "abc"]
    assert code.edited(*edits) == "x\ny\n"
    assert code.edited(*edits[:2]) == "x\nif t.cuda.is_available():\n    c\ny\n"


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
