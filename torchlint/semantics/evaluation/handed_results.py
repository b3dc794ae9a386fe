"""Results of models that are given to what needs their graphs: steps of the file, explainers, drawings of graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.scopes import targets
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.differentiating_models import is_derived
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

_DETACHES = ("detach", "item", "tolist", "numpy", "argmax", "argsort", "size")
# What differentiates a field, or goes back through a score, wherever it is defined.
_OPERATORS = re.compile(r"laplace|laplacian|curl|backprop\w*|make_dot|draw_graph")
# Made with a model, they compute losses and measures of what it gives.
_MEASURES = re.compile(r"loss|criterion|metric|meter|post_?process|decode|evaluat|accuracy|predict", re.IGNORECASE)
_MOST_LOSSES = 8
"""How many names of what is differentiated are looked up."""

_KNOWN = ("torch.", "builtins.", "numpy.", "torchvision.", "torchmetrics.")


class HandedResults:
    """Answers what becomes of a result in the routine around a call."""

    def __init__(self, evaluator: Evaluator, backward: Backward, gradient_uses: GradientUses) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._gradient_uses = gradient_uses

    def need_graph(self, call: cst.Call) -> bool:
        """Return whether the routine around a call of a model gives its result, or terms it keeps, to such code."""
        frame = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        held = list(self._held(call))
        if any(self._backward.reaches_from(name, frame) for name in held):
            return True
        results = [call, *(use for name in held for use in self._uses(name))]
        takers = [(taker, result) for result in results for taker in self._takers(result)]
        return any(self._needs_graph(*each, call.func) for each in takers) or self._keeps_terms(call)

    def is_array(self, call: cst.Call) -> bool:
        """Return whether NumPy computes with a result as it is, as it cannot with a graph: another runtime gives it."""
        statement = self._evaluator.flow.statement(call)
        is_held = isinstance(statement, cst.Assign) and statement.value is call
        results = [call, *(use for name in self._held(call) for use in self._uses(name) if is_held)]
        given = (self._tree.parent(result) for result in results)
        takers = (self._tree.parent(each) for each in given if isinstance(each, cst.Arg))
        named = (self._evaluator.names.qualified(each.func) for each in takers if isinstance(each, cst.Call))
        return any((name or "").startswith("numpy.") for name in named)

    def _held(self, call: cst.Call) -> Iterator[cst.Name]:
        """The variables that are given a result, or what is computed of it with its graph."""
        statement = self._evaluator.flow.statement(call)
        around = (method_call(ancestor, *_DETACHES) for ancestor in self._tree.ancestors(call))
        if isinstance(statement, cst.Assign) and not any(around) and self._tree.within(call, statement.value):
            yield from (name for target in statement.targets for name, _ in targets(target.target))

    def _uses(self, variable: cst.Name) -> Iterator[cst.Name]:
        for use in self._tree.named(variable.value):
            if any(binding.node is variable for binding in self._evaluator.flow.definitions(use)):
                yield use

    def _takers(self, result: cst.BaseExpression) -> Iterator[cst.Call]:
        """The calls that are given a result, or a part of it with its graph."""
        node: cst.CSTNode = result
        for ancestor in self._tree.ancestors(result):
            if isinstance(ancestor, cst.BaseStatement) or method_call(ancestor, *_DETACHES) is not None:
                return
            if isinstance(ancestor, cst.Call) and node is not ancestor.func:
                yield ancestor
            node = ancestor

    def _needs_graph(self, taker: cst.Call, result: cst.BaseExpression, model: cst.BaseExpression) -> bool:
        made = self._evaluator.definitions.definition(taker.func)
        if isinstance(made, cst.FunctionDef):
            return self._backward.differentiates_given(taker, result)
        if (self._evaluator.names.qualified(taker.func) or "").startswith(_KNOWN):
            return False
        name = identifier(taker.func)
        if is_derived(name) or _OPERATORS.fullmatch(name) or self._gradient_uses.says_so(taker):
            return True
        held = taker.func.value if isinstance(taker.func, cst.Attribute) else None
        return any(self._explains(each, model) for each in (taker.func, held) if each is not None)

    def _explains(self, explainer: cst.BaseExpression, model: cst.BaseExpression) -> bool:
        """Whether an object of another file was made for a model: ``cam = LayerCAM(model)``, ``cam(label, scores)``."""
        if isinstance(explainer, cst.Name):
            values = [binding.value for binding in self._evaluator.flow.definitions(explainer)]
        else:
            held = explainer.value if isinstance(explainer, cst.Attribute) else None
            owner = self._evaluator.definitions.receiver(held) if isinstance(held, cst.Name) else None
            if owner is None or not isinstance(explainer, cst.Attribute):
                return False
            values = [each.value for each in self._evaluator.definitions.attribute(owner, explainer.attr.value)]
        makers = (value for value in values if isinstance(value, cst.Call))
        return any(
            any(is_same(argument.value, model) for argument in maker.args)
            and not _MEASURES.search(identifier(maker.func))
            and self._evaluator.definitions.definition(maker.func) is None
            and not (self._evaluator.names.qualified(maker.func) or "").startswith(_KNOWN)
            for maker in makers
        )

    def _keeps_terms(self, call: cst.Call) -> bool:
        """Whether what the pass around a call differentiates is read of the model: ``(vae.fit + vae.spread)``."""
        frame = self._tree.enclosing(call, cst.For, cst.While, cst.FunctionDef) or self._tree.module
        losses: list[cst.CSTNode] = list(self._backward.losses(frame))
        for loss in losses[:_MOST_LOSSES]:
            bindings = self._evaluator.flow.definitions(loss) if isinstance(loss, cst.Name) else []
            losses += (binding.value for binding in bindings if binding.value is not None and not binding.path)
        read = (part for loss in losses for part in self._tree.below(loss, cst.Attribute))
        return any(is_same(part.value, call.func) and not self._is_given_something(part) for part in read)

    def _is_given_something(self, method: cst.Attribute) -> bool:
        """Whether an attribute is a method that computes of what it is given: ``model.loss(x)``."""
        call = self._tree.parent(method)
        return isinstance(call, cst.Call) and call.func is method and bool(call.args)
