"""Whether code asks if its module is being trained, before it does what belongs to training only."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import element_at, identifier, is_none, literal
from torchlint.syntax.canonical import canonical

# What a flag is called that says whether to train, to sample, or to drop.
_ASKS = re.compile(
    r"train|eval|(^|_)test|infer|determ|(apply|use|do|with|mc|force|enable)_?drop|(^|_)mc(_|$)|sampl|explor|(^|_)mode|"
    r"augment|(^|_)noise|corrupt|grad_enabled",
    re.IGNORECASE,
)
_ONLY_TRAINS = re.compile(r"(^|_)(pre)?train|loss|augment|corrupt|nois[ey]|perturb", re.IGNORECASE)
_ENDS = (cst.Return, cst.Raise)
_MAX_DEPTH = 3


class ModeQuestions:
    """Looks for the questions around a place in a method."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def guards(self, node: cst.CSTNode, method: cst.FunctionDef, depth: int = 0) -> bool:
        """Return whether a place in a method is only reached in some mode: by conditions, or by its callers."""
        if _ONLY_TRAINS.search(method.name.value) or any(self._holds(test) for test in self._tests(node, method)):
            return True
        is_known = depth < _MAX_DEPTH and method.name.value != "forward"  # which the calls of the module run as well
        calls = self._evaluator.callers(method) if is_known else []
        around = [(call, self._evaluator.definitions.enclosing_function(call)) for call in calls]
        return bool(around) and all(
            outer is not None and outer is not method and self.guards(call, outer, depth + 1) for call, outer in around
        )

    def knows(self, value: cst.BaseExpression | None, depth: int = 0) -> bool:
        """Return whether a value is computed from the mode, or an attribute that is: ``p if self.training else 0``."""
        if value is None or depth > _MAX_DEPTH:
            return False
        if any("train" in identifier(n).lower() for n in self._variables(value)):
            return True
        if isinstance(value, cst.Name):
            bound = self._evaluator.flow.definitions(value)
            default = self._default(value)
            if is_none(default) or (default is not None and literal(default) in (0, True, False)):
                return True  # the caller says when to drop, and how much
            return any(b.value is not None and self.knows(b.value, depth + 1) for b in bound) or (
                len(bound) > 1 and any(self._is_set_by_mode(b.node) for b in bound)
            )
        if isinstance(value, cst.Attribute):
            return self._attribute_knows(value)
        return any(self.knows(variable, depth + 1) for variable in self._variables(value))

    def is_never(self, value: cst.BaseExpression | None) -> bool:
        """Return whether a value is an attribute of the object that is 0 wherever it is set."""
        owner = self._owner(value)
        if owner is None or not isinstance(value, cst.Attribute):
            return False
        bound = self._evaluator.definitions.attribute(owner, value.attr.value)
        return bool(bound) and all(literal(each.value) == 0 for each in bound)

    def is_zero_at(self, node: cst.CSTNode, method: cst.FunctionDef, value: cst.BaseExpression) -> bool:
        """Return whether a place is only reached where a value is 0, by a flag too: ``self.flash = p == 0.0``."""
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor is method:
                return False
            if isinstance(ancestor, cst.If) and child is ancestor.body and self._implies_zero(ancestor.test, value, 0):
                return True
            child = ancestor
        return False

    def _implies_zero(self, test: cst.BaseExpression | None, value: cst.BaseExpression, depth: int) -> bool:
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self._implies_zero(test.left, value, depth) or self._implies_zero(test.right, value, depth)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            asked = test.comparisons[0]
            is_zero = isinstance(asked.operator, cst.Equal) and literal(asked.comparator) == 0
            return is_zero and canonical(test.left) == canonical(value)
        owner = self._owner(test)
        if owner is None or depth > _MAX_DEPTH or not isinstance(test, cst.Attribute):
            return False
        bound = self._evaluator.definitions.attribute(owner, test.attr.value)
        values = [element_at(each.value, each.path) for each in bound]
        return bool(values) and all(self._implies_zero(each, value, depth + 1) for each in values)

    def is_doubled(self, call: cst.Call, method: cst.FunctionDef) -> bool:
        """Return whether a method does to one tensor twice what a call does: two views of it are wanted."""
        given = call.args[0].value if call.args else None
        if not isinstance(given, cst.Name):
            return False
        name, here = canonical(call.func), self._bindings(given)
        others = (c for c in self._tree.below(method.body, cst.Call) if c is not call and c.args)
        return any(
            canonical(other.func) == name
            and canonical(other.args[0].value) == given.value
            and self._bindings(other.args[0].value) == here
            for other in others
        )

    def _bindings(self, name: cst.BaseExpression) -> set[int]:
        return {id(b) for b in self._evaluator.flow.definitions(name)} if isinstance(name, cst.Name) else set()

    def _tests(self, node: cst.CSTNode, method: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
        """The conditions around a place, and those before it that leave the method."""
        for ancestor in self._tree.ancestors(node):
            if ancestor is method:
                break
            if isinstance(ancestor, (cst.If, cst.IfExp, cst.While)):
                yield ancestor.test
            elif isinstance(ancestor, cst.BooleanOperation):
                yield ancestor.left
            elif isinstance(ancestor, cst.Match):
                yield ancestor.subject
        for claim in self._tree.below(method.body, cst.Assert):
            yield claim.test
        place = self._tree.order(node)
        for statement in self._tree.below(method.body, cst.If):
            ends = any(isinstance(part, _ENDS) for part in self._tree.descendants(statement.body))
            if ends and self._tree.order(statement) < place:
                yield statement.test

    def _holds(self, test: cst.BaseExpression) -> bool:
        """Whether a condition speaks of the mode, itself or by what its variables were made of."""
        for variable in self._variables(test):
            if _ASKS.search(identifier(variable)):
                return True
            bound = self._evaluator.flow.definitions(variable) if isinstance(variable, cst.Name) else []
            if any(b.value is not None and self.knows(b.value, 1) for b in bound) or self._is_flag(variable):
                return True
        return False

    def _is_flag(self, variable: cst.Name | cst.Attribute) -> bool:
        """Whether a variable is a parameter that callers switch on or off."""
        default = self._default(variable)
        return default is not None and isinstance(literal(default), bool)

    def _default(self, variable: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a variable is by default that is a parameter; None if it is none, or has to be given."""
        bound = self._evaluator.flow.definitions(variable) if isinstance(variable, cst.Name) else []
        return bound[0].value if len(bound) == 1 and bound[0].kind is BindingKind.PARAMETER else None

    def _variables(self, expression: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute]:
        return (n for n in self._tree.descendants(expression) if isinstance(n, (cst.Name, cst.Attribute)))

    def _is_set_by_mode(self, bound: cst.CSTNode) -> bool:
        """Whether a variable is bound in a branch that asks for the mode."""
        tests = (node.test for node in self._tree.ancestors(bound) if isinstance(node, cst.If))
        return any(self._holds(test) for test in tests)

    def _attribute_knows(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute is a property that asks for the mode, or is bound where the mode is set."""
        owner = self._owner(attribute)
        if owner is None:
            return False
        method = self._evaluator.definitions.method(owner, attribute.attr.value)
        if method is not None:
            return any("train" in identifier(n).lower() for n in self._tree.descendants(method.body))
        bound = self._evaluator.definitions.attribute(owner, attribute.attr.value)
        return any(each.method is not None and each.method.name.value in ("train", "eval") for each in bound)

    def _owner(self, value: cst.BaseExpression | None) -> cst.ClassDef | None:
        held = value.value if isinstance(value, cst.Attribute) else None
        return self._evaluator.definitions.receiver(held) if isinstance(held, cst.Name) else None
