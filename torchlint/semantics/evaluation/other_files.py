"""What functions and classes of other files may do with results and models that they are given."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.autograd.updates import is_schedule
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import identifier, method_call

_WITHOUT_PASSES = (
    *("torch.", "torchvision.", "torchmetrics.", "accelerate.", "monai."),
    *("builtins.", "numpy.", "math.", "time.", "logging.", "tqdm."),
)
# Classes whose objects go back through what a model gives.
_EXPLAINERS = re.compile(
    r"C(AM|am)(pp|PlusPlus|Elementwise)?$|SHAP|Explain|Attribut|Salien|Relevance|LRP|Interpret|Attack|Adversar|Perturb"
)


def takes_no_pass(called: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether what is called is of a library that leaves backward passes to its user."""
    return (evaluator.names.qualified(called) or "").startswith(_WITHOUT_PASSES)


def makers(held: cst.BaseExpression, evaluator: Evaluator) -> list[cst.Call]:
    """Return the calls of classes that make what a variable or an attribute of the object holds."""
    calls = (value for value in evaluator.held_by(held) if isinstance(value, cst.Call))
    return [call for call in calls if identifier(call.func)[:1].isupper()]


def explainers(held: cst.BaseExpression, evaluator: Evaluator) -> list[cst.Call]:
    """Return those that make an object which goes back through what a model gives: ``LayerCAM(model)``."""
    return [call for call in makers(held, evaluator) if _EXPLAINERS.search(identifier(call.func))]


def learns_by_step(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether something takes a step by a loss that it is given, ``architect.step(loss)``: no schedule."""
    stepper = method_call(call, "step") if len(call.args) == 1 else None
    if stepper is None or evaluator.value(stepper.value).kind in (Kind.MODULE, Kind.OPTIMIZER):
        return False
    given = call.args[0].value
    is_loss = "loss" in identifier(given) or evaluator.value(given).origin is Origin.LOSS
    return is_loss and not is_schedule(stepper.value, evaluator)
