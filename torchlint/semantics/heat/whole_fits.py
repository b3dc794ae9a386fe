"""Calls that take all steps of a fit at once: ``torch.optim.LBFGS(...).step(closure)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import bind, literal

_ITERATES = "torch.optim.LBFGS"
"""Runs its closure many times in a step, so that one step is enough."""
_MANY = 100
"""How often it does where that is a fit, whatever is around it."""


def is_whole_fit(step: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether an optimizer that iterates itself is made for a single step, or told to take hundreds in one."""
    tree = evaluator.tree
    optimizer = step.func.value if isinstance(step.func, cst.Attribute) else None
    if optimizer is None or not step.args:
        return False
    around = tree.enclosing(step, *LOOPS, cst.FunctionDef)
    made = [one if isinstance(one, cst.Call) else None for one in evaluator.held_by(optimizer)]
    return bool(made) and all(
        one is not None
        and evaluator.names.qualified(one.func) == _ITERATES
        and (_takes_many(one) or (around is not None and tree.enclosing(one, *LOOPS, cst.FunctionDef) is around))
        for one in made
    )


def _takes_many(made: cst.Call) -> bool:
    most = literal(bind(made.args).get("max_iter"))
    return isinstance(most, int) and most >= _MANY
