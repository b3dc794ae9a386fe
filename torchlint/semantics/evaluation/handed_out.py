"""Whether functions hand out tensors with their graph, which other files may want."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.running_sums import beside_totals
from torchlint.semantics.evaluation.entry_points import belongs_to_module
from torchlint.semantics.evaluation.fates import Fate, Fates, names_bound
from torchlint.semantics.evaluation.fed_passes import FedPasses
from torchlint.semantics.values import Graph

_EVALUATES = re.compile(r"(^|_)(eval|valid|test)")
"""What is called that measures: what it gives is a report, whoever hands that on."""

_DEPTH = 2
"""Through how many variables what a call gives is followed to what its caller returns."""


class HandedOut:
    """Answers it for a function that runs a model."""

    def __init__(self, evaluator: Evaluator, fed_passes: FedPasses) -> None:
        self._evaluator = evaluator
        self._fed_passes = fed_passes
        self._fates = Fates(evaluator)
        self._handing_on: dict[int, bool] = {}

    def are_host_values(
        self, function: cst.FunctionDef, call: cst.Call, *, alone: bool, is_trained: bool = False
    ) -> bool:
        """Return whether a function hands out no tensor with a graph, or only to functions that are no part of a model.

        ``alone``: the callers in the file do not count, since those of other files may want the graph.
        ``is_trained``: what the call gives is followed itself, since nothing is known of the method that it runs but
        that training starts from it.
        """
        alone = alone or self._fed_passes.may_run_unseen(function)
        callers = self._evaluator.callers(function) if not alone else ()
        if callers and not any(map(self.is_in_module, callers)):
            return _EVALUATES.search(function.name.value) is not None or not any(map(self._hands_on, callers))
        is_followed = is_trained and bool(self._evaluator.definitions.results(function))
        if is_followed and self._fates.of(call) is Fate.USED:
            return False
        returned = self._evaluator.returned(function)
        given = [returned, *(returned.elements or ()), *([returned.iterated()] if alone else ())]
        if (others := beside_totals(function, self._evaluator)) is not None:
            given = [self._evaluator.value(part) for part in others]
        return not any(v.is_tensor and v.graph is Graph.ATTACHED for v in given)

    def is_in_module(self, node: cst.CSTNode) -> bool:
        """Return whether a node stands in a method of a model."""
        function = self._evaluator.definitions.enclosing_function(node)
        return function is not None and belongs_to_module(function, self._evaluator)

    def _hands_on(self, call: cst.Call) -> bool:
        """Whether a statement that returns what a call gives, or what is computed of it, may hand out its graph."""
        function = self._evaluator.definitions.enclosing_function(call)
        if self._evaluator.gradients.disabled(call):
            return False
        if function is None:
            return self._evaluator.tree.enclosing(call, cst.Lambda) is not None
        if not self._is_given(call, function, _DEPTH):
            return False
        key = id(function)
        if key not in self._handing_on:
            self._handing_on[key] = False  # until it is known, for functions that call each other
            is_called = bool(self._evaluator.callers(function))
            self._handing_on[key] = not self.are_host_values(function, call, alone=not is_called)
        return self._handing_on[key]

    def _is_given(self, part: cst.CSTNode, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a part of an expression is returned or yielded, perhaps by a variable, or used in another scope."""
        tree = self._evaluator.tree
        if tree.enclosing(part, cst.Return, cst.Yield, cst.Lambda, cst.FunctionDef) is not function:
            return True
        statement = tree.enclosing(part, cst.Assign, cst.FunctionDef)
        targets = statement.targets if isinstance(statement, cst.Assign) and depth else ()
        bound = [name for target in targets for name in names_bound(target.target) if name is not None]
        return any(self._is_given(use, function, depth - 1) for name in bound for use in self._fates.uses(name))
