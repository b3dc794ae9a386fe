"""Loops each pass of which is more than a step: an epoch, a whole training, one of several models or checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.batch_sources import batch_evidence
from torchlint.semantics.heat.guards import Guards
from torchlint.semantics.heat.handfuls import is_handful
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal

Optimises = Callable[[cst.For | cst.While], cst.Call | None]

_COUNTED = re.compile(r"^_?(epoch|fold|ckpt|checkpoint)(_?(idx|id|i|num|nr|no|path|file|name))?$", re.IGNORECASE)
# What a function of another file is called that trains for long, or goes through all data.
_EPOCH = re.compile(r"^_*(\w+_)?(train|fit|learn|run|one|single|do)\w*epochs?(_\w+)?$", re.IGNORECASE)
_TRAINING = re.compile(
    r"^_*(local_|run_)?(fit|fine_?tune|pre_?train|re_?train|train|training)_?(model|network|net|loop|local|one_cycle)$|"
    r"^_*(fit|fine_?tune|pre_?train|re_?train|local_train(ing)?|run_training)$"
)
_TRAIN = ("train", "run")
_OVER_LOADER = re.compile(r"^_*(\w+_)?(train|fit|eval|evaluate|valid|validate|validation|test)(_\w+)?$")
_OF_A_STEP = re.compile(r"(step|batch|iter|iteration|mode)(_\w+)?$", re.IGNORECASE)
# How often a step updates a network, as agents and critics do: a few times.
_UPDATES = re.compile(r"update|grad|critic|inner|disc", re.IGNORECASE)
_TRAINER = re.compile(r"trainer$|learner$|^client", re.IGNORECASE)
_RUNNER = re.compile(r"trainer$|learner$", re.IGNORECASE)
_FITTED = re.compile(r"trainer|learner|model|net|classifier|regressor|agent|policy|client|^self$", re.IGNORECASE)
_MAX_DEPTH = 3


class LongPasses:
    """Tells such loops from those of steps, among the loops that run a model."""

    def __init__(self, evaluator: Evaluator, guards: Guards) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._guards = guards
        self._calls: frozenset[int] | None = None

    def has(self, loop: cst.For | cst.While, optimises: Optimises) -> bool:
        """Return whether each pass trains for long by a function that it calls, or is counted as an epoch.

        ``optimises`` is not kept, since it belongs to what holds this.
        """
        if self._calls is None:
            self._calls = self._find_calls(optimises)
        calls = self._calls
        if isinstance(loop, cst.For) and self._counts_epochs(loop.target):
            return True
        return any(
            self._is_long(call, calls) and self._guards.guard(call, loop) is None
            for call in self._tree.below(loop.body, cst.Call)
        )

    def _counts_epochs(self, target: cst.BaseExpression) -> bool:
        several = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        return any(isinstance(name, cst.Name) and _COUNTED.match(name.value) is not None for name in several)

    def _is_long(self, call: cst.Call, calls: frozenset[int]) -> bool:
        """Whether a call runs a function of the file that trains in a loop, or one of others that is named for it."""
        qualified = self._evaluator.names.qualified(call.func)  # by what it is called where it is imported from
        name = qualified.rpartition(".")[2] if qualified else identifier(call.func)
        if _OF_A_STEP.search(name):
            return False
        if id(call) in calls or isinstance(self._evaluator.definitions.definition(call.func), cst.FunctionDef):
            return id(call) in calls
        if _EPOCH.match(name) or (_TRAINING.match(name) and self._may_fit_model(call, name)):
            return True
        if name in _TRAIN and self._trains_by_name(call):
            return True
        return _OVER_LOADER.match(name) is not None and any(map(self._is_loader, call.args))

    def _may_fit_model(self, call: cst.Call, name: str) -> bool:
        """Whether what is called ``fit`` may fit a model: ``scaler.fit(x)`` fits numbers."""
        if not isinstance(call.func, cst.Attribute) or name != "fit" or self._evaluator.names.qualified(call.func):
            return True
        return _FITTED.search(identifier(call.func.value)) is not None or any(map(self._is_loader, call.args))

    def _trains_by_name(self, call: cst.Call) -> bool:
        """Whether ``train`` trains and sets no mode: ``train(model)``, ``trainer.train()``, ``trainer.run()``."""
        if isinstance(call.func, cst.Attribute):
            pattern = _RUNNER if identifier(call.func) == "run" else _TRAINER
            return pattern.search(identifier(call.func.value)) is not None
        named = identifier(call.func) != "run"  # which may be anything
        return named and bool(call.args) and not isinstance(literal(call.args[0].value), bool)

    def _is_loader(self, argument: cst.Arg) -> bool:
        return self._evaluator.value(argument.value).kind is Kind.DATALOADER

    def _find_calls(self, optimises: Optimises) -> frozenset[int]:
        """The calls of functions that train in a loop or go through a loader, also by functions that they call."""
        found: set[int] = set()
        seen: set[int] = set()
        functions = [function for function in self._tree.nodes(cst.FunctionDef) if self._loops(function, optimises)]
        for _ in range(_MAX_DEPTH):
            callers = []
            for function in functions:
                if id(function) not in seen:
                    seen.add(id(function))
                    callers += self._evaluator.callers(function)
            found.update(map(id, callers))
            holders = ((self._evaluator.definitions.enclosing_function(call), call) for call in callers)
            functions = [f for f, call in holders if f is not None and self._guards.guard(call, f) is None]
        return frozenset(found)

    def _loops(self, function: cst.FunctionDef, optimises: Optimises) -> bool:
        """Whether a function goes through a loop of training steps, or over batches."""
        loops: list[cst.For | cst.While] = [
            *self._tree.below(function.body, cst.For),
            *self._tree.below(function.body, cst.While),
        ]
        return any(self._is_of_steps(loop, optimises) and self._guards.guard(loop, function) is None for loop in loops)

    def _counts_updates(self, loop: cst.For) -> bool:
        """Whether a loop is over the updates of a step: ``range(self.gradient_steps)``."""
        made = loop.iter if isinstance(loop.iter, cst.Call) and identifier(loop.iter.func) == "range" else None
        return made is not None and any(_UPDATES.search(identifier(argument.value)) for argument in made.args)

    def _is_of_steps(self, loop: cst.For | cst.While, optimises: Optimises) -> bool:
        """Whether a loop trains or goes over batches; over a few things, or over the parts of a model, is no such."""
        if isinstance(loop, cst.For):
            taken = self._evaluator.iterated(loop)
            if batch_evidence(taken) is not None:
                return True
            parts = (taken, *(taken.elements or ()))
            if (
                is_handful(loop, self._evaluator)
                or self._counts_updates(loop)
                or any(p.kind in (Kind.MODULE, Kind.OPTIMIZER) for p in parts)
            ):
                return False
        return optimises(loop) is not None


def is_named_training(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call is of something named for a whole training, which is given a model or data.

    ``fit(model, x, y)``, ``train(model, loader)``, ``model.fit(x, y)``
    """
    qualified = evaluator.names.qualified(call.func)
    name = qualified.rpartition(".")[2] if qualified else identifier(call.func)
    if len(call.args) < len(("model", "data")) or not (_TRAINING.match(name) or name == "train"):
        return False
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    return owner is None or _FITTED.search(identifier(owner)) is not None
