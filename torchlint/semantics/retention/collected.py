"""Comprehensions that run a training step for each batch and keep what it gives: ``[step(x) for x in loader]``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Hotness
from torchlint.semantics.retention.carrying import is_number
from torchlint.semantics.retention.stores import Retention
from torchlint.syntax.calls import method_call

_KEEPING = frozenset(f"builtins.{name}" for name in ("sum", "list", "tuple"))


class Collected:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness
        self._backward = backward

    def retention(self, node: cst.ListComp | cst.GeneratorExp) -> Retention | None:
        """Return what a comprehension over batches keeps with a graph that its step has differentiated itself."""
        value = node.elt
        if is_number(value) or node.for_in.inner_for_in is not None or self._evaluator.gradients.disabled(value):
            return None
        if isinstance(node, cst.GeneratorExp) and not self._is_drained(node):
            return None
        heat = self._hotness.heat(value)
        if heat is None or heat.root is not node or not self._backward.differentiates(value, node):
            return None
        if any(map(self._is_told_not_to, self._tree.below(value, cst.Call))):
            return None
        holder, frame = self._holder(node), self._evaluator.definitions.enclosing_function(node) or self._tree.module
        is_wanted = isinstance(holder, (cst.Name, cst.Attribute)) and self._backward.reaches(holder, frame)
        return Retention(
            holder,
            (value,),
            Evidence.INFERRED,
            is_backpropagated=is_wanted,
            is_remade=False,
            step_is_complete=True,
            is_part=False,
        )

    def _is_told_not_to(self, call: cst.Call) -> bool:
        """Whether a call tells a step to leave its backward pass to somebody else."""
        function = self._evaluator.definitions.definition(call.func)
        return isinstance(function, cst.FunctionDef) and self._backward.leaves_passes_out(call, function)

    def _is_drained(self, generator: cst.GeneratorExp) -> bool:
        """Whether all that a generator gives is kept: added up, or put into a list."""
        argument = self._tree.parent(generator)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        return self._evaluator.names.qualified(call.func) in _KEEPING or method_call(call, "extend") is not None

    def _holder(self, node: cst.ListComp | cst.GeneratorExp) -> cst.BaseExpression:
        """The variable that is bound to a list or a sum, or else that itself."""
        held: cst.BaseExpression = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, cst.Assign):
                return ancestor.targets[0].target
            if isinstance(ancestor, cst.Call) and held is node:
                method = method_call(ancestor, "extend")
                held = method.value if method is not None else ancestor
            if isinstance(ancestor, cst.BaseStatement):
                break
        return held
