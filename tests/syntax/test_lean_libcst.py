"""libcst, imported as the command line does it, is libcst."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.installed import ROOT

DESCRIBE = """
import dataclasses, inspect, libcst
from libcst._nodes.base import CSTNode

def subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)

for cls in sorted({CSTNode, *subclasses(CSTNode)}, key=lambda cls: (cls.__module__, cls.__qualname__)):
    for _ in range(50):
        try:
            cls()  # which compiles its `__init__`, if that was put off
        except (TypeError, AttributeError):
            pass
    owners = [getattr(cls, name).__qualname__ for name in ("__eq__", "__repr__", "__hash__", "__post_init__")]
    fields = [(f.name, f.init, f.default is dataclasses.MISSING) for f in dataclasses.fields(cls)]
    signature = [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(cls).parameters.values()]
    print(cls, owners, fields, signature, cls.__match_args__, cls.__dataclass_params__.frozen)
"""

USE = """
import dataclasses, pathlib, libcst as cst

text = pathlib.Path(cst.__file__).with_name("tool.py").read_text()
module = cst.parse_module(text)
assert module.code == text
assert module.deep_clone().deep_equals(module)
name = cst.Name("a")
assert name != cst.Name("a") and hash(name) != hash(cst.Name("a"))
assert name.with_changes(value="b").value == "b" and name.value == "a"
match name:
    case cst.Name("a"):
        pass
    case _:
        raise AssertionError
try:
    cst.Name("")
except cst.CSTValidationError:
    pass
else:
    raise AssertionError("not validated")

@dataclasses.dataclass(frozen=True)
class Own(cst.Name):
    note: str = ""

assert Own("a", note="b").with_changes(value="c").note == "b"
assert repr(cst.Name("a")).startswith("Name(")
assert cst.metadata.CodePosition(1, 2) == cst.metadata.CodePosition(1, 2)
print(module.visit(cst.CSTTransformer()).code == text)
"""

LEAN = "from torchlint.syntax.lean_libcst import import_libcst; import_libcst()\n"


def output(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_its_nodes_are_declared_as_ever() -> None:
    described = output(LEAN + DESCRIBE)
    assert described == output(DESCRIBE)
    assert described.count("\n") > 150


@pytest.mark.parametrize("start", ["", LEAN])
def test_its_nodes_do_what_they_ever_did(start: str) -> None:
    assert output(start + USE) == "True\n"


DEFAULTS = """
import libcst as cst

def made(cls, **named):
    try:
        return {name: str(getattr(cls(**named), name)) for name in cls.__match_args__}
    except Exception as error:
        return type(error).__name__, str(error)

for _ in range(45):
    names = made(cst.Name, value="a"), made(cst.Name), made(cst.Name, value="a", other=1), made(cst.Name, value="")
    print(*names, made(cst.Arg, value=cst.Name("b")), made(cst.Comma))
"""


def test_its_nodes_are_made_the_same_before_and_after_their_init_is_compiled() -> None:
    lines = output(LEAN + DEFAULTS).splitlines()
    first, *others = [re.sub(r"0x\w+", "0x", line) for line in lines]
    assert set(others) == {first}
    assert "unexpected keyword argument 'other'" in first
    assert "missing 1 required positional argument: 'value'" in first


def test_a_field_can_be_set_which_is_all_the_difference() -> None:
    assert output(LEAN + "import libcst; n = libcst.Name('a'); n.value = 'b'; print(n.value)") == "b\n"


def test_dataclass_itself_is_left_alone() -> None:
    program = LEAN + "import dataclasses; print(dataclasses.dataclass.__name__)"
    assert output(program) == "dataclass\n"


def test_its_nodes_are_no_abstract_base_classes_and_only_they() -> None:
    program = """
import abc, libcst
from torchlint.syntax.lean_libcst import PlainABC

owners = {cls.__module__.partition(".")[0] for cls in PlainABC.__subclasses__()}
print(abc.ABC.__name__, type(libcst.CSTNode).__name__, owners)
"""
    assert output(LEAN + program) == "ABC type {'libcst'}\n"


def test_what_is_imported_already_stays() -> None:
    program = "import libcst; before = vars(libcst.Name)['__init__']\n" + LEAN
    assert output(program + "print(vars(libcst.Name)['__init__'] is before)") == "True\n"
