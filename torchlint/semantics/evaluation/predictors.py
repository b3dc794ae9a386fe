"""Objects that set a model to evaluate when they are made, and only run it from then on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.freezing import unchained
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.evaluated_models import EvaluatedModels
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import method_call

_MAKER = "__init__"
_LOADERS = ("initialize", "load_model", "setup_model", "init_model")
"""What a server calls once on a new object: those that handle requests load their model there."""
_PLAIN_BASES = frozenset(("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"))


# What a class is called whose objects do nothing but evaluate, whatever else the file trains.
_EVALUATOR = re.compile(r"(Infer|Evaluat|Predictor|Tester|Synthesi[sz]er)")


class Predictors:
    """Finds the calls of such models."""

    def __init__(self, evaluator: Evaluator, backward: Backward, evaluated_models: EvaluatedModels) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._evaluated_models = evaluated_models
        self._evaluated: dict[int, frozenset[str]] = {}

    def evaluates(self, called: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether what a method calls is a model that its object only evaluates, or a part of one.

        ``self.model.eval()`` stands where the object is made or loads it, and nothing in the file computes gradients.
        """
        attribute = _member(called)
        if attribute is None or function.name.value in (_MAKER, *_LOADERS):
            return False
        owner = self._evaluator.definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
        return owner is not None and attribute.attr.value in self._members(owner)

    def _members(self, owner: cst.ClassDef) -> frozenset[str]:
        """The attributes that hold models which the objects of a class only evaluate."""
        if id(owner) not in self._evaluated:
            self._evaluated[id(owner)] = frozenset() if self._may_train(owner) else frozenset(self._find(owner))
        return self._evaluated[id(owner)]

    def _may_train(self, owner: cst.ClassDef) -> bool:
        """Whether gradients are wanted or switched, or another file decides: of a base, which calls the methods."""
        if not self._is_plain(owner) or self._evaluator.gradients.contexts.stay_switched(owner):
            return True
        around = owner if _EVALUATOR.search(owner.name.value) else self._tree.module
        trained = self._backward.passes(around)
        return bool(trained) or any(method_call(c, "train") is not None for c in self._tree.below(around, cst.Call))

    def _is_plain(self, owner: cst.ClassDef) -> bool:
        """Whether the file shows all that a class inherits."""
        definitions, waiting = self._evaluator.definitions, [owner]
        for class_def in waiting:
            for base in class_def.bases:
                found = definitions.definition(base.value)
                if not isinstance(found, cst.ClassDef):
                    if self._evaluator.names.qualified(base.value) not in _PLAIN_BASES:
                        return False
                elif found not in waiting:
                    waiting.append(found)
        return True

    def _find(self, owner: cst.ClassDef) -> Iterator[str]:
        for method in self._makers(owner):
            for call in self._tree.below(method.body, cst.Call):
                evaluated = method_call(call, "eval")
                if evaluated is None or call.args or self._tree.enclosing(call, cst.If, cst.FunctionDef) is not method:
                    continue
                if self._evaluator.value(evaluated.value).kind in (Kind.MODULE, Kind.UNKNOWN):
                    yield from self._kept(unchained(evaluated.value), method)
            yield from self._given(method)

    def _given(self, method: cst.FunctionDef) -> Iterator[str]:
        """The attributes that are given a model which a function of the file has set to evaluate."""
        targets = self._tree.below(method.body, cst.AssignTarget)
        for attribute, path, value in (part for target in targets for part in self._parts(target)):
            if self._is_of_object(attribute) and self._evaluated_models.makes(value, path):
                yield attribute.attr.value

    def _parts(self, target: cst.AssignTarget) -> Iterator[tuple[cst.Attribute, tuple[int, ...], cst.BaseExpression]]:
        """The attributes that an assignment binds, with the part of the value that each of them gets."""
        statement = self._tree.parent(target)
        if not isinstance(statement, cst.Assign):
            return
        several = isinstance(target.target, (cst.Tuple, cst.List))
        bound = [e.value for e in target.target.elements] if isinstance(target.target, (cst.Tuple, cst.List)) else []
        for index, one in enumerate(bound if several else [target.target]):
            if isinstance(one, cst.Attribute):
                yield one, (index,) if several else (), statement.value

    def _makers(self, owner: cst.ClassDef) -> list[cst.FunctionDef]:
        """``__init__``, what a server calls after it, and the methods that they call on their object."""
        definitions = self._evaluator.definitions
        first = (definitions.method(owner, name) for name in (_MAKER, *_LOADERS))
        found = [method for method in first if method is not None]
        for function in found:
            for call in self._tree.below(function.body, cst.Call):
                called = definitions.definition(call.func) if self._is_of_object(call.func) else None
                if isinstance(called, cst.FunctionDef) and called not in found:
                    found.append(called)
        return found

    def _is_of_object(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is an attribute of ``self``."""
        owner = expression.value if isinstance(expression, cst.Attribute) else None
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None

    def _kept(self, model: cst.BaseExpression, method: cst.FunctionDef) -> Iterator[str]:
        """The attributes that a model has or is given to: ``self.m.eval()``, ``m.eval(); self.m = m``."""
        if isinstance(model, cst.Attribute) and self._is_of_object(model):
            yield model.attr.value
        names = {model.value} if isinstance(model, cst.Name) else set()
        for target, value in self._assigned(method):
            kept = unchained(value)
            if kept is model or (isinstance(kept, cst.Name) and kept.value in names):
                if isinstance(target, cst.Name):
                    names.add(target.value)
                elif isinstance(target, cst.Attribute) and self._is_of_object(target):
                    yield target.attr.value

    def _assigned(self, method: cst.FunctionDef) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """What a method assigns and to what, in document order."""
        statements: list[cst.Assign | cst.AnnAssign] = [
            *self._tree.below(method.body, cst.Assign),
            *self._tree.below(method.body, cst.AnnAssign),
        ]
        for statement in sorted(statements, key=self._tree.order):
            if isinstance(statement, cst.Assign):
                yield from ((target.target, statement.value) for target in statement.targets)
            elif statement.value is not None:
                yield statement.target, statement.value


def _member(called: cst.BaseExpression) -> cst.Attribute | None:
    """The attribute of a plain name with which ``self.model.encoder`` begins."""
    while isinstance(called, cst.Attribute):
        if isinstance(called.value, cst.Name):
            return called
        called = called.value
    return None
