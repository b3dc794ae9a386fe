"""Calls of functions that train unless they are told not to: ``self.iteration(batch, backprop=False)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator


class ToldCalls:
    """Answers what a function leaves out for a call."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._backward = backward

    def may_only_run(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Return whether a function computes gradients, but not for this call."""
        passes = self._backward.passes(function)
        return bool(passes) and all(self.is_left_out(one, function, call) for one in passes)

    def is_left_out(self, node: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Return whether a node in a function does not run for a call of it."""
        return self._evaluator.told.leaves_out(node, function, call)
