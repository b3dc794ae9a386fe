"""Where gradients are computed, and what these passes start from."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.differentiated import starts
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.grad_mode import FRAMEWORK_STEP_METHODS
from torchlint.semantics.evaluate.gradient_scalers import scales_and_steps
from torchlint.semantics.tables.names import OPTIONS
from torchlint.syntax.calls import identifier, literal

_GRADIENT_FUNCTIONS = frozenset(("torch.autograd.backward", "torch.autograd.grad"))


class Passes:
    """Finds the backward passes of a file."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._calls: list[cst.Call] | None = None
        self._returned: list[tuple[cst.FunctionDef, cst.BaseExpression]] | None = None

    def below(self, root: cst.CSTNode | None = None) -> list[cst.Call]:
        """Return the calls that compute gradients, those below ``root`` if one is given."""
        if self._calls is None:
            self._calls = [call for call in self._tree.nodes(cst.Call) if self._is_pass(call)]
        if root is None:
            return self._calls
        return [call for call in self._calls if any(ancestor is root for ancestor in self._tree.ancestors(call))]

    def _is_pass(self, call: cst.Call) -> bool:
        name = identifier(call.func)
        handed = (a.value for a in call.args if isinstance(a.value, cst.Attribute) and a.value.attr.value == "backward")
        if any(identifier(method.value) not in OPTIONS for method in handed):
            return True  # the method itself is handed on: `pending.append(loss.backward)`
        if isinstance(call.func, cst.Name) and self._is_prepared(call.func):
            return True
        if isinstance(call.func, cst.Attribute):
            if name in ("backward", "manual_backward"):
                return True
            if name != "grad" and not name.endswith("scaler"):
                return False
        if scales_and_steps(call, self._evaluator):
            return True
        return self._evaluator.names.qualified(call.func) in _GRADIENT_FUNCTIONS

    def _is_prepared(self, called: cst.Name) -> bool:
        """Whether a variable is a function of torch with some arguments: ``partial(torch.autograd.grad, ...)``."""
        if not self._tree.calls_named("partial"):
            return False
        made = (b.value for b in self._evaluator.flow.definitions(called) if isinstance(b.value, cst.Call))
        given = (each.args[0].value for each in made if identifier(each.func) == "partial" and each.args)
        return any(self._evaluator.names.qualified(each) in _GRADIENT_FUNCTIONS for each in given)

    def losses(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return the values from which the backward passes below ``root`` start, or that it hands to a framework."""
        return [*(start for call in self.below(root) for start in starts(call)), *self.handed_over(root)]

    def handed_over(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """The losses that step methods below ``root``, or ``root`` itself, return to a framework."""
        return [
            loss
            for function, loss in self.framework_losses()
            if function is root or any(ancestor is root for ancestor in self._tree.ancestors(function))
        ]

    def framework_losses(self) -> list[tuple[cst.FunctionDef, cst.BaseExpression]]:
        """Return what Lightning's ``training_step`` and the ``compute_loss`` of Hugging Face's trainers return."""
        if self._returned is None:
            self._returned = [
                (function, loss)
                for function in self._tree.nodes(cst.FunctionDef)
                if function.name.value in FRAMEWORK_STEP_METHODS and self._is_step_method(function)
                for statement in self._tree.nodes(cst.Return)
                if self._belongs(statement, function) and statement.value is not None
                for loss in _loss_of(statement.value)
            ]
        return self._returned

    def _is_step_method(self, function: cst.FunctionDef) -> bool:
        owner = self._evaluator.definitions.owner(function)
        base = FRAMEWORK_STEP_METHODS[function.name.value]
        return owner is not None and any(base in name for name in self._evaluator.definitions.ancestry(owner))

    def _belongs(self, node: cst.CSTNode, function: cst.FunctionDef) -> bool:
        return self._evaluator.definitions.enclosing_function(node) is function


def _loss_of(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the loss in what a step method returns: the value itself, ``{"loss": loss}``, ``(loss, outputs)``."""
    if isinstance(value, cst.Dict):
        elements = (element for element in value.elements if isinstance(element, cst.DictElement))
        yield from (element.value for element in elements if literal(element.key) == "loss")
    elif isinstance(value, cst.IfExp):
        yield from (*_loss_of(value.body), *_loss_of(value.orelse))
    elif isinstance(value, cst.Tuple):
        yield from (element.value for element in value.elements[:1])
    else:
        yield value
