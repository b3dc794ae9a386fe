"""What methods of a model give that is differentiated, whatever they are called: ``policy.evaluate(x, actions)``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.freezing import unchained
from torchlint.semantics.autograd.frozen import Frozen
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.canonical import is_same


class ModelOutputs:
    """Finds it."""

    def __init__(self, evaluator: Evaluator, frozen: Frozen) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._frozen = frozen

    def is_one(self, value: cst.BaseExpression) -> bool:
        """Return whether the only model that a function runs with gradients gives a value, by a method of its own.

        Where several run, the one that gives it may be a teacher that other code has frozen.
        """
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        call = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT else None
        model = self._model(call) if isinstance(call, cst.Call) else None
        function = self._evaluator.definitions.enclosing_function(value)
        if model is None or call is None or function is None or self._evaluator.gradients.disabled(call):
            return False
        return all(is_same(model, other) for other in self._models(function)) and not self._is_frozen(model)

    def _models(self, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
        """The models that a function runs."""
        found = map(self._model, self._tree.below(function.body, cst.Call))
        yield from (model for model in found if model is not None)

    def _model(self, call: cst.Call) -> cst.BaseExpression | None:
        """The model that a call runs: itself, or by one of its methods."""
        for held in (call.func, call.func.value if isinstance(call.func, cst.Attribute) else None):
            if isinstance(held, (cst.Name, cst.Attribute)):
                value = self._evaluator.value(held)
                if (
                    value.kind is Kind.MODULE
                    and value.origin is not Origin.LOSS
                    and value.evidence >= Evidence.INFERRED
                ):
                    return held
        return None

    def _is_frozen(self, model: cst.BaseExpression) -> bool:
        model = unchained(model)
        return isinstance(model, (cst.Name, cst.Attribute)) and self._frozen.holds(model)
