"""What a flag, an argument or a caller asks for is told from what every run does."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.semantics.model import Model, Options
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import walk


def target(text: str) -> tuple[Model, cst.Call]:
    model = Model(walk(cst.parse_module(text)), UNKNOWN_TARGET, Options())
    return model, next(call for call in model.nodes(cst.Call) if identifier(call.func) == "target")


@pytest.mark.parametrize(
    "text",
    [
        "if debug:\n    target()",
        "if not fast:\n    target()",
        "if a and torch.cuda.is_available():\n    target()",
        "target() if args.debug else None",
        "args.debug and target()",
        "try:\n    f()\nexcept RuntimeError:\n    target()",
        "def f(flag):\n    if not flag:\n        return\n    target()",
        "def debug_mode():\n    target()",
        "def g():\n    target()\nif debug:\n    g()",
        "class DebugHook:\n    def run(self):\n        target()",
        "match mode:\n    case 1:\n        target()",
    ],
)
def test_chosen(text: str) -> None:
    model, call = target(text)
    assert model.chosen(call)


@pytest.mark.parametrize(
    "text",
    [
        "target()",
        "if __name__ == '__main__':\n    target()",
        "import torch\nif torch.cuda.is_available():\n    target()",
        "if args.cuda:\n    target()",
        "if mode == 'train':\n    target()",
        "if True:\n    target()",
        "def f():\n    target()",
        "def g():\n    target()\nif debug:\n    g()\ng()",
        "def debug_mode():\n    target()\ndebug_mode()",
        "class DebugHook:\n    def run(self):\n        target()\nDebugHook().run()",
        "def f(x):\n    if x is None:\n        return\n    target()",
        "if target():\n    pass",
    ],
)
def test_not_chosen(text: str) -> None:
    model, call = target(text)
    assert not model.chosen(call)


@pytest.mark.parametrize(
    ("text", "survives"),
    [
        ("try:\n    target()\nexcept RuntimeError:\n    pass", True),
        ("try:\n    target()\nexcept (KeyError, Exception) as e:\n    print(e)", True),
        ("try:\n    target()\nexcept:\n    pass", True),
        ("import contextlib\nwith contextlib.suppress(RuntimeError):\n    target()", True),
        ("try:\n    target()\nexcept KeyError:\n    pass", False),
        ("try:\n    target()\nexcept RuntimeError:\n    raise", False),
        ("import sys\ntry:\n    target()\nexcept RuntimeError:\n    sys.exit(1)", False),
        ("try:\n    pass\nexcept RuntimeError:\n    target()", False),
    ],
)
def test_survives_error(text: str, survives: bool) -> None:
    model, call = target(text)
    assert model.survives_error(call) is survives


@pytest.mark.parametrize(
    ("text", "in_test"),
    [
        ("def test_x():\n    target()", True),
        ("import unittest\nclass A(unittest.TestCase):\n    def check(self):\n        target()", True),
        ("def test_epoch(x):\n    target()\ntest_epoch(1)", False),
        ("def train():\n    target()", False),
    ],
)
def test_in_test(text: str, in_test: bool) -> None:
    model, call = target(text)
    assert model.in_test(call) is in_test
