"""What objects hold since they were made: tensors and arrays that nobody writes to, replaces or moves."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import FUNCTIONS, BindingKind
from torchlint.semantics.dataflow.writes import Writes
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, is_none, literal
from torchlint.syntax.canonical import canonical

_MAKERS = ("__init__", "__post_init__")
_MOVERS = ("to", "cuda", "_apply", "cpu")
_BY_NAME = frozenset(("setattr", "__setattr__", "vars"))
_KEEPS_TENSORS = frozenset(("torch.as_tensor", "torch.asarray"))
_HOST_KINDS = (Kind.NUMBER, Kind.SEQUENCE, Kind.NDARRAY)
_LEAVES = frozenset(("requires_grad_", "Parameter"))


class Held:
    """Answers what attributes hold as long as their object lives."""

    def __init__(self, evaluator: Evaluator, writes: Writes) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._definitions = evaluator.definitions
        self._writes = writes

    def is_kept(self, attribute: cst.BaseExpression) -> bool:
        """Return whether an attribute is bound where its object is made only, and written to nowhere."""
        owner, name = self._owner(attribute), identifier(attribute)
        bound = self._definitions.attribute(owner, name) if owner is not None else []
        if owner is None or not bound or not all(runs_while_made(each.method, self._evaluator) for each in bound):
            return False
        if any(len(self._definitions.attribute(heir, name)) > len(bound) for heir in self._heirs(owner)):
            return False
        if self._is_made_often(owner):
            return False
        text = canonical(attribute)
        stored = (t.target for t in self._tree.nodes(cst.AssignTarget) if isinstance(t.target, cst.Attribute))
        if any(one.attr.value == name and canonical(one) != text for one in stored):
            return False  # from outside of the class
        written = (place for place in self._writes.places() if isinstance(place, cst.Attribute))
        return all(place.attr.value != name or self._is_while_made(place, owner) for place in written)

    def _is_while_made(self, place: cst.Attribute, owner: cst.ClassDef) -> bool:
        """Whether an object writes to what it holds while it is made: ``self.weight[0] = 0.3`` in ``__init__``."""
        method = self._definitions.enclosing_function(place)
        return self._owner(place) is owner and method is not None and runs_while_made(method, self._evaluator)

    def _is_made_often(self, owner: cst.ClassDef) -> bool:
        """Whether the file makes such objects, which are no modules, in loops: their tensors are as new as they are."""
        maker = self._definitions.method(owner, "__init__")
        calls = self._evaluator.callers(maker) if maker is not None else []
        if self._definitions.class_kind(owner) is Kind.MODULE:
            return False
        return any(self._is_in_loop(call) for call in calls)

    def _is_in_loop(self, call: cst.Call) -> bool:
        function = self._definitions.enclosing_function(call)
        is_once = function is not None and function.name.value in _MAKERS
        return not is_once and isinstance(self._tree.enclosing(call, *LOOPS, *FUNCTIONS), LOOPS)

    def lies_apart(self, variable: cst.BaseExpression) -> bool:
        """Return whether what a variable holds moves with nothing: no buffer, no parameter, no object that moves it."""
        if isinstance(variable, cst.Name):
            return all(b.scope.node is self._tree.module for b in self._evaluator.scopes.bindings(variable))
        owner = self._owner(variable)
        if owner is None or self._definitions.class_kind(owner) not in (Kind.MODULE, Kind.INSTANCE):
            return False
        classes = [owner, *self._heirs(owner)]
        if any(self._definitions.method(each, name) is not None for each in classes for name in _MOVERS):
            return False
        if identifier(variable) in self._registered() or any(map(self._sets_by_name, classes)):
            return False
        return not self._is_leaf(owner, identifier(variable)) and not self._may_be_placed(owner, identifier(variable))

    def in_module(self, variable: cst.BaseExpression) -> bool:
        """Return whether an attribute belongs to a module, which can hold it as a buffer."""
        owner = self._owner(variable)
        return owner is not None and self._definitions.class_kind(owner) is Kind.MODULE

    def sources(self, variable: cst.BaseExpression, function: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return what a variable stands for: of a parameter of ``function`` what all calls pass, of others themselves.

        Nothing where the calls do not show it.
        """
        bound = self._evaluator.scopes.bindings(variable) if isinstance(variable, cst.Name) else []
        if not bound or bound[0].kind is not BindingKind.PARAMETER or bound[0].scope.node is not function:
            return [variable]
        param = self._tree.parent(bound[0].node)
        if len(bound) > 1 or not isinstance(param, cst.Param) or not isinstance(function, cst.FunctionDef):
            return []
        calls = self._evaluator.callers(function)
        passed = [argument_for(function, param, call, self._evaluator.definitions) for call in calls]
        return [] if any(each is None for each in passed) else [each for each in passed if each is not None]

    def is_settled(self, test: cst.BaseExpression) -> bool:
        """Return whether a condition asks for nothing but constants and what an object holds since it was made."""
        if literal(test) is not None or is_none(test):
            return True
        if isinstance(test, cst.UnaryOperation):
            return self.is_settled(test.expression)
        if isinstance(test, cst.BooleanOperation):
            return self.is_settled(test.left) and self.is_settled(test.right)
        if isinstance(test, cst.Comparison):
            return self.is_settled(test.left) and all(self.is_settled(each.comparator) for each in test.comparisons)
        return isinstance(test, cst.Attribute) and self.is_kept(test)

    def _owner(self, attribute: cst.BaseExpression) -> cst.ClassDef | None:
        if not isinstance(attribute, cst.Attribute) or not isinstance(attribute.value, cst.Name):
            return None
        return self._definitions.receiver(attribute.value)

    def _heirs(self, owner: cst.ClassDef) -> list[cst.ClassDef]:
        others = (each for each in self._tree.nodes(cst.ClassDef) if each is not owner)
        return [each for each in others if owner in self._definitions.family(each)]

    def _registered(self) -> set[object]:
        """The names under which buffers are registered, in this file."""
        calls = (
            call for call in self._tree.nodes(cst.Call) if identifier(call.func).startswith("register_") and call.args
        )
        return {literal(call.args[0].value) for call in calls}

    def _sets_by_name(self, owner: cst.ClassDef) -> bool:
        """Whether a class sets attributes by names that are made up at run time, after its objects are made."""
        named = [call for call in self._tree.below(owner, cst.Call) if identifier(call.func) in _BY_NAME]
        direct = [a for a in self._tree.below(owner, cst.Attribute) if a.attr.value == "__dict__"]
        functions = map(self._definitions.enclosing_function, (*named, *direct))
        return any(function is None or function.name.value not in _MAKERS for function in functions)

    def _makers(self, owner: cst.ClassDef, name: str) -> list[cst.Call]:
        """The calls in what is bound to an attribute."""
        made = (each.value for each in self._definitions.attribute(owner, name) if each.value is not None)
        return [call for value in made for call in self._tree.below(value, cst.Call)]

    def _may_be_placed(self, owner: cst.ClassDef, name: str) -> bool:
        """Whether an attribute may hold a tensor that somebody gave, who may have moved it already."""
        calls = (call for call in self._makers(owner, name) if call.args)
        given = (c.args[0].value for c in calls if self._evaluator.names.qualified(c.func) in _KEEPS_TENSORS)
        return any(self._evaluator.value(each).kind not in _HOST_KINDS for each in given)

    def _is_leaf(self, owner: cst.ClassDef, name: str) -> bool:
        """Whether an attribute is made to ask for a gradient: an optimizer then writes to it."""
        calls = self._makers(owner, name)
        flags = (bind(call.args).get("requires_grad") for call in calls)
        asks = any(flag is not None and literal(flag) is not False for flag in flags)
        return asks or any(identifier(call.func) in _LEAVES for call in calls)


def runs_while_made(method: cst.FunctionDef | None, evaluator: Evaluator) -> bool:
    """Return whether a method runs while its object is made, and at no other time that the file shows."""
    waiting = [method] if method is not None else []
    for each in waiting:
        if each.name.value in _MAKERS:
            continue
        callers = list(map(evaluator.definitions.enclosing_function, evaluator.callers(each)))
        if not callers or None in callers:
            return False
        waiting += [c for c in callers if c is not None and all(c is not known for known in waiting)]
    return any(each.name.value in _MAKERS for each in waiting)
