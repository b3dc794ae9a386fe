"""What optimizers are made for."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.training.optimizers import calls_after, is_made_on_host, is_same_object, optimized_module


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("model.parameters()", "model"),
        ("params=self.net.parameters()", "self.net"),
        ("list(model.parameters())", "model"),
        ("model.layer.parameters()", "model.layer"),
        ("[{'params': model.parameters()}]", None),
        ("parameters", None),
        ("Net().parameters()", None),
    ],
)
def test_the_module_of_an_optimizer(given: str, expected: str | None) -> None:
    model = model_of(f"from torch import optim\noptim.SGD({given}, lr=0.1)\n")
    made = next(call for call in model.nodes(cst.Call) if model.qualified_name(call.func) == "torch.optim.SGD")
    found = optimized_module(made, model)
    assert (model.code(found) if found is not None else None) == expected


@pytest.mark.parametrize(
    ("made", "between", "expected"),
    [
        ("Net()", "pass", True),
        ("Net(4, bias=False)", "pass", True),
        ("Net().cuda()", "pass", False),
        ("Net().to(device)", "pass", False),
        ("Net(device=device)", "pass", False),
        ("Net(*options)", "pass", False),
        ("Net()", "net.cuda()", False),
        ("Net()", "net.eval()", True),
        ("given", "pass", False),
    ],
)
def test_models_that_are_on_the_host(made: str, between: str, expected: bool) -> None:
    model = model_of(f"net = {made}\n{between}\nmark(net)\n")
    name = next(name for name in reversed(model.nodes(cst.Name)) if name.value == "net")
    assert is_made_on_host(name, model) is expected


@pytest.mark.parametrize(("between", "expected"), [("pass", True), ("net = net.half()", False), ("net = Net()", False)])
def test_a_name_that_is_bound_anew(between: str, expected: bool) -> None:
    model = model_of(f"net = Net()\nfirst(net)\n{between}\nlast(net)\n")
    first = next(call for call in model.nodes(cst.Call) if model.code(call.func) == "first")
    last = next(call for call in model.nodes(cst.Call) if model.code(call.func) == "last")
    assert is_same_object(first.args[0].value, last, model) is expected
    assert last in list(calls_after(first, model))
    assert first not in list(calls_after(last, model))
