"""Calls of functions that train unless they are told not to: ``self.iteration(batch, backprop=False)``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import is_none, literal


class ToldCalls:
    """Answers what a function leaves out for a call."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._skipped: dict[tuple[int, int], list[cst.CSTNode]] = {}

    def may_only_run(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Return whether a function computes gradients, but not for this call."""
        passes = self._backward.passes(function)
        return bool(passes) and all(self.is_left_out(one, function, call) for one in passes)

    def is_left_out(self, node: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Return whether a node in a function does not run for a call of it."""
        return any(self._tree.within(node, branch) for branch in self._left_out(function, call))

    def _left_out(self, function: cst.FunctionDef, call: cst.Call) -> list[cst.CSTNode]:
        key = id(function), id(call)
        if key not in self._skipped:
            self._skipped[key] = list(self._find(function, call))
        return self._skipped[key]

    def _find(self, function: cst.FunctionDef, call: cst.Call) -> Iterator[cst.CSTNode]:
        if any(argument.star for argument in call.args):
            return
        for branch in self._tree.below(function.body, cst.If):
            test, taken = branch.test, True
            if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
                test, taken = test.expression, False
            told = self._told(test, function, call)
            if told is not None and told is not taken:
                yield branch.body
            elif told is not None and branch.orelse is not None:
                yield branch.orelse

    def _told(self, test: cst.BaseExpression, function: cst.FunctionDef, call: cst.Call) -> bool | None:
        """What a call gives for the parameter that is tested, if that is ``True``, ``False`` or ``None``."""
        bindings = self._evaluator.flow.definitions(test) if isinstance(test, cst.Name) else ()
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER or not isinstance(test, cst.Name):
            return None
        param = next((p for p in parameters(function) if p.name.value == test.value), None)
        if param is None or self._evaluator.definitions.enclosing_function(test) is not function:
            return None
        given = argument_for(function, param, call, self._evaluator.definitions) or param.default
        if given is None:
            return None
        value = literal(given)
        return False if is_none(given) else value if isinstance(value, bool) else None
