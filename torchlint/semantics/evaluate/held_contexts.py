"""Contexts that may switch gradients off, wherever they are kept: in variables, attributes, stacks and classes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.script_modes import SETTERS, ScriptModes
from torchlint.semantics.tables.torch_api import NO_GRAD_CONTEXTS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.walk import Tree

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_CONTEXTS = ("no_grad", "inference_mode")
# What is called before all else, by frameworks too.
_BEGINS = re.compile(r"^_?(setup|set_up|initiali[sz]e|init\w*|start\w*|begin\w*|before_\w+|on_\w+)$")
_FREEZES = re.compile(r"(^|_)(frozen|freezes?|freezing)(_|$)", re.IGNORECASE)


class HeldContexts:
    """Answers whether one may be in force."""

    def __init__(self, tree: Tree, names: Names, definitions: Definitions, evaluator: Evaluator) -> None:
        self._tree = tree
        self._names = names
        self._definitions = definitions
        self._evaluator = evaluator
        self.script = ScriptModes(tree, names, definitions, evaluator)

    def may_switch(self, block: cst.With) -> bool:
        """Return whether a ``with`` block may switch gradients off, also by what a stack of contexts has entered."""
        held = [item.item for item in block.items]
        entered = [call for call in self._tree.calls_named("enter_context") if call.args and self._is_of(call, block)]
        return self._may_be_off([*held, *(call.args[0].value for call in entered)])

    def decorates(self, decorator: cst.BaseExpression) -> bool:
        """Return whether a decorator may be such a context, under a name that the file gives it."""
        used = decorator.func if isinstance(decorator, cst.Call) else decorator
        return isinstance(used, cst.Name) and self._may_be_off([used])

    def is_set_elsewhere(self, node: cst.CSTNode) -> bool:
        """Return whether another function of the file, or a variable of this one, sets the mode, which stays so."""
        function = self._definitions.enclosing_function(node)
        here = (each for each in self._setters if self._definitions.enclosing_function(each) is function)
        if any(isinstance(self._tree.parent(setter), cst.Assign) for setter in here):
            return True
        return any(self._lasts(setter, node) for setter in self._setters)

    def _lasts(self, setter: cst.Call, node: cst.CSTNode) -> bool:
        """Whether what a setter in another function does lasts where a node runs.

        That of a function that sets the program up, or that calls the function of the node itself later; that of
        ``__init__`` if the file makes such an object.
        """
        where, here = (self._definitions.enclosing_function(each) for each in (setter, node))
        if where is None:
            return self.script.may_hold(setter, node)
        if where is here or where.name.value in ("__enter__", "__exit__"):
            return False
        later = [c for c in self._tree.below(where.body, cst.Call) if self._tree.order(c) > self._tree.order(setter)]
        if any(each in self._restorers for each in map(id, later)):
            return False
        if here is not None and any(self._definitions.definition(call.func) is here for call in later):
            return True
        if any(self._evaluator.value(part).kind is Kind.MODULE for c in later for part in (c.func, *_given(c))):
            return False  # for what it runs itself
        owner = self._definitions.owner(where)
        if where.name.value != "__init__" or owner is None:
            return bool(self._evaluator.callers(where)) or _BEGINS.match(where.name.value) is not None
        around = self._tree.enclosing(node, cst.ClassDef)
        derived = self._definitions.family(around) if around is not None else []
        return owner in derived or bool(self._tree.calls_named(owner.name.value))

    @cached_property
    def _restorers(self) -> frozenset[int]:
        return frozenset(map(id, self.script.restorers()))

    def stay_switched(self, owner: cst.ClassDef) -> bool:
        """Return whether the methods of a class may leave gradients switched: ``inference_mode().__enter__()``."""
        calls = self._tree.below(owner, cst.Call)
        if any(identifier(call.func) in ("set_grad_enabled", "__enter__") for call in calls):
            return True
        entering = (method for call in calls if (method := method_call(call, "enter_context")) is not None)
        blocks = {identifier(item.asname.name) for item in self._tree.below(owner, cst.WithItem) if item.asname}
        return any(identifier(method.value) not in blocks for method in entering)

    @cached_property
    def _setters(self) -> list[cst.Call]:
        """The calls that switch gradients off until something switches them on again, or as their function is told."""
        calls = (c for c in self._tree.calls_named("set_grad_enabled") if self._names.qualified(c.func) in SETTERS)
        lasting = (c for c in calls if not isinstance(self._tree.parent(c), (cst.WithItem, cst.Decorator)))
        return [call for call in lasting if self._may_be_false(bind(call.args, ("mode",)).get("mode"))]

    def _may_be_false(self, mode: cst.BaseExpression | None) -> bool:
        """Whether a mode is False or what a function is given; any other is what was before, which is put back."""
        bindings = self._evaluator.flow.definitions(mode) if isinstance(mode, cst.Name) else []
        is_given = bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)
        return is_given or literal(mode) is False

    def _is_of(self, call: cst.Call, block: cst.With) -> bool:
        """Whether a stack enters a context in a block, or is the one that the block then closes."""
        stack = method_call(call)
        names = {identifier(item.item) for item in block.items} - {""}
        return self._tree.within(call, block.body) or (stack is not None and identifier(stack.value) in names)

    def _may_be_off(self, contexts: list[cst.BaseExpression]) -> bool:
        return any(self._is_off(part) for place in self._sources(contexts) for part in self._tree.descendants(place))

    def _is_off(self, part: cst.CSTNode) -> bool:
        if isinstance(part, cst.Call):
            if self._evaluator.gradients.switches_off(part) or self._names.qualified(part.func) in SETTERS:
                return True
            made = self._definitions.definition(part.func)
            return _FREEZES.search(identifier(part.func)) is not None or self._enters(made)
        if not isinstance(part, (cst.Name, cst.Attribute)):
            return False
        return self._names.qualified(part) in NO_GRAD_CONTEXTS or self._is_imported(part)

    def _enters(self, made: cst.CSTNode | None) -> bool:
        """Whether a class of the file is a context that switches gradients where it begins, or enters one that does."""
        method = self._definitions.method(made, "__enter__") if isinstance(made, cst.ClassDef) else None
        calls = self._tree.below(method.body, cst.Call) if method is not None else []
        entered = (m.value for call in calls if (m := method_call(call, "__enter__")) is not None)
        parts = [
            *(call.func for call in calls),
            *(p for e in entered for v in self._evaluator.held_by(e) if v for p in self._tree.descendants(v)),
        ]
        names = {self._names.qualified(part) for part in parts if isinstance(part, (cst.Name, cst.Attribute))}
        return not names.isdisjoint((*SETTERS, *NO_GRAD_CONTEXTS))

    def _is_imported(self, name: cst.CSTNode) -> bool:
        """Whether a name is one of several imports, as what torch has decides: ``from torch import no_grad as off``."""
        bindings = self._evaluator.flow.definitions(name) if isinstance(name, cst.Name) else []
        imports = (each.node for each in bindings if each.kind is BindingKind.IMPORT)
        aliases = (each for each in imports if isinstance(each, cst.ImportAlias))
        return len(bindings) > 1 and any(identifier(alias.name) in _CONTEXTS for alias in aliases)

    def _sources(self, contexts: list[cst.BaseExpression]) -> list[cst.BaseExpression]:
        """These expressions, and what their variables, attributes and properties of the object may hold."""
        found = list(contexts)
        for place in found:
            values: list[cst.CSTNode | None] = []
            if isinstance(place, cst.Call):
                values.append(place.func)
            elif isinstance(place, cst.Name):
                values += (binding.value for binding in self._evaluator.flow.definitions(place))
            elif isinstance(place, cst.Attribute) and isinstance(place.value, cst.Name):
                owner = self._definitions.receiver(place.value)
                method = self._definitions.method(owner, place.attr.value) if owner is not None else None
                values += self._definitions.results(method) if method is not None else ()
                values += [e.value for e in self._definitions.attribute(owner, place.attr.value)] if owner else ()
            found += (v for v in values if isinstance(v, cst.BaseExpression) and all(v is not each for each in found))
        return found


def _given(call: cst.Call) -> list[cst.BaseExpression]:
    return [argument.value for argument in call.args]
