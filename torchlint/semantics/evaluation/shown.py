"""Forward passes in training code of which a program only shows the result: samples of a generator, reconstructions."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.detached import DetachedForwards
from torchlint.semantics.evaluation.differentiating_models import differentiates
from torchlint.semantics.evaluation.entry_points import has_layers
from torchlint.semantics.evaluation.fates import Fate, names_bound
from torchlint.semantics.evaluation.inference import Inference, InferenceCall
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.pictures import PICTURES
from torchlint.semantics.values import Value
from torchlint.syntax.calls import identifier
from torchlint.syntax.remembered import remembered

_DEPTH = 3
_COUNTS = "builtins.enumerate"
# What is done to what was trained, or is to be: transforms have no modes, and no weights to load.
_OF_MODELS = frozenset(("eval", "train", "state_dict", "load_state_dict", "zero_grad", "named_parameters"))


class ShownForwards:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, inference: Inference, detached: DetachedForwards) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._inference = inference
        self._fates = detached.fates

    @remembered
    def call(self, call: cst.Call) -> InferenceCall | None:
        """Return the inference call that a call of a model is, if all that comes of it are pictures."""
        if not self.pictured or not isinstance(call.func, (cst.Name, cst.Attribute)) or not self._is_shown(call, 0):
            return None
        called = self._inference.run_by_step(call) or call.func
        model = self._inference.called_model(called)
        if model is None or not self._learns(called, model):
            return None
        return InferenceCall(
            self._evaluator.definitions.enclosing_function(call),
            Evidence.INFERRED,
            trains=False,
            frozen=self._inference.is_frozen(called),
            is_generator=False,
            returns_host_values=True,
            switches_off=self._inference.switches_off(called, model),
            needs_gradients=self._needs_gradients(call, model),
            is_part=True,
            in_loop=False,
            is_dry_run=False,
        )

    def _needs_gradients(self, call: cst.Call, model: Value) -> bool:
        """Whether the model or its terms are differentiated; what the routine asks of other inputs says nothing."""
        if self._inference.gradient_uses.of_model(model, call) or differentiates(call, self._evaluator):
            return True
        return self._inference.handed_results.need_graph(call)

    def _learns(self, called: cst.Name | cst.Attribute, model: Value) -> bool:
        """Whether a model has parameters, without which no graph is built: transforms of images have none."""
        if self._inference.trained_calls.include(called):
            return True
        if model.evidence < Evidence.INFERRED:
            return False
        usage = self._evaluator.usage
        if identifier(called) in usage.names_of_models() or not _OF_MODELS.isdisjoint(usage.attributes(called)):
            return True
        return isinstance(model.definition, cst.ClassDef) and has_layers(model.definition, self._evaluator)

    @cached_property
    def pictured(self) -> frozenset[str]:
        """The names of variables of which a picture may be made, also by other variables: asked before their uses."""
        calls = self._tree.calls_named(*PICTURES)
        helpers = [each.name.value for each in self._tree.nodes(cst.FunctionDef) if self._makes_pictures(each)]
        calls = [*calls, *self._tree.calls_named(*helpers)] if helpers else calls
        found = {name.value for call in calls for name in self._tree.below(call, cst.Name)}
        bound = [(_bound(each), each.value) for each in self._tree.nodes(cst.Assign)] if found else []
        for _ in range(_DEPTH):
            made = [value for names, value in bound if not found.isdisjoint(names)]
            found.update(name.value for value in made for name in self._tree.below(value, cst.Name))
        return frozenset(found)

    @cached_property
    def occur(self) -> bool:
        """Whether there is any such call in the file."""
        return bool(self.pictured) and any(self.call(call) is not None for call in self._tree.nodes(cst.Call))

    def _is_shown(self, expression: cst.BaseExpression, depth: int) -> bool:
        """Whether an expression only goes into pictures, also by variables."""
        node: cst.CSTNode = expression
        parent = self._tree.parent(node)
        while parent is not None:
            if isinstance(parent, cst.Call) and node is not parent.func and identifier(parent.func) in PICTURES:
                return True
            if isinstance(parent, cst.Assign):
                may_be = len(parent.targets) == 1 and not self.pictured.isdisjoint(_bound(parent))
                variables = list(names_bound(parent.targets[0].target)) if may_be and depth < _DEPTH else []
                return self._are_shown(variables, depth)
            if isinstance(parent, (cst.For, cst.CompFor)) and node is parent.iter:
                return depth < _DEPTH and self._are_shown(list(names_bound(_item(parent, self._evaluator))), depth)
            if isinstance(parent, cst.Call) and (taken := self._taken_by_helper(parent, node)) is not None:
                return depth < _DEPTH and self._are_shown([taken], depth)
            collected = self._fates.collecting(parent, node) if isinstance(parent, cst.Call) else None
            if collected is not None:
                return depth < _DEPTH and self._are_shown([collected], depth)
            if not self._carries(parent, node):
                return False
            node, parent = parent, self._tree.parent(parent)
        return False

    def _taken_by_helper(self, call: cst.Call, argument: cst.CSTNode) -> cst.Name | None:
        """The parameter of a function of the file that a call gives an argument to, which may make a picture of it."""
        function = self._evaluator.definitions.definition(call.func) if isinstance(argument, cst.Arg) else None
        if not isinstance(argument, cst.Arg) or not isinstance(function, cst.FunctionDef):
            return None
        if not self._makes_pictures(function) or function.asynchronous is not None:
            return None
        taken = parameter_for(function, argument, call, self._evaluator.definitions)
        return taken.name if taken is not None and not self._evaluator.definitions.yielded(function) else None

    @remembered
    def _makes_pictures(self, function: cst.FunctionDef) -> bool:
        return any(self._tree.within(call, function.body) for call in self._tree.calls_named(*PICTURES))

    def _are_shown(self, variables: list[cst.Name | None], depth: int) -> bool:
        """Whether a picture is made of one of the variables, and nothing of any that could want its graph."""
        if None in variables:
            return False
        uses = [use for variable in variables if variable is not None for use in self._fates.uses(variable)]
        shown = [use for use in uses if self._is_shown(use, depth + 1)]
        return bool(shown) and all(use in shown or self._fates.of(use) < Fate.USED for use in uses)

    def _carries(self, parent: cst.CSTNode, node: cst.CSTNode) -> bool:
        if isinstance(parent, (cst.Tuple, cst.List, cst.Element)):
            return True
        if isinstance(parent, cst.Call) and isinstance(self._tree.parent(parent), (cst.For, cst.CompFor)):
            return parent.func is not node and self._evaluator.names.qualified(parent.func) == _COUNTS
        return self._fates.carries(parent, node)


def _item(loop: cst.For | cst.CompFor, evaluator: Evaluator) -> cst.BaseExpression:
    """Return what a loop gives each item to, ``image`` of ``for i, image in enumerate(images)``."""
    target = loop.target
    counts = isinstance(loop.iter, cst.Call) and evaluator.names.qualified(loop.iter.func) == _COUNTS
    return target.elements[-1].value if counts and isinstance(target, cst.Tuple) else target


def _bound(statement: cst.Assign) -> set[str]:
    """The names of the variables that the first target of an assignment binds."""
    return {name.value for name in names_bound(statement.targets[0].target) if name is not None}
