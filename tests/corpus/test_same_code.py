"""Texts that are one program outside their edits, and texts that are not."""

from __future__ import annotations

import pytest

from tests.corpus.same_code import difference

SAME = {
    "argument": ("x = zeros(3).cuda()\ny\n", "x = zeros(3, device='cuda')\ny\n"),
    "two statements become one": ("x = zeros(3)\nx = x.cuda()\ny\n", "x = zeros(3, device='cuda')\ny\n"),
    "name of an import": ("import a, b\nc\n", "import a\nc\n"),
    "import": ("import b\nc\n", "c\n"),
    "with-block": ("with f():\n    a()\n    b()\nc()\n", "a()\nb()\nc()\n"),
    "loop": ("for p in q:\n    p.zero_()\nz()\n", "m.zero_grad()\nz()\n"),
    "one of two on a line": ("a = 1; b = 2\nc\n", "a = 1\nc\n"),
    "both of two on a line": ("a += b; c += -d\ne\n", "a += b.f(); c += (-d).f()\ne\n"),
    "one import of two lines": ("from a import b, c as d\nfrom e import f\ng\n", "from a import b\ng\n"),
    "body": ("if x:\n    f()\ny\n", "if x:\n    pass\ny\n"),
    "keyword after the only argument": ("f(a)\n", "f(a, b=1)\n"),
    "comment": ("f(a)  # one\n", "f(a)  # two\n"),
    "not ASCII": ("g('ä'); f(a)\n", "g('ä'); f(a, b=1)\n"),
    "CRLF": ("f(a)\r\ng(b)\r\n", "f(a, 1)\r\ng(b)\r\n"),
    "first decorator": ("def f():\n    x\n\n\ndef g():\n    y\n", "def f():\n    x\n\n\n@a()\ndef g():\n    y\n"),
    "decorator inside a class": ("class A:\n    def f(): x\n", "class A:\n    @a\n    def f(): x\n"),
    "lines that recur": ("def f():\n    a()\n    b()\n    a()\na()\n", "def f():\n    a(1)\n    b(1)\n    a(1)\na()\n"),
    "last lines, without a newline": ("import a\nb()\nc()", "import a"),
    "decorator": ("@a\n@b\ndef f():\n    x\n", "@a\ndef f():\n    x\n"),
}
DIFFERENT = {
    "nested deeper than before": ("def f():\n    x()\n    y()\n", "def f():\n    x()\ny()\n"),
    "string in a dedented block": ("with f():\n    a('''\n    x''')\nc\n", "a('''\nx''')\nc\n"),
    "statement that leaves its branch": ("with f():\n    if x:\n        a\n    b\n", "if x:\n    a\n    b\n"),
    "decorator and block": ("def f():\n    x\n    y\n", "@a\ndef f():\n    x\ny\n"),
    "no longer Python": ("f(a)\n", "f(a\n"),
    "string that opens": ("a = 1\nb = 2\n'''c'''\n", "a = '''1\nb = 2\n'''\n"),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_same(old: str, new: str) -> None:
    assert difference(old, new) == ""


@pytest.mark.parametrize(("old", "new"), DIFFERENT.values(), ids=DIFFERENT)
def test_different(old: str, new: str) -> None:
    assert difference(old, new)
