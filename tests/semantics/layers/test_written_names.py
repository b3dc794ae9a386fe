"""The names of layers, and those of their parameters that a file writes."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.layers.written_names import WrittenNames, is_same_name, text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('"a.bias"', "a.bias"),
        ('f"a{i}.bias"', "a\0.bias"),
        ('"%s.bias" % name', "\0.bias"),
        ('"{}.bias"', "\0.bias"),
        ('name + ".bias"', "\0.bias"),
        ("name", None),
        ("1 + 2", None),
    ],
)
def test_a_text_has_holes_for_what_it_does_not_show(written: str, shown: str | None) -> None:
    assert text(cst.parse_expression(written)) == shown


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("conv", "conv", True),
        ("conv", "conv1", False),
        ("conv\0", "conv1", True),
        ("conv\0", "norm1", False),
        ("conv\0", "\0", True),
        ("conv\0a", "conv\0b", False),
        ("#", "3", True),
        ("#", "\0", True),
        ("#", "fc", False),
    ],
)
def test_names_are_compared_but_for_their_holes(first: str, second: str, *, same: bool) -> None:
    assert is_same_name(first, second) is is_same_name(second, first) is same


PROGRAM = """
from collections import OrderedDict
from torch import nn

def layer():
    return nn.Conv2d(3, 3, 1)

class Net(nn.Module):
    def __init__(self):
        self.plain = nn.Conv2d(3, 3, 1)
        self.helped = layer()
        self.seq = nn.Sequential(nn.ReLU(), nn.Conv2d(3, 3, 1))
        self.named = nn.Sequential(OrderedDict([("key", nn.Conv2d(3, 3, 1))]))
        for i in range(3):
            self.add_module(f"conv{i}", nn.Conv2d(3, 3, 1))
"""


def test_a_layer_is_known_by_what_it_is_bound_to() -> None:
    model = model_of(PROGRAM)
    names = WrittenNames(model.evaluator)
    layers = [call for call in model.nodes(cst.Call) if model.qualified_name(call.func) == "torch.nn.Conv2d"]
    assert [sorted(names.of(layer)) for layer in layers] == [["helped"], ["plain"], ["1"], ["key"], ["conv\0"]]
