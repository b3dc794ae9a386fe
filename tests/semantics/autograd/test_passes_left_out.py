"""A call is told not to train where a parameter that it gives says so before all that computes gradients."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.autograd.backward import Backward

PROGRAM = """
def step(batch, trains=True, optimizer=None):
    loss = batch.mean()
    if {test}:
        loss.backward()
    else:
        print(loss)

step({given})
"""


@pytest.mark.parametrize(
    ("test", "given", "only_runs"),
    [
        ("trains", "batch", False),
        ("trains", "batch, False", True),
        ("trains", "batch, trains=False", True),
        ("trains", "batch, trains=told", False),
        ("trains", "*batch, False", False),
        ("not trains", "batch", True),
        ("not trains", "batch, False", False),
        ("optimizer", "batch", True),
        ("optimizer", "batch, True, adam", False),
        ("loss", "batch, False", False),
    ],
)
def test_passes_left_out(test: str, given: str, only_runs: bool) -> None:
    """What a function leaves out depends on what it is given."""
    model = model_of(PROGRAM.format(test=test, given=given))
    backward = Backward(model.evaluator)
    (function,) = model.nodes(cst.FunctionDef)
    call = next(call for call in model.nodes(cst.Call) if model.code(call.func) == "step")
    assert backward.leaves_passes_out(call, function) is only_runs
