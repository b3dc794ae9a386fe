"""Results that outlive the function in which they are computed: on objects, in containers of others, by ``yield``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.container_methods import STORES
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call

_DEPTH = 4
"""Through how many variables a result is followed."""

_TAKES_VALUES = frozenset(("item", "detach", "tolist", "numpy", "data"))
_PARAMETERS = ("parameters", "named_parameters")
CACHES = frozenset(f"functools.{name}" for name in ("lru_cache", "cache", "cached_property"))
"""Decorators that keep what a function gives for the next time."""


class KeptResults:
    """Follows a result through the variables of its function."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def is_kept(self, call: cst.Call) -> bool:
        """Return whether what a call gives may be used with its graph after the function around it has ended.

        Not as what the function returns: that is asked of its callers.
        """
        return self._escapes(call, 0, set())

    def is_kept_by_caller(self, call: cst.Call) -> bool:
        """Return whether the function around a call keeps what it returns of it, or all callers of it do."""
        function = self._evaluator.definitions.enclosing_function(call)
        results = self._evaluator.definitions.results(function) if function is not None else []
        if function is None or not any(self._tree.within(call, result) for result in results):
            return False
        named = (getattr(each.decorator, "func", each.decorator) for each in function.decorators)
        if any(self._evaluator.names.qualified(each) in CACHES for each in named):
            return True
        callers = self._evaluator.callers(function)
        return bool(callers) and all(map(self.is_kept, callers))

    def _escapes(self, expression: cst.CSTNode, depth: int, seen: set[tuple[int, str]]) -> bool:
        node, parent = expression, self._tree.parent(expression)
        while parent is not None:
            if isinstance(parent, cst.Yield):
                return True
            if isinstance(parent, (cst.Return, cst.Expr, cst.Comparison, cst.FormattedStringExpression)):
                return False
            if isinstance(parent, cst.Attribute) and parent.attr.value in _TAKES_VALUES:
                return False
            if isinstance(parent, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
                bound = [t.target for t in parent.targets] if isinstance(parent, cst.Assign) else [parent.target]
                return any(self._is_kept_in(target, depth, seen) for target in bound)
            if isinstance(parent, cst.Call) and parent.func is not node and self._hands_out(parent, depth, seen):
                return True
            node, parent = parent, self._tree.parent(parent)
        return False

    def _is_kept_in(self, target: cst.BaseExpression, depth: int, seen: set[tuple[int, str]]) -> bool:
        """Whether something that is bound lives on outside of the function."""
        if isinstance(target, (cst.Tuple, cst.List)):
            return any(self._is_kept_in(element.value, depth, seen) for element in target.elements)
        if isinstance(target, cst.Subscript):
            return not self._is_own(target.value) or self._escapes_by(target.value, depth, seen)
        return not isinstance(target, cst.Name) or self._escapes_by(target, depth, seen)

    def _escapes_by(self, variable: cst.BaseExpression, depth: int, seen: set[tuple[int, str]]) -> bool:
        """Whether a variable of the function hands on what it holds; one that was ``seen`` is asked already."""
        if not isinstance(variable, cst.Name) or depth >= _DEPTH:
            return False
        scopes = self._evaluator.scopes
        scope = scopes.deciding(variable.value, scopes.scope(variable))
        if scope is not scopes.scope(variable):
            return True  # `nonlocal loss`
        if (key := (id(scope), variable.value)) in seen:
            return False
        seen.add(key)
        uses = (name for name in self._tree.named(variable.value) if name is not variable)
        own = (name for name in uses if scopes.deciding(name.value, scopes.scope(name)) is scope)
        return any(self._escapes(name, depth + 1, seen) for name in own if self._is_read(name))

    def _is_read(self, name: cst.Name) -> bool:
        return self._evaluator.scopes.made_by(name) is None

    def _hands_out(self, call: cst.Call, depth: int, seen: set[tuple[int, str]]) -> bool:
        """Whether a call that is given a result puts it where others find it, or differentiates it out of sight."""
        is_set = self._evaluator.names.qualified(call.func) == "builtins.setattr"
        if is_set or identifier(call.func) == "register_buffer":
            return True
        method = method_call(call, *STORES)
        if method is not None and isinstance(self._tree.parent(call), cst.Expr):
            if not self._is_own(method.value):
                return self._evaluator.value(method.value).kind is not Kind.UNKNOWN or self._is_of_object(method.value)
            return self._escapes_by(method.value, depth, seen)
        made = self._evaluator.definitions.definition(call.func)
        if isinstance(made, (cst.FunctionDef, cst.ClassDef)) or isinstance(call.func, cst.Attribute):
            return False
        return any(map(self._may_be_learnt_from, call.args))

    def _may_be_learnt_from(self, argument: cst.Arg) -> bool:
        """Whether an argument is a model, or its parameters."""
        value = argument.value
        if isinstance(value, (cst.Name, cst.Attribute)):
            return self._evaluator.value(value).kind is Kind.MODULE
        return any(method_call(call, *_PARAMETERS) is not None for call in self._tree.below(argument, cst.Call))

    def _is_of_object(self, container: cst.BaseExpression) -> bool:
        return isinstance(container, cst.Attribute) and identifier(container) != "writer"

    def _is_own(self, container: cst.BaseExpression) -> bool:
        """Whether a container is made by the function that puts something into it."""
        if not isinstance(container, cst.Name):
            return False
        scopes = self._evaluator.scopes
        if scopes.deciding(container.value, scopes.scope(container)) is not scopes.scope(container):
            return False
        return all(binding.kind is BindingKind.ASSIGNMENT for binding in self._evaluator.flow.definitions(container))
