"""Results of models that are given to what needs their graphs: steps of the file, explainers, drawings of graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.backward import ENDS, Backward
from torchlint.semantics.binding.scopes import targets
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.differentiating_models import is_derived
from torchlint.semantics.evaluation.fates import Fates
from torchlint.semantics.evaluation.other_files import explainers, learns_by_step, takes_no_pass
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

_WITHOUT = (*ENDS, "size")
# What differentiates a field, or goes back through a score, wherever it is defined.
_OPERATORS = re.compile(
    r"laplace|laplacian|curl|backprop\w*|make_dot|draw_graph|relprop\w*|relevance\w*|lrp|explain\w*|attribut\w*"
)
_GOES_BACK = re.compile(r"(^|_)(attack\w*|adversary|adversarial|fgsm|pgd|saliency|grad_?cam|jacobian|hessian)(_|$)")
# What compares a result with what it should be: `gradient_error(depth, target)`, of pixels beside each other.
_COMPARES = re.compile(r"(^|_)(mae|mse|rmse|errors?|err|metrics?|accuracy|acc|auc|iou|f1|f_?measure|psnr|ssim)$")
_COMPARED = len(("result", "target"))
_STEPS = re.compile(r"^(optimi[sz]e\w*|optimi[sz]er_step|backward\w*|update_weights|update_parameters|learn)$")
# Functions of NumPy that make an array of a tensor, which fails for one with a graph.
_CONVERTS = frozenset(
    f"numpy.{name}"
    for name in "argmax argmin argsort exp log array asarray concatenate stack vstack hstack save".split()
)


class HandedResults:
    """Answers what becomes of a result in the routine around a call."""

    def __init__(self, evaluator: Evaluator, backward: Backward, fates: Fates) -> None:
        self._evaluator = evaluator
        self._fates = fates
        self._tree = evaluator.tree
        self._backward = backward

    def need_graph(self, call: cst.Call) -> bool:
        """Return whether the routine around a call of a model gives its result, or terms it keeps, to such code."""
        frame = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        held = list(self._held(call))
        if any(self._backward.reaches_from(name, frame) for name in held):
            return True
        results = [call, *(use for name in held for use in self._fates.uses(name))]
        results += [use for result in results[1:] for name in self._held(result) for use in self._fates.uses(name)]
        takers = [(taker, result) for result in results for taker in self._takers(result)]
        return any(self._needs_graph(*each, call) for each in takers) or self.keeps_terms(call)

    def is_array(self, call: cst.Call) -> bool:
        """Return whether NumPy computes with a result as it is, as it cannot with a graph: another runtime gives it."""
        statement = self._evaluator.flow.statement(call)
        is_held = isinstance(statement, cst.Assign) and statement.value is call
        results = [call, *(use for name in self._held(call) for use in self._fates.uses(name) if is_held)]
        given = (self._tree.parent(result) for result in results)
        takers = (self._tree.parent(each) for each in given if isinstance(each, cst.Arg))
        named = (self._evaluator.names.qualified(each.func) for each in takers if isinstance(each, cst.Call))
        return any(name in _CONVERTS for name in named)

    def _held(self, call: cst.BaseExpression) -> Iterator[cst.Name]:
        """The variables that are given a result, or what is computed of it with its graph."""
        statement = self._evaluator.flow.statement(call)
        around = (method_call(ancestor, *_WITHOUT) for ancestor in self._tree.ancestors(call))
        if isinstance(statement, cst.Assign) and not any(around) and self._tree.within(call, statement.value):
            yield from (name for target in statement.targets for name, _ in targets(target.target))

    def _takers(self, result: cst.BaseExpression) -> Iterator[cst.Call]:
        """The calls that are given a result, or a part of it with its graph."""
        node: cst.CSTNode = result
        for ancestor in self._tree.ancestors(result):
            if isinstance(ancestor, cst.BaseStatement) or method_call(ancestor, *_WITHOUT) is not None:
                return
            if isinstance(ancestor, cst.Call) and node is not ancestor.func:
                yield ancestor
            node = ancestor

    def _needs_graph(self, taker: cst.Call, result: cst.BaseExpression, call: cst.Call) -> bool:
        if self._backward.differentiates_given(taker, result):
            return True
        if isinstance(self._evaluator.definitions.definition(taker.func), cst.FunctionDef):
            return False
        if takes_no_pass(taker.func, self._evaluator):
            return False
        name = identifier(taker.func)
        if learns_by_step(taker, self._evaluator):
            return True
        if len(taker.args) <= _COMPARED and _COMPARES.search(name.lower()) and not self._is_given_input(taker, call):
            return False
        if is_derived(name) or _OPERATORS.fullmatch(name) or _GOES_BACK.search(name.lower()):
            return True
        held = taker.func.value if isinstance(taker.func, cst.Attribute) else None
        return any(self._explains(each, call.func) for each in (taker.func, held) if each is not None)

    def _is_given_input(self, taker: cst.Call, call: cst.Call) -> bool:
        """Whether a call is given a variable of which a call of a model computes, or the model."""
        names = self._tree.below(call, cst.Name)
        sources = (source for name in names for source in self._evaluator.held_by(name) if source is not None)
        read = {name.value for name in (*names, *(n for each in sources for n in self._tree.below(each, cst.Name)))}
        given = (name for argument in taker.args for name in (argument.value, *self._tree.below(argument, cst.Name)))
        return any(isinstance(name, cst.Name) and name.value in read for name in given)

    def _explains(self, explainer: cst.BaseExpression, model: cst.BaseExpression) -> bool:
        """Whether an object of another file was made for a model: ``cam = LayerCAM(model)``, ``cam(label, scores)``."""
        calls = explainers(explainer, self._evaluator)
        return any(self._is_made_for(call, model) for call in calls)

    def _is_made_for(self, made: cst.CSTNode | None, model: cst.BaseExpression) -> bool:
        """Whether a call makes an object of another file for a model."""
        if not isinstance(made, cst.Call) or not any(is_same(argument.value, model) for argument in made.args):
            return False
        is_of_file = self._evaluator.definitions.definition(made.func) is not None
        is_known = is_of_file or takes_no_pass(made.func, self._evaluator)
        return identifier(made.func)[:1].isupper() and not is_known

    def _steps(self, model: cst.BaseExpression, frame: cst.CSTNode) -> bool:
        """Whether a model takes a step by what it keeps of its pass: ``model.optimize_parameters()``."""
        calls = (method_call(call) for call in self._tree.below(frame, cst.Call) if not call.args)
        return any(m is not None and _STEPS.search(m.attr.value) and is_same(m.value, model) for m in calls)

    def keeps_terms(self, call: cst.Call) -> bool:
        """Return whether the pass around a call of a model differentiates what that keeps: ``(vae.fit + vae.spread)``.

        Or what an object gives that was made for the model, and looks into it.
        """
        frame = self._tree.enclosing(call, cst.For, cst.While, cst.FunctionDef) or self._tree.module
        if self._steps(call.func, frame):
            return True
        function = self._evaluator.definitions.enclosing_function
        if not any(function(each) is function(call) for each in self._backward.passes(frame)):
            return False
        if self._backward.reads_of(call.func, frame, call):
            return True
        made = (
            statement for statement in self._tree.nodes(cst.Assign) if self._is_made_for(statement.value, call.func)
        )
        observers = (target.target for statement in made for target in statement.targets)
        later = [
            name.value for name in self._tree.below(frame, cst.Name) if self._tree.order(name) > self._tree.order(call)
        ]
        return any(identifier(each) in later and self._backward.reaches(each, frame) for each in observers)
