"""Layers that write into what they are given: ``nn.ReLU(inplace=True)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import literal


def may_change_in_place(names: frozenset[str], loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop gives one of some variables to what may be such a layer of the file."""
    told = (arg for arg in evaluator.tree.nodes(cst.Arg) if arg.keyword is not None and arg.keyword.value == "inplace")
    if not any(literal(argument.value) is True for argument in told):
        return False
    calls = evaluator.tree.below(loop.body, cst.Call)
    others = (call for call in calls if evaluator.names.qualified(call.func) is None)
    given = (argument.value for call in others for argument in call.args)
    return any(isinstance(each, cst.Name) and each.value in names for each in given)
