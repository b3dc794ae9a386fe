"""What is asked first does not decide what is answered."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of

HANDED_ON = """
import torch
from torch import nn

class Small(nn.Module):
    def grow(self, sizes):
        return mark(sizes)

class Large(nn.Module):
    def grow(self, sizes):
        return 1

def ready(network):
    return network

def main():
    network = ready(Small())
    network.grow(torch.rand(3))
"""


@pytest.mark.parametrize("is_network_first", [True, False])
def test_who_calls_a_method_does_not_depend_on_what_was_asked_before(is_network_first: bool) -> None:
    model = model_of(HANDED_ON)
    sizes = marked(model)[0]
    network = next(r.value for r in model.nodes(cst.Return) if isinstance(r.value, cst.Name))
    if is_network_first:
        model.value(network)
    assert model.value(sizes).is_tensor


FLATTENED = """
import torch
from collections.abc import Mapping

def flatten(given, name, convert):
    items = {}
    for key, value in given.items():
        if isinstance(value, Mapping):
            items.update(flatten(value, name, convert))
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                items.update(flatten({str(i): item}, name, convert))
        elif isinstance(value, torch.Tensor) and value.ndimension() == 1:
            for i, item in enumerate(value):
                items.update(flatten({str(i): mark(item).item()}, name, convert))
        else:
            items[key] = convert(value)
    return items
"""


def test_what_a_cycle_cuts_short_does_not_count_for_those_who_ask_later() -> None:
    """What a function that calls itself is given depends on what it is given."""
    for index in range(len(model_of(FLATTENED).nodes(cst.Name))):
        model = model_of(FLATTENED)
        model.value(model.nodes(cst.Name)[index])
        assert model.value(marked(model)[0]).is_tensor
