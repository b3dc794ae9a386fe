"""Routines that evaluate and still need gradients: of their inputs, or for what they call."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.differentiating_models import differentiates
from torchlint.semantics.evaluation.model_classes import AUTOGRAD, ModelClasses
from torchlint.semantics.evaluation.other_files import takes_no_pass
from torchlint.semantics.values import Graph, Kind, Origin, Value
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.remembered import remembered
from torchlint.syntax.walk import children

# What is called so computes gradients, wherever it is defined.
_DIFFERENTIATES = re.compile(
    r"(^|(?<!requires)(?<!zero)(?<!no)(?<!set)(?<!clip)_)"  # but none of `requires_grad_`, `zero_grad`, ...
    r"(attack\w*|adversary|adversarial|perturb|pgd|fgsm|invert|inversion|optimi[sz]e\w*|adapt|attribute|attributions?|"
    r"saliency|grad_?cam|gradients?|grads?|jacobian|hessian|penalty|inner_loop|fine_?tune|fit|langevin|refine|"
    r"derivatives?)(_|$)"
)
_MINIMISES = re.compile(r"minimi[sz]e|newton|bfgs|odeint|(^|_)(jac|hess|grad|vjp|jvp)", re.IGNORECASE)
_PARAMETERS = frozenset(("params", "parameters", "weights", "fast_weights"))


class GradientUses:
    """Answers what of a routine needs gradients."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._classes = ModelClasses(evaluator)

    def of_model(self, model: Value, call: cst.Call) -> bool:
        """Return whether what a call runs of a model of the file differentiates, or that of one that may be it."""
        is_method = isinstance(call.func, cst.Attribute) and self._evaluator.value(call.func).kind is not Kind.MODULE
        return self._classes.may_differentiate(model, identifier(call.func) if is_method else "forward")

    def of_inputs(self, call: cst.Call) -> bool:
        """Return whether the routine around a call of a model asks for gradients of tensors, or the model gives some.

        ``x.requires_grad_()``, ``x.requires_grad = True``, ``Variable(x, requires_grad=True)``, not of parameters.
        """
        if self.says_so(call) or (differentiates(call, self._evaluator) and not self._is_plain(call)):
            return True
        function = self._evaluator.definitions.enclosing_function(call)
        if function is None:
            return False
        if self._is_differentiated(function):
            return True
        if any(map(self._takes_parameters, self._tree.below(function.body, cst.Call))):
            return True
        asking: list[cst.Call | cst.Assign] = [
            *self._tree.below(function.body, cst.Call),
            *self._tree.below(function.body, cst.Assign),
        ]
        return any(map(self._asks, asking))

    def _is_plain(self, call: cst.Call) -> bool:
        """Whether the file shows all that a model and the routine around its call compute: values, whatever the names.

        ``force = grip(signal)``, where neither takes derivatives.
        """
        made = self._evaluator.value(call.func).definition
        function = self._evaluator.definitions.enclosing_function(call)
        if not isinstance(made, cst.ClassDef) or function is None or not self._classes.never_differentiates(made):
            return False
        others = (each for each in self._tree.below(function.body, cst.Call) if each is not call)
        return all(map(self._classes.only_computes, others))

    @remembered
    def _is_differentiated(self, function: cst.FunctionDef) -> bool:
        """Whether a function is given to what differentiates through it: ``jacobian(predict, x)``, a minimiser."""
        given = (self._tree.parent(name) for name in self._tree.named(function.name.value))
        takers = (self._tree.parent(each) for each in given if isinstance(each, cst.Arg))
        names = (self._evaluator.names.qualified(each.func) or "" for each in takers if isinstance(each, cst.Call))
        if any(name.startswith(AUTOGRAD) for name in names):
            return True
        around = (self._tree.enclosing(call, cst.Lambda, cst.FunctionDef) for call in self._evaluator.callers(function))
        handed = (self._tree.parent(each) for each in around if isinstance(each, cst.Lambda))
        calls = (self._tree.parent(each) for each in handed if isinstance(each, cst.Arg))
        return any(isinstance(call, cst.Call) and _MINIMISES.search(identifier(call.func)) for call in calls)

    def _takes_parameters(self, call: cst.Call) -> bool:
        """Whether a function of another file is given a loss and parameters: ``second(loss, net.parameters())``.

        Or a loss and a model: ``influence(net, loss)``.
        """
        if not isinstance(call.func, cst.Name) or len(call.args) < 2 or self._is_known(call):
            return False
        if self._evaluator.names.qualified(call.func) is not None:
            given = [self._evaluator.value(argument.value) for argument in call.args]
            losses = [v for v in given if v.is_tensor and v.origin is Origin.LOSS and v.graph is not Graph.DETACHED]
            if losses and any(v.kind is Kind.MODULE and v.origin is not Origin.LOSS for v in given):
                return True
        first, *rest = (argument.value for argument in call.args)
        value = self._evaluator.value(first)
        parameters = (r for r in rest if method_call(r, "parameters") is not None or identifier(r) in _PARAMETERS)
        return value.is_tensor and value.graph is not Graph.DETACHED and any(True for _ in parameters)

    def _is_known(self, call: cst.Call) -> bool:
        is_of_file = self._evaluator.definitions.definition(call.func) is not None
        return is_of_file or takes_no_pass(call.func, self._evaluator)

    def _asks(self, node: cst.Call | cst.Assign) -> bool:
        if isinstance(node, cst.Call):
            method = method_call(node, "requires_grad_")
            if method is not None:
                off = any(literal(argument.value) is False for argument in node.args)
                return not off and self._is_input(method.value)
            named = (a for a in node.args if a.keyword is not None and a.keyword.value == "requires_grad")
            return any(literal(argument.value) is not False for argument in named)
        if literal(node.value) is not False:
            places = (t.target for t in node.targets if isinstance(t.target, cst.Attribute))
            return any(p.attr.value == "requires_grad" and self._is_input(p.value) for p in places)
        return False

    def _is_input(self, tensor: cst.BaseExpression) -> bool:
        value = self._evaluator.value(tensor)
        return value.kind is not Kind.MODULE and value.origin is not Origin.PARAMETER

    @remembered
    def of_calls(self, function: cst.FunctionDef) -> bool:
        """Return whether a routine calls what may differentiate out of sight.

        A function of another file that says so by its name or is given a model.
        """
        return any(map(self.may_differentiate, self._tree.below(function.body, cst.Call)))

    def says_so(self, call: cst.Call) -> bool:
        """Return whether a call runs what is named for computing gradients, and is no model."""
        if method_call(call, "zero_grad") is not None:
            return False
        names = (_DIFFERENTIATES.search(n.lower()) for n in _names(call.func))
        return any(names) and self._evaluator.value(call.func).kind is not Kind.MODULE

    def may_differentiate(self, call: cst.Call) -> bool:
        """Return whether a call runs what may differentiate out of sight."""
        if self._is_known(call):
            return False
        if self.says_so(call):
            return True
        given = isinstance(call.func, cst.Name) and any(self._is_model(a.value) for a in call.args)
        return given and self._evaluator.names.qualified(call.func) is not None

    def _is_model(self, argument: cst.BaseExpression) -> bool:
        return self._evaluator.value(argument).kind is Kind.MODULE


def _names(expression: cst.CSTNode) -> list[str]:
    """Return the names and attributes in an expression."""
    found, stack = [], [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.Name, cst.Attribute)):
            found.append(identifier(node))
        stack += [node.value] if isinstance(node, cst.Attribute) else children(node)
    return found
