"""Modules whose parameters a file excludes from gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.frozen_classes import FrozenClasses
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Graph, Origin
from torchlint.syntax.calls import identifier, literal, method_call

ENTRY_POINTS = frozenset(
    "encode decode sample generate predict forward_features forward act get_action get_action_and_value "
    "encode_image encode_text get_image_features get_text_features".split()
)
"""Methods that run a model, besides calling it."""

_SETTING = frozenset(("set_requires_grad", "toggle_grad", "requires_grad", "requires_grad_"))
_CHOOSES = frozenset(("set_trainable", "set_learnable", "set_train_parameters"))
_TURNS = frozenset(("toggle_optimizer", "toggled_optimizer"))
_COMPILED = frozenset(("freeze", "TRTModule", "torch2trt", "InferenceSession"))
_JOINS = ("torch.stack", "torch.cat")
_MAX_DEPTH = 3

_Key = tuple[int, str]


class Frozen:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
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
        return FrozenClasses(self._evaluator, self._find_frozen(), parts)

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
        calls = self._tree.calls_named(*_SETTING)
        return any(literal(argument.value) is True for call in calls for argument in call.args)

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
            modules = list(self._find_frozen())
            frozen_at = {self._key(module): self._tree.order(module) for module in modules}
            changed = self._given_other_parts() if modules else ()
            thawed = {k for k, m in ((self._key(m), m) for m in changed) if frozen_at.get(k, 0) < self._tree.order(m)}
            found = frozen_at.keys() - thawed
            for _ in range(_MAX_DEPTH if found else 0):
                found |= {self._key(other) for other in self._handed_on(found)}
            self._frozen = frozenset(found)
        return self._frozen

    def _given_other_parts(self) -> Iterator[cst.Name | cst.Attribute]:
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
        """The variables that are given such a module: ``self.net = net.to(device)``, ``net = build().eval()``."""
        for target in self._tree.nodes(cst.AssignTarget):
            statement = self._tree.parent(target)
            if isinstance(target.target, (cst.Name, cst.Attribute)) and isinstance(statement, cst.Assign):
                value = statement.value.elt if isinstance(statement.value, cst.ListComp) else statement.value
                made = self._evaluator.definitions.definition(_called(value))
                results = self._evaluator.definitions.results
                given = results(made) if isinstance(made, cst.FunctionDef) else [value]
                modules = [unchained(value) for value in given]
                if modules and all(isinstance(one, cst.Name) and self._key(one) in frozen for one in modules):
                    yield target.target

    def _find_frozen(self) -> Iterator[cst.BaseExpression]:
        for call in self._tree.nodes(cst.Call):
            name = identifier(call.func)
            method = call.func if isinstance(call.func, cst.Attribute) else None
            if name == "requires_grad_" and method is not None:
                if call.args and literal(call.args[0].value) is False:
                    yield from (*self._frozen_by(method.value), *self._bound_to(call))
            elif name == "detach_" and method is not None:
                yield from self._looped_over(method.value)
            elif name in _CHOOSES and any(literal(argument.value) is False for argument in call.args):
                yield from (call.args[0].value, *self._bound_to(call))
            elif "freeze" in name or name in _SETTING:
                for argument in call.args:
                    yield argument.value
                    yield from self._owners(argument.value, 0)
                yield from self._bound_to(call)
                if method is not None:
                    yield method.value
        for target in self._tree.nodes(cst.AssignTarget):
            statement = self._tree.parent(target)
            if not isinstance(statement, cst.Assign):
                continue
            if self._is_compiled(statement.value):
                yield target.target
            switches = isinstance(target.target, cst.Attribute) and target.target.attr.value == "requires_grad"
            if isinstance(target.target, cst.Attribute) and switches and literal(statement.value) is False:
                yield from self._frozen_by(target.target.value)

    def _is_compiled(self, made: cst.BaseExpression) -> bool:
        """Whether a module is made of constants, or by another engine."""
        while isinstance(made, cst.Call):
            if identifier(made.func) in _COMPILED:
                name = self._evaluator.names.qualified(made.func) or identifier(made.func)
                return name == "torch.jit.freeze" or not name.startswith("torch.")
            made = made.func.value if isinstance(made.func, cst.Attribute) else made.func
        return False

    def _frozen_by(self, frozen: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The module itself, or that over whose parameters a loop runs."""
        frozen = unchained(frozen)
        yield frozen
        yield from self._looped_over(frozen)

    def _looped_over(self, parameter: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The module over whose parameters a loop runs, perhaps one of several: ``for net in (first, second)``."""
        loop = self._tree.enclosing(parameter, cst.For)
        if loop is None or not isinstance(parameter, cst.Name):
            return
        owner = method_call(loop.iter, "parameters", "named_parameters")
        if owner is None and self._binds(loop, parameter) and _lists_parameters(loop.iter):
            yield from self._owners(loop.iter, 0)  # of a list of parameters, or a chain of such
        if owner is None or not self._binds(loop, parameter):
            return
        yield owner.value
        around = self._tree.enclosing(loop, cst.For)
        if around is None or not self._binds(around, owner.value):
            return
        if isinstance(around.iter, (cst.List, cst.Tuple)):
            yield from (element.value for element in around.iter.elements)
        elif isinstance(around.iter, (cst.Name, cst.Attribute)):
            yield around.iter
        elif (values := method_call(around.iter, "values", "items")) is not None:
            yield values.value

    def _binds(self, loop: cst.For, name: cst.BaseExpression) -> bool:
        return isinstance(name, cst.Name) and any(
            n.value == name.value for n in self._tree.below(loop.target, cst.Name)
        )

    def _bound_to(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        """What a chain of methods around a call is assigned to: ``net = build().requires_grad_(False).eval()``."""
        outer: cst.CSTNode | None = call
        last: cst.CSTNode | None = call
        while isinstance(outer, cst.Call):
            method = self._tree.parent(outer)
            above = self._tree.parent(method) if isinstance(method, cst.Attribute) else method
            outer, last = above, outer
        if isinstance(outer, cst.ListComp) and outer.elt is last:
            outer, last = self._tree.parent(outer), outer
        if isinstance(outer, cst.Assign) and outer.value is last:
            yield from (target.target for target in outer.targets)

    def _owners(self, given: cst.BaseExpression, depth: int) -> Iterator[cst.BaseExpression]:
        """Yield the modules whose parameters a call is given: ``chain(net.parameters(), head.parameters())``."""
        if isinstance(given, cst.Name) and depth < _MAX_DEPTH:
            for binding in self._evaluator.flow.definitions(given):
                if binding.value is not None and not binding.path:
                    yield from self._owners(binding.value, depth + 1)
        elif isinstance(given, (cst.List, cst.Tuple)):
            yield from (element.value for element in given.elements)
        elif isinstance(given, cst.ListComp):
            yield from self._owners(given.for_in.iter, depth + 1)
        elif isinstance(given, cst.Call):
            owner = method_call(given, "parameters", "named_parameters")
            if owner is not None:
                yield owner.value
            for argument in given.args if depth < _MAX_DEPTH else ():
                yield from self._owners(argument.value, depth + 1)


def _lists_parameters(iterated: cst.BaseExpression) -> bool:
    """Return whether a loop goes over a variable, or over a chain of what several modules have."""
    return isinstance(iterated, cst.Name) or (isinstance(iterated, cst.Call) and identifier(iterated.func) == "chain")


def _called(value: cst.BaseExpression) -> cst.BaseExpression:
    """Return what is called first: ``build`` of ``build().to(device)``, ``self.build`` of ``self.build()``."""
    while isinstance(value, cst.Call):
        inner = method_call(value)
        if inner is None or not isinstance(inner.value, cst.Call):
            return value.func
        value = inner.value
    return value


def unchained(module: cst.BaseExpression) -> cst.BaseExpression:
    """Return ``net`` of ``net.cuda().eval()``."""
    chained = method_call(module)
    while chained is not None:
        module = chained.value
        chained = method_call(module)
    return module
