"""Variables that carry a graph, since code detaches them in another place: ``self.first = x.detach()``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.differentiated import PASSES_ON
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import method_call


class CutOff:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def carries(self, value: cst.BaseExpression) -> bool:
        """Return whether a value is computed from a variable that the same function detaches elsewhere."""
        function = self._evaluator.definitions.enclosing_function(value)
        return function is not None and any(self._is_detached_in(name, function) for name in _leaves(value))

    def _is_detached_in(self, name: cst.Name, function: cst.FunctionDef) -> bool:
        bound = {id(binding.node) for binding in self._evaluator.flow.definitions(name)}
        detached = (a.value for a in self._tree.below(function.body, cst.Attribute) if a.attr.value == "detach")
        return any(
            isinstance(held, cst.Name)
            and held.value == name.value
            and not self._evaluator.gradients.disabled(held)
            and any(id(binding.node) in bound for binding in self._evaluator.flow.definitions(held))
            for held in detached
        )


def _leaves(value: cst.BaseExpression) -> Iterator[cst.Name]:
    """Yield the variables in sums and products whose graphs these carry."""
    method = method_call(value, *PASSES_ON)
    if isinstance(value, cst.Name):
        yield value
    elif method is not None:
        yield from _leaves(method.value)
    elif isinstance(value, cst.BinaryOperation):
        yield from _leaves(value.left)
        if isinstance(value.operator, (cst.Add, cst.Subtract, cst.Multiply)):
            yield from _leaves(value.right)
