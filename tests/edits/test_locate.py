"""Ranges agree with libcst's own position providers on real code."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from tests.edits.support import Code
from torchlint.edits.locate import LocateError, Locator

STDLIB = Path(sysconfig.get_paths()["stdlib"])
MODULES = """
abc.py ast.py bisect.py calendar.py cmd.py code.py codeop.py colorsys.py contextlib.py copy.py csv.py dataclasses.py
dis.py enum.py fnmatch.py functools.py getpass.py glob.py gzip.py heapq.py hmac.py linecache.py netrc.py operator.py
queue.py random.py sched.py shlex.py textwrap.py this.py timeit.py token.py wave.py weakref.py
""".split()


def _offsets(text: str) -> list[int]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


@pytest.mark.parametrize("name", MODULES)
def test_every_call_of_the_standard_library_is_where_libcst_says(name: str) -> None:
    text = (STDLIB / name).read_bytes().decode("utf-8").replace("\f", " ")
    code = Code(text)
    positions = MetadataWrapper(code.module, unsafe_skip_copy=True).resolve(PositionProvider)
    starts = _offsets(text)
    for call in code.tree.nodes(cst.Call):
        place, position = code.locator.syntactic(call), positions[call]
        assert place.start == starts[position.start.line - 1] + position.start.column
        assert place.end == starts[position.end.line - 1] + position.end.column


@pytest.mark.parametrize("name", ["contextlib.py", "heapq.py", "textwrap.py"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_node_is_where_libcst_says(name: str, newline: str) -> None:
    text = (STDLIB / name).read_bytes().decode("utf-8").replace("\n", newline)
    code = Code(text)
    positions = MetadataWrapper(code.module, unsafe_skip_copy=True).resolve(PositionProvider)
    starts = _offsets(text)
    for node in code.tree.descendants(code.module):
        if node is code.module:
            continue
        place, position = code.locator.syntactic(node), positions[node]
        assert place.start == starts[position.start.line - 1] + position.start.column
        assert place.end == starts[position.end.line - 1] + position.end.column


@pytest.mark.parametrize(
    "text",
    [
        "f(x)",
        "f(x)\n",
        "def a():\n    return f(x)\ndef a():\n    return f(x)\n",
        "class A:\n    def a(self):\n        f(x)\nclass B:\n    def a(self):\n        f(x)\n",
        "if a:\n\tf(x)\n",
        "if a:\n  if b:\n        f(x)\n",
        "\f\ndef g():\n    f(x)\n",
        "x = 1; f(x)\n",
        "if a: f(x)\n",
        "y = \\\n    f(x)\n",
        "y = f'{f(x)}'\n",
        "g = lambda: f(x)\n",
        "def g(a=f(x)): pass\n",
        "@f(x)\ndef g(): pass\n",
        "y = 'ä' + f(x)\r\n",
        "match a:\n  case 1:\n    def g():\n      f(x)\n",
        "async def g():\n    async with f(x):\n        pass\n",
        "try:\n    pass\nexcept* f(x):\n    pass\n",
        "# f(x)\n'''f(x)'''\ny = (f(x)  # f(x)\n)",
    ],
)
def test_calls_are_found_in_every_place(text: str) -> None:
    code = Code(text)
    calls = code.tree.nodes(cst.Call)
    assert calls
    for call in calls:
        place = code.locator.syntactic(call)
        assert text[place.start : place.end] == "f(x)"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_last_line_without_newline_is_not_taken_for_one_with(newline: str) -> None:
    text = newline.join(["f(x)", "y = 1", "f(x)"])
    code = Code(text)
    assert [code.locator.syntactic(call).start for call in code.tree.nodes(cst.Call)] == [0, len(text) - 4]
    lines = ["a = '''", "    f(x)", "'''", "if a:", "    f(x)"]
    code = Code(newline.join(lines))
    (call,) = code.tree.nodes(cst.Call)
    assert code.locator.syntactic(call).end == code.locator.full(call).end == len(code.text)


def test_full_ranges_hold_the_parentheses_of_a_node() -> None:
    code = Code("y = ( a + b ).c()\n")
    operation = code.tree.nodes(cst.BinaryOperation)[0]
    full, syntactic = code.locator.full(operation), code.locator.syntactic(operation)
    assert code.text[full.start : full.end] == "( a + b )"
    assert code.text[syntactic.start : syntactic.end] == "a + b"


def test_nodes_without_a_known_parent_are_found_all_the_same() -> None:
    code = Code("def g():\n    a.f(x)\n")
    name = code.call("f").func
    assert isinstance(name, cst.Attribute)
    place = code.locator.full(name.attr)
    assert code.text[place.start : place.end] == "f"


def test_a_tree_of_another_text_is_refused() -> None:
    code = Code("f(x)\n")
    code.parsed.source.text = "g(x)\n"
    with pytest.raises(LocateError):
        Locator(code.parsed, code.tree.parent).syntactic(code.call("f"))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_that_recur_are_told_apart_by_the_module(newline: str, end: str) -> None:
    text = ("f(x)\ny\nf(x)" + end).replace("\n", newline)
    code = Code(text)
    places = [code.locator.syntactic(call) for call in code.tree.nodes(cst.Call)]
    assert [place.start for place in places] == [0, text.rindex("f")]
