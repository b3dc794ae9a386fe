"""Gradient scalers of libraries that run the backward pass and the optimizer's step in one call."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier


def scales_and_steps(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call is one like ``loss_scaler(loss, optimizer, clip_grad=...)`` of timm and what follows it."""
    if not call.args or not identifier(call.func).endswith("scaler"):
        return False
    if evaluator.value(call.func).kind is Kind.SCALER:
        return True
    return any(evaluator.value(argument.value).kind is Kind.OPTIMIZER for argument in call.args[1:])
