"""Modules of the file that freeze themselves where they are made, and those all of whose parts are frozen."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import bind, identifier, literal
from torchlint.syntax.remembered import remembered

_SWITCHES = ("requires_grad_", "unfreeze", "set_requires_grad", "requires_grad")


class FrozenClasses:
    """Tells them, given what the file freezes, and which places where attributes are assigned hold such a module."""

    def __init__(
        self, evaluator: Evaluator, frozen: Iterable[cst.BaseExpression], frozen_parts: frozenset[int]
    ) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._frozen = tuple(frozen)
        self._frozen_parts = frozen_parts

    @remembered
    def holds(self, made: cst.ClassDef) -> bool:
        """Return whether no parameter of a module asks for gradients once it is made, as far as its class shows."""
        if any(map(self._thaws, self._tree.descendants(made))):
            return False
        assigned = [t.target for t in self._tree.below(made, cst.AssignTarget) if isinstance(t.target, cst.Attribute)]
        parts = [target for target in assigned if self._is_part(target, made)]
        frozen_at = self._frozen_at(made)
        if frozen_at is not None:
            return all(self._is_earlier(part, frozen_at) for part in parts)
        return bool(parts) and all(id(part) in self._frozen_parts for part in parts)

    def _thaws(self, node: cst.CSTNode) -> bool:
        """Whether parameters are let ask for gradients, or are made so that they do."""
        if isinstance(node, cst.Assign):
            off = literal(node.value) is False
            return not off and any(identifier(t.target) == "requires_grad" for t in node.targets)
        if not isinstance(node, cst.Call):
            return False
        if identifier(node.func) in _SWITCHES:
            return not any(literal(argument.value) is False for argument in node.args)
        is_parameter = self._evaluator.value(node).origin is Origin.PARAMETER
        return is_parameter and literal(bind(node.args, ("data", "requires_grad")).get("requires_grad")) is not False

    def _is_part(self, target: cst.Attribute, owner: cst.ClassDef) -> bool:
        """Whether an assignment gives the object a module."""
        held = target.value
        if not isinstance(held, cst.Name) or self._evaluator.definitions.receiver(held) is not owner:
            return False
        return self._evaluator.value(target).kind is Kind.MODULE

    def _frozen_at(self, made: cst.ClassDef) -> cst.CSTNode | None:
        """Where ``__init__`` freezes the whole object, itself or by a method that it calls."""
        definitions = self._evaluator.definitions
        for one in self._frozen:
            if not isinstance(one, cst.Name) or definitions.receiver(one) is not made:
                continue
            function = definitions.enclosing_function(one)
            places: list[cst.CSTNode] = [one]
            if function is not None and function.name.value != "__init__":
                places = list(self._evaluator.callers(function)) if not self._is_asked(one) else []
            for place in places:
                within = definitions.enclosing_function(place)
                is_making = within is not None and within.name.value == "__init__" and self._tree.within(within, made)
                if is_making and not self._is_asked(place):
                    return place
        return None

    def _is_asked(self, node: cst.CSTNode) -> bool:
        """Whether something runs under a condition."""
        return isinstance(self._tree.enclosing(node, cst.If, cst.FunctionDef), cst.If)

    def _is_earlier(self, part: cst.Attribute, place: cst.CSTNode) -> bool:
        """Whether a part is there when everything is frozen: not one that ``__init__`` adds later."""
        within = self._evaluator.definitions.enclosing_function(part)
        if within is None or within.name.value != "__init__":
            return True
        return self._tree.order(part) < self._tree.order(place)
