"""Methods by which a model is used once it is trained: ``inference``, beside its ``forward``."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.entry_points import run_by_method
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import method_call

_INFERS = re.compile(r"^(inference|infer)$")
# Parts of a model, whose method the model calls where it may have switched gradients off.
_PART = re.compile(
    r"(Encoder|Decoder|Layer|Block|Cell|Net|Head|Heads|Embedding|Attention|Predictor|Loss|Adaptor|Layers)$"
)
_FORWARD = ("forward", "__call__")


class InferenceMethods:
    """Finds those that a model's users call."""

    def __init__(self, evaluator: Evaluator, backward: Backward, gradient_uses: GradientUses) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._gradient_uses = gradient_uses

    def first_pass(self, function: cst.FunctionDef) -> cst.Call | None:
        """Return the first call of a layer with parameters in such a method, None if gradients may be wanted or off."""
        if not _INFERS.match(function.name.value) or self._is_inner(function):
            return None
        if self._backward.passes(function) or self._gradient_uses.of_calls(function):
            return None
        calls = sorted(self._tree.below(function.body, cst.Call), key=self._tree.order)
        runs = (call for call in calls if self._runs_model(call))
        return next((call for call in runs if not self._evaluator.gradients.disabled(call)), None)

    def _is_inner(self, function: cst.FunctionDef) -> bool:
        """Whether a method belongs to no model, or to a part of one, or is called by modules of the file."""
        definitions = self._evaluator.definitions
        owner = definitions.owner(function)
        if owner is None or definitions.class_kind(owner) is not Kind.MODULE or _PART.search(owner.name.value):
            return True
        if "forward" not in definitions.methods(owner):
            return True
        calls = (c for c in self._tree.nodes(cst.Call) if method_call(c, function.name.value) is not None)
        return any(self._is_by_module(call, owner) for call in calls)

    def _is_by_module(self, call: cst.Call, owner: cst.ClassDef) -> bool:
        """Whether the model itself calls the method, or another module does for what may be one of its parts."""
        definitions = self._evaluator.definitions
        held = call.func.value if isinstance(call.func, cst.Attribute) else None
        receiver = definitions.receiver(held) if isinstance(held, cst.Name) else None
        if held is None or receiver is not None:
            return receiver is owner
        caller = definitions.enclosing_function(call)
        other = definitions.owner(caller) if caller is not None else None
        part = self._evaluator.value(held).definition
        may_be = part is owner or not isinstance(part, cst.ClassDef)
        return may_be and other is not owner and other is not None and definitions.class_kind(other) is Kind.MODULE

    def _runs_model(self, call: cst.Call) -> bool:
        """Whether a call runs a part that the object holds, or its own forward pass: ``self(x)``."""
        called = call.func
        held = called.value if isinstance(called, cst.Attribute) else called
        if not isinstance(held, cst.Name) or self._evaluator.definitions.receiver(held) is None:
            return False
        if called is held or (isinstance(called, cst.Attribute) and called.attr.value in _FORWARD):
            return True
        if self._evaluator.value(called).kind is Kind.MODULE:
            return True
        return isinstance(called, cst.Attribute) and run_by_method(called, self._evaluator) is not None
