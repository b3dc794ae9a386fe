"""Autocast contexts, in every way of making and entering them."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import calls, model_of

PROGRAM = """
import torch
from contextlib import nullcontext
from torch.cuda.amp import autocast

def run(options, flag, device, ctx):
    {before}
    with {context}:
        loss.backward()
"""


@pytest.mark.parametrize(
    ("context", "device", "dtype", "enabled"),
    [
        ("torch.autocast('cuda')", "cuda", "", True),
        ("torch.autocast(device.type, torch.half)", None, "torch.float16", True),
        ("torch.amp.autocast('cpu', dtype=torch.bfloat16, enabled=flag)", "cpu", "torch.bfloat16", None),
        ("autocast()", "cuda", "", True),
        ("autocast(False)", "cuda", "", False),
        ("autocast(dtype=options.dtype)", "cuda", None, True),
        ("torch.autocast('cuda', **options)", "cuda", None, None),
        ("torch.no_grad(), autocast()", "cuda", "", True),
        ("autocast() if flag else nullcontext()", "cuda", "", True),
    ],
)
def test_contexts_are_read(context: str, device: str | None, dtype: str | None, enabled: bool | None) -> None:
    model = model_of(PROGRAM.format(before="pass", context=context))
    block = model.precision.around(calls(model, "backward")[0])
    assert block is not None
    found = block.autocast
    assert (found.device, found.dtype, found.enabled) == (device, dtype, enabled)


def test_a_context_may_be_held_by_a_variable() -> None:
    model = model_of(PROGRAM.format(before="held = autocast() if flag else ctx", context="held"))
    assert model.precision.around(calls(model, "backward")[0]) is not None


@pytest.mark.parametrize("context", ["torch.no_grad()", "ctx", "options.autocast()"])
def test_other_contexts_are_none(context: str) -> None:
    model = model_of(PROGRAM.format(before="pass", context=context))
    assert model.precision.around(calls(model, "backward")[0]) is None


def test_a_block_ends_at_a_function() -> None:
    model = model_of("import torch\nwith torch.autocast('cuda'):\n    def f(loss):\n        loss.backward()\n")
    assert isinstance(calls(model, "backward")[0], cst.Call)
    assert model.precision.around(calls(model, "backward")[0]) is None
