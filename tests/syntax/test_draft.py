"""A draft says what the full tree says, or that it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import libcst as cst
import pytest

from torchlint.syntax.draft import draft
from torchlint.syntax.draft.nodes import NoDraftError
from torchlint.syntax.walk import children

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("torchlint", "tests", "fixtures") for path in (ROOT / folder).rglob("*.py"))
TEXTS = ("SimpleString", "ConcatenatedString", "FormattedString")
PLAIN = {"keyword", "star", "attr", "name", "names", "module", "asname", "operator", "conversion"}

SAMPLES = {
    "numbers too large": "x = 1e400, 1e400j, -1e999, 1e308, 1_0.5\n",
    "small statements on one line": "a = 1; b = 2\nif a: b = 3; c = 4\nfor x in y: pass\nd = 5\n",
    "elif and else": "if a:\n    b\nelif c:\n    d\nelse:\n    if e:\n        f\n    else: g\n",
    "header of several lines": "if (a and\n        b): c = 1\nwhile (\n    d\n): pass\n",
    "arguments out of order": "f(*a, x=1, *b, **c)\nf(a, *b, k=2)\nf(**a, k=1)\n",
    "parameters": "def f(a, b=1, /, c: int = 2, *d, e, f=3, **g) -> int:\n    return lambda *, h=4, **i: h\n",
    "bare star": "def f(a, *, b): ...\n",
    "boolean operators": "x = a and b and c or d and not e or f\n",
    "comparisons": "x = a < b <= c != d is not e not in f\n",
    "subscripts": "x[1], x[1, 2], x[1:2:3, ...], x[:, None], x[()], x[a, (b, c)], x[-1:]\n",
    "comprehensions": "[x for x in y if x if z for z in x]\n{k: v for k, v in d.items()}\n{a for a in b}\n",
    "generator as the argument": "f(c for c in d)\n",
    "imports": "import a.b.c as d, e\nfrom . import f\nfrom ..g.h import (i as j, k,)\nfrom l import *\n",
    "with": "with a as b, c() as (d, e), f: pass\nwith (g as h, i): pass\n",
    "try": "try:\n    a\nexcept (B, C) as d:\n    raise E from f\nexcept G: raise\nelse:\n    h\nfinally:\n    i\n",
    "asynchronous": "async def f():\n    async with a as b:\n        async for c in d:\n            await e\n"
    "    return [g async for g in h]\n",
    "generators": "def f():\n    a = yield\n    yield a, b\n    yield from c\n",
    "strings": "a = 'b' \"c\"\nd = b'e'\nf = f'{g!r:>{h}}{i}j' 'k'\n'''l'''\n",
    "numbers": "0x10, 1_000, 1e5, 2j, -1, True, None, ..., 1.50\n",
    "assignments": "a = b, *c = d\ne: int\nf: list[int] = []\ng += 1\nh @= i\n(j := k)\ndel l, m\ndel n[0]\n",
    "class": "@a.b(c)\nclass D(e.F, *g, metaclass=H, **i):\n    j = 1\n    @property\n    def k(self): return 1\n",
    "scopes": "def f():\n    global a, b\n    nonlocal c\n    assert a, b\n    return\n",
    "other white space": "if a:\r\n\tb = (  1 ,\r\n 2)  # c\r\nd = e . f [ 0 ]\r\n",
    "letters beyond ASCII": "Ä = 'ü'; ß = 'é'\nif Ä: ß = 1\n",
}


def differences(full: object, other: object, place: str = "") -> Iterator[str]:
    """Yield where the meaningful fields of two trees differ."""
    if isinstance(full, cst.CSTNode) and full.__class__.__name__ in TEXTS:
        if constant(full) != constant(other):
            yield f"{place}: {constant(full)!r} is {constant(other)!r}"
        return
    if full.__class__ is not other.__class__:
        yield f"{place}: {full.__class__.__name__} is {other.__class__.__name__}"
    elif isinstance(full, tuple) and isinstance(other, tuple):
        if len(full) != len(other):
            yield f"{place}: {len(full)} are {len(other)}"
        for index, pair in enumerate(zip(full, other, strict=False)):
            yield from differences(*pair, f"{place}[{index}]")
    elif isinstance(full, cst.BaseNumber) and isinstance(other, cst.BaseNumber):
        if full.evaluated_value != other.evaluated_value:
            yield f"{place}: {full.value} is {other.value}"
    elif isinstance(full, cst.CSTNode) and isinstance(other, cst.CSTNode):
        if isinstance(full, cst.Name) and full.value != other.value:  # type: ignore[attr-defined]
            yield f"{place}: {full.value}"
        yield from differences(tuple(children(full)), tuple(children(other)), f"{place}/{full.__class__.__name__}")
        for field in fields(full):
            if field.name in PLAIN:
                yield from plain_differences(getattr(full, field.name), getattr(other, field.name), place + field.name)
        if hasattr(full, "asynchronous") and (full.asynchronous is None) is not (other.asynchronous is None):  # type: ignore[attr-defined]
            yield f"{place}: async"
        if isinstance(full, cst.ImportFrom) and len(full.relative) != len(other.relative):  # type: ignore[attr-defined]
            yield f"{place}: relative"


def plain_differences(full: object, other: object, place: str) -> Iterator[str]:
    if isinstance(full, (cst.BaseUnaryOp, cst.BaseBinaryOp, cst.BaseBooleanOp, cst.BaseCompOp, cst.BaseAugOp)):
        if full.__class__ is not other.__class__:
            yield f"{place}: {full.__class__.__name__} is {other.__class__.__name__}"
    elif isinstance(full, (cst.CSTNode, tuple)):
        yield from differences(full, other, place)
    elif full != other:
        yield f"{place}: {full!r} is {other!r}"


def constant(node: object) -> object:
    """Return the value of a string; of one with replacement fields, the names in them."""
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)) and node.evaluated_value is not None:
        return node.evaluated_value
    names: list[str] = []
    waiting: list[cst.CSTNode] = [node] if isinstance(node, cst.CSTNode) else []
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, cst.Name):
            names.append(inner.value)
        waiting += reversed(children(inner))
    return tuple(names)


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_a_draft_is_the_full_tree_without_its_layout(text: str) -> None:
    assert list(differences(cst.parse_module(text), draft(text).module)) == []


def test_so_it_is_for_every_file_at_hand() -> None:
    compared = 0
    for path in FILES:
        try:
            text = path.read_text(encoding="utf-8")
            made = draft(text).module
        except (NoDraftError, UnicodeDecodeError):
            continue
        compared += 1
        assert list(differences(cst.parse_module(text), made)) == [], path
    assert compared > 0.9 * len(FILES) > 200


@pytest.mark.parametrize(
    "text",
    [
        "x = (\n",
        "print 'x'\n",
        "x = 1\0\n",
        "(" * 300 + ")" * 300,
        "x[(1, 2)]\n",
        "match x:\n    case 1: pass\n",
    ],
    ids=["broken", "Python 2", "null byte", "too deep", "tuple in brackets", "match"],
)
def test_what_it_cannot_tell_it_says(text: str) -> None:
    with pytest.raises(NoDraftError):
        draft(text)


def test_the_layout_is_not_there_to_be_read() -> None:
    call = draft("f(x)\n").module.body[0].body[0].value  # type: ignore[union-attr, index]
    assert isinstance(call, cst.Call)
    with pytest.raises(AttributeError):
        cst.Module(body=()).code_for_node(call)
    with pytest.raises(AttributeError):
        call.with_changes(func=cst.Name("g"))
