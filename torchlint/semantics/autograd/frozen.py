"""Modules whose parameters a file excludes from gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.freezing import SETTING, Freezing, unchained
from torchlint.semantics.autograd.frozen_classes import FrozenClasses
from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind, bound_places
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Graph, Kind, Origin
from torchlint.syntax.calls import element_at, identifier, literal, method_call

ENTRY_POINTS = frozenset(
    "encode decode sample generate predict forward_features forward act get_action get_action_and_value "
    "encode_image encode_text get_image_features get_text_features".split()
)
"""Methods that run a model, besides calling it."""

_TURNS = frozenset(("toggle_optimizer", "toggled_optimizer"))
_JOINS = ("torch.stack", "torch.cat")
_MAX_DEPTH = 3

_Key = tuple[int, str]


class Frozen:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._freezing = Freezing(evaluator)
        self._frozen: frozenset[_Key] | None = None

    def holds(self, called: cst.BaseExpression) -> bool:
        """Return whether the file excludes the parameters of what is called from gradients, if only for a while."""
        is_method = isinstance(called, cst.Attribute) and called.attr.value in ENTRY_POINTS
        owner = called.value if isinstance(called, cst.Attribute) and is_method else called
        frozen = self._frozen_modules()
        if any(self._is_one_of(one, frozen) for one in (called, owner)) or self._is_in_turn(called):
            return True
        made = self._evaluator.value(owner).definition
        return self._is_one_of_many(called, frozen) or (isinstance(made, cst.ClassDef) and self._classes.holds(made))

    @cached_property
    def _classes(self) -> FrozenClasses:
        frozen = self._frozen_modules()
        targets = (t.target for t in self._tree.nodes(cst.AssignTarget) if isinstance(t.target, cst.Attribute))
        parts = frozenset(id(target) for target in targets if self._key(target) in frozen)
        return FrozenClasses(self._evaluator, self._freezing.found, parts)

    def _is_one_of_many(self, called: cst.BaseExpression, frozen: frozenset[_Key]) -> bool:
        """Whether what is called is one of several modules that a loop went over to freeze them."""
        bindings = self._evaluator.flow.definitions(called) if isinstance(called, cst.Name) else []
        return bool(bindings) and all(
            b.kind is BindingKind.ITERATION
            and not b.path
            and isinstance(b.value, (cst.Name, cst.Attribute))
            and self._is_one_of(b.value, frozen)
            for b in bindings
        )

    def gives(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Return whether a value is what such a module gives, under another name or through methods and indices."""
        if isinstance(value, cst.Name):
            values = [b.value if not b.path else None for b in self._evaluator.flow.definitions(value)]
            return (
                depth < _MAX_DEPTH and bool(values) and all(v is not None and self.gives(v, depth + 1) for v in values)
            )
        while True:
            owner = value.func.value if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) else None
            if isinstance(value, cst.Subscript):
                value = value.value
            elif isinstance(owner, (cst.Call, cst.Subscript, cst.BinaryOperation)):
                value = owner  # `net(x).cpu()`
            else:
                break
        if isinstance(value, cst.Call) and self._evaluator.names.qualified(value.func) in _JOINS and value.args:
            joined = value.args[0].value
            return isinstance(joined, cst.ListComp) and self.gives(joined.elt, depth)
        if isinstance(value, cst.BinaryOperation):
            if self.thaws:
                return False  # frozen for a while only, as a discriminator is
            sides = [self.gives(side, depth) for side in (value.left, value.right)]
            return all(sides) or (any(sides) and self._has_no_graph(value.left if sides[1] else value.right))
        return (
            isinstance(value, cst.Call) and isinstance(value.func, (cst.Name, cst.Attribute)) and self.holds(value.func)
        )

    @cached_property
    def thaws(self) -> bool:
        """Return whether the file lets any parameters ask for gradients again."""
        switched = (t for t in self._tree.nodes(cst.AssignTarget) if identifier(t.target) == "requires_grad")
        assigned = (self._tree.parent(target) for target in switched)
        if any(isinstance(each, cst.Assign) and literal(each.value) is not False for each in assigned):
            return True
        calls = self._tree.calls_named(*SETTING)
        if any(literal(argument.value) is True for call in calls for argument in call.args):
            return True
        if any(not call.args and method_call(call, "requires_grad_") is not None for call in calls):
            return True
        return any("unfreeze" in identifier(call.func) for call in self._tree.nodes(cst.Call))

    def _has_no_graph(self, other: cst.BaseExpression) -> bool:
        """Whether what is computed with such a value is a number, or of a batch: ``net(x) - x``."""
        value = self._evaluator.value(other)
        return value.graph is Graph.DETACHED or value.origin is Origin.BATCH or literal(other) is not None

    def _is_in_turn(self, called: cst.BaseExpression) -> bool:
        """Whether Lightning leaves gradients to the parameters of one optimizer only where something is called."""
        function = self._evaluator.definitions.enclosing_function(called)
        if function is None:
            return False
        if any(parameter.name.value == "optimizer_idx" for parameter in parameters(function)):
            return True
        calls = (call for call in self._tree.below(function, cst.Call) if identifier(call.func) in _TURNS)
        return any(self._tree.order(call) < self._tree.order(called) for call in calls)

    def _key(self, module: cst.BaseExpression) -> _Key:
        """A local variable with its scope; an attribute by its name, with the class of whose objects it is if known."""
        scopes = self._evaluator.scopes
        if isinstance(module, cst.Name):
            return id(scopes.deciding(module.value, scopes.scope(module))), module.value
        held = module.value if isinstance(module, cst.Attribute) else None
        owner = self._evaluator.definitions.receiver(held) if isinstance(held, cst.Name) else None
        return (id(self._root(owner)) if owner is not None else 0), identifier(module)

    def _root(self, owner: cst.ClassDef) -> cst.ClassDef:
        """The first class of the file from which a class derives, whose methods see the same attributes."""
        seen = [owner]
        while bases := [base for base in self._evaluator.definitions.bases(seen[-1]) if base not in seen]:
            seen.append(bases[0])
        return seen[-1]

    def _is_one_of(self, module: cst.BaseExpression, frozen: frozenset[_Key]) -> bool:
        """Whether a module is among the frozen ones; an attribute of an unknown object may be that of any."""
        scope, name = self._key(module)
        if isinstance(module, cst.Name) or (scope, name) in frozen:
            return (scope, name) in frozen
        return (0, name) in frozen or (not scope and any(other == name for _, other in frozen))

    def _frozen_modules(self) -> frozenset[_Key]:
        """The modules all of whose parameters the file excludes from gradients."""
        if self._frozen is None:
            modules = sorted(self._freezing.found, key=self._tree.order)
            frozen_at = {self._key(module): self._tree.order(module) for module in modules}
            changed = self._adapted() if modules else ()
            thawed = {k for k, m in ((self._key(m), m) for m in changed) if frozen_at.get(k, 0) < self._tree.order(m)}
            found = frozen_at.keys() - thawed
            for _ in range(_MAX_DEPTH if found else 0):
                found |= {self._key(other) for other in (*self._handed_on(found), *self._passed_on(found))}
            self._frozen = frozenset(found)
        return self._frozen

    def _adapted(self) -> Iterator[cst.Name | cst.Attribute]:
        """The modules whose parts a function of the file replaces, by such as are trained: adapters."""
        functions = map(
            self._evaluator.definitions.enclosing_function, filter(self._puts_layer, self._tree.nodes(cst.Call))
        )
        for function in (each for each in functions if each is not None):
            given = (argument.value for call in self._evaluator.callers(function) for argument in call.args)
            yield from (each for each in given if isinstance(each, (cst.Name, cst.Attribute)))

    def _puts_layer(self, call: cst.Call) -> bool:
        """Whether ``setattr(parent, name, Adapter(child))`` puts a layer into a model that may have parameters."""
        if identifier(call.func) != "setattr" or len(call.args) != len(("object", "name", "value")):
            return False
        made = call.args[2].value
        if not isinstance(made, cst.Call):
            return False
        is_own = isinstance(self._evaluator.definitions.definition(made.func), cst.ClassDef)
        return is_own or identifier(made.func).startswith(("Linear", "Conv"))

    def _handed_on(self, frozen: set[_Key]) -> Iterator[cst.BaseExpression]:
        """The variables that are given such a module: ``self.net = net.to(device)``, ``net, size = build()``."""
        for target in self._tree.nodes(cst.AssignTarget):
            statement = self._tree.parent(target)
            if not isinstance(statement, cst.Assign):
                continue
            value = statement.value.elt if isinstance(statement.value, cst.ListComp) else statement.value
            made = self._evaluator.definitions.definition(_called(value))
            results = self._evaluator.definitions.results
            given = results(made) if isinstance(made, cst.FunctionDef) else [value]
            for place, path in bound_places(target.target):
                parts = [element_at(each, path) for each in given]
                modules = [unchained(part) for part in parts if part is not None]
                if parts and all(isinstance(one, cst.Name) and self._key(one) in frozen for one in modules):
                    is_held = isinstance(place, (cst.Name, cst.Attribute)) and len(modules) == len(parts)
                    yield from (place,) if is_held else ()

    def _passed_on(self, frozen: set[_Key]) -> Iterator[cst.BaseExpression]:
        """The parameters for which all calls of the file pass such a module, where nobody thaws or trains anything."""
        known = frozenset(frozen)
        for function in self._tree.nodes(cst.FunctionDef) if not (self.thaws or self._trains) else ():
            calls = [call for call in self._evaluator.callers(function) if not self._tree.within(call, function)]
            for parameter in parameters(function) if calls else ():
                passed = [argument_for(function, parameter, call, self._evaluator.definitions) for call in calls]
                modules = [unchained(each) for each in passed if each is not None]
                if len(modules) == len(calls) and all(self._stays_frozen(each, known) for each in modules):
                    yield parameter.name

    @cached_property
    def _trains(self) -> bool:
        """Whether the file trains anything: a part of a frozen module, for all that can be told."""
        calls = self._tree.nodes(cst.Call)
        return bool(self._tree.calls_named("backward")) or any(
            self._evaluator.value(call).kind is Kind.OPTIMIZER for call in calls
        )

    def _stays_frozen(self, module: cst.BaseExpression, frozen: frozenset[_Key]) -> bool:
        """Whether a module is among the frozen ones, none of its parts is replaced, and no other file may train it."""
        if not isinstance(module, (cst.Name, cst.Attribute)) or not self._is_one_of(module, frozen):
            return False
        key = self._key(module)
        return key not in self._with_new_parts and key not in self._given_away

    @cached_property
    def _given_away(self) -> frozenset[_Key]:
        """The modules that functions of other files are given: ``fit(model, loader)``, ``get_peft_model(model)``."""
        given: list[cst.BaseExpression] = []
        for call in self._tree.nodes(cst.Call):
            name = self._evaluator.names.qualified(call.func) or ""
            is_known = name.startswith(("torch.", "builtins.")) and not name.startswith("torch.nn.Sequential")
            if not is_known and self._evaluator.definitions.definition(call.func) is None:
                given += [argument.value for argument in call.args]
        return frozenset(self._key(one) for one in given if isinstance(one, (cst.Name, cst.Attribute)))

    @cached_property
    def _with_new_parts(self) -> frozenset[_Key]:
        """The modules that the file gives new parts."""
        places = (target.target for target in self._tree.nodes(cst.AssignTarget))
        return frozenset(self._key(module) for place in places for module in _objects_around(place))


def _called(value: cst.BaseExpression) -> cst.BaseExpression:
    """Return what is called first: ``build`` of ``build().to(device)``, ``self.build`` of ``self.build()``."""
    while isinstance(value, cst.Call):
        inner = method_call(value)
        if inner is None or not isinstance(inner.value, cst.Call):
            return value.func
        value = inner.value
    return value


def _objects_around(place: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute]:
    """Yield ``net.heads`` and ``net`` of ``net.heads.last``, and of ``net.heads[0]``."""
    while isinstance(place, (cst.Attribute, cst.Subscript)):
        place = place.value
        if isinstance(place, (cst.Name, cst.Attribute)):
            yield place
