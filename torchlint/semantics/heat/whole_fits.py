"""Calls that take all steps of a fit at once: ``torch.optim.LBFGS(...).step(closure)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator

_ITERATES = "torch.optim.LBFGS"
"""Runs its closure many times in a step, so that one step is enough."""


def is_whole_fit(step: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether an optimizer that iterates itself is made for a single step: what is around it is no step."""
    tree = evaluator.tree
    optimizer = step.func.value if isinstance(step.func, cst.Attribute) else None
    if not isinstance(optimizer, cst.Name) or not step.args:
        return False
    around = tree.enclosing(step, *LOOPS, cst.FunctionDef)
    made = [b.part for b in evaluator.flow.definitions(optimizer)]
    return bool(made and around is not None) and all(
        isinstance(one, cst.Call)
        and evaluator.names.qualified(one.func) == _ITERATES
        and tree.enclosing(one, *LOOPS, cst.FunctionDef) is around
        for one in made
    )
