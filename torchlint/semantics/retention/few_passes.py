"""Loops that run a few times only."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.heat.batch_sources import batch_evidence
from torchlint.semantics.heat.long_passes import is_named_training
from torchlint.semantics.heat.option_defaults import OptionDefaults
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import element_at, identifier, method_call
from torchlint.syntax.canonical import is_same

_FEW = 8
_SUMS = ("sum", "cumsum")
_JOINS = ("cat", "concat", "concatenate", "append", "extend")


def is_over_models(loop: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether a loop sets each thing that it goes over to evaluate or train: one of an ensemble of models."""
    target = loop.target if isinstance(loop, cst.For) else None
    return isinstance(target, cst.Name) and not evaluator.usage.attributes(target).isdisjoint(("eval", "train"))


class FewPasses:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._defaults = OptionDefaults(evaluator)

    def has(self, loop: cst.For | cst.While) -> bool:
        """Return whether a loop runs over layers, folds or keyword arguments, or a small constant number of times."""
        if not isinstance(loop, cst.For):
            return self._tops_up(loop)
        step = self._evaluator.iterated(loop)
        if step.kind is Kind.MODULE or any(e.kind is Kind.MODULE for e in step.elements or ()):
            return True
        if is_over_models(loop, self._evaluator):
            return True
        lists = self._given(loop.iter) if isinstance(loop.iter, cst.Name) else [loop.iter]
        sizes = [len(x.elements) for x in lists if isinstance(x, (cst.Tuple, cst.List, cst.Dict))]
        if sizes and len(sizes) == len(lists):
            return max(sizes) <= _FEW
        if self._is_over_keywords(loop):
            return True
        if self._is_counted(loop.iter) or self._is_cut_short(loop.iter) or self._is_over_folds(loop):
            return True
        return self._feeds_layers(loop) or self._runs_trainings(loop)

    def _tops_up(self, loop: cst.While) -> bool:
        """Whether each pass draws as many as there have to be, until they add up: the first draw mostly does.

        ``while lengths.cumsum(0)[-1] < count: lengths = torch.cat([lengths, draw(count)])``.
        """
        if not isinstance(loop.test, cst.Comparison) or len(loop.test.comparisons) != 1:
            return False
        bound, summed = loop.test.comparisons[0].comparator, self._tree.below(loop.test.left, cst.Call)
        names = self._tree.below(loop.test.left, cst.Name)
        values = [b.value for n in names for b in self._evaluator.flow.definitions(n)]
        summed += [value for value in values if isinstance(value, cst.Call)]
        if not isinstance(bound, cst.Name) or not any(identifier(call.func) in _SUMS for call in summed):
            return False
        joining = (call for call in self._tree.below(loop.body, cst.Call) if identifier(call.func) in _JOINS)
        drawn = (inner for call in joining for inner in self._tree.below(call, cst.Call) if inner is not call)
        given = (argument.value for call in drawn for argument in call.args)
        return any(is_same(part, bound) for each in given for part in (each, *self._tree.descendants(each)))

    def _runs_trainings(self, loop: cst.For) -> bool:
        """Whether each pass trains in a loop of its own, or by a function that does: rounds, tasks, settings."""
        calls = self._tree.below(loop.body, cst.Call)
        called = (self._evaluator.definitions.definition(call.func) for call in calls)
        bodies = [loop.body, *(function.body for function in called if isinstance(function, cst.FunctionDef))]
        loops = (inner for body in bodies for inner in self._tree.below(body, cst.For))
        is_step = batch_evidence(self._evaluator.iterated(loop)) is not None  # what `train` is given then is a batch
        return (not is_step and any(map(self._is_training, calls))) or any(
            method_call(call, "backward") is not None for inner in loops for call in self._tree.below(inner, cst.Call)
        )

    def _is_training(self, call: cst.Call) -> bool:
        """Whether a call runs a function of another file that trains a model, by its name."""
        definition = self._evaluator.definitions.definition(call.func)
        return definition is None and is_named_training(call, self._evaluator)

    def _is_counted(self, over: cst.BaseExpression) -> bool:
        """Whether a loop is over a range of a few numbers."""
        counts = isinstance(over, cst.Call) and identifier(over.func) == "range" and bool(over.args)
        return counts and isinstance(over, cst.Call) and all(self._is_small(argument.value) for argument in over.args)

    def _is_cut_short(self, over: cst.BaseExpression) -> bool:
        """Whether a loop is over the first few of something: ``items[:2]``."""
        cut = over.slice[0].slice if isinstance(over, cst.Subscript) and len(over.slice) == 1 else None
        return isinstance(cut, cst.Slice) and cut.upper is not None and self._is_small(cut.upper)

    def _is_small(self, bound: cst.BaseExpression) -> bool:
        """Whether a bound is a small number, also as a constant, a default, or an attribute that was given one."""
        given = [bound]
        if isinstance(bound, cst.Name):
            given = self._given(bound)
        elif isinstance(bound, cst.Attribute) and isinstance(bound.value, cst.Name):
            owner = self._evaluator.definitions.receiver(bound.value)
            made = self._evaluator.definitions.attribute(owner, bound.attr.value) if owner is not None else []
            values = [part for m in made if (part := element_at(m.value, m.path)) is not None]
            given = [g for v in values for g in (self._given(v) if isinstance(v, cst.Name) else [v])]
        given = [g for each in given for g in (self._given(each) if isinstance(each, cst.Name) else [each])]
        numbers = [self._number(each) for each in given]
        return bool(numbers) and all(isinstance(n, int) and n <= _FEW for n in numbers)

    def _number(self, bound: cst.BaseExpression) -> object:
        """What a bound is, by default or as all calls in the file have it; None if that is not known."""
        bindings = self._evaluator.flow.definitions(bound) if isinstance(bound, cst.Name) else []
        if any(binding.kind is not BindingKind.PARAMETER for binding in bindings):
            return None
        passed = passed_for(bindings[0], self._evaluator) if len(bindings) == 1 else []
        around = map(self._evaluator.definitions.enclosing_function, passed)
        if any(function is None for function in around):
            return None  # to try it out, as others do not
        numbers = [self._defaults.of_option(each) for each in passed or (bound,)]
        counts = [each for each in numbers if isinstance(each, int)]
        return max(counts) if len(counts) == len(numbers) else None

    def _given(self, name: cst.Name) -> list[cst.BaseExpression]:
        """What a name is bound to, a parameter to its default."""
        found: list[cst.BaseExpression] = []
        for binding in self._evaluator.flow.definitions(name):
            parameter = self._tree.parent(binding.node) if binding.kind is BindingKind.PARAMETER else None
            value = parameter.default if isinstance(parameter, cst.Param) else binding.value
            counts = binding.kind is BindingKind.AUGMENTED
            found.append(value if value is not None and not binding.path and not counts else name)
        return found

    def _is_over_folds(self, loop: cst.For) -> bool:
        """Whether a loop runs through the folds of a cross-validation: ``enumerate(folds.split(x))``."""
        over = loop.iter
        while isinstance(over, cst.Call) and identifier(over.func) in ("enumerate", "tqdm", "list") and over.args:
            over = over.args[0].value
        method = method_call(over, "split")
        made = self._given(method.value) if method is not None and isinstance(method.value, cst.Name) else []
        return any(isinstance(m, cst.Call) and "Fold" in identifier(m.func) for m in made)

    def _is_over_keywords(self, loop: cst.For) -> bool:
        """Whether the loop runs through the keyword arguments of its function, ``**features``."""
        method = method_call(loop.iter, "items", "keys", "values")
        mapping = method.value if method is not None else loop.iter
        if not isinstance(mapping, cst.Name):
            return False
        parameters = [self._tree.parent(binding.node) for binding in self._evaluator.flow.definitions(mapping)]
        return bool(parameters) and all(isinstance(p, cst.Param) and p.star == "**" for p in parameters)

    def _feeds_layers(self, loop: cst.For) -> bool:
        """Whether the loop runs through the layers of a module: dense blocks, skip connections."""
        function = (definitions := self._evaluator.definitions).enclosing_function(loop)
        owner = definitions.owner(function) if function is not None else None
        if owner is None or definitions.class_kind(owner) is not Kind.MODULE:
            return False
        held = loop.iter
        if isinstance(held, cst.Call) and identifier(held.func) in ("enumerate", "reversed") and held.args:
            held = held.args[0].value
        step = self._evaluator.value(held).iterated() if held is not loop.iter else self._evaluator.iterated(loop)
        if isinstance(held, cst.Attribute) and step.kind not in (Kind.BATCH, Kind.TENSOR):
            return True  # its layers, or a setting
        steps = {n.value for n in self._tree.descendants(loop.target) if isinstance(n, cst.Name)}
        for called in (call.func for call in self._tree.below(loop.body, cst.Call)):
            layer = isinstance(called, cst.Subscript) or (isinstance(called, cst.Name) and called.value in steps)
            if layer or (isinstance(called, cst.Call) and identifier(called.func) == "getattr"):
                return True
        return False
