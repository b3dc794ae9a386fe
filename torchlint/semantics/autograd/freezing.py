"""Where a file excludes the parameters of modules from gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import root_of
from torchlint.syntax.statements import is_placeholder, plain_statements

SETTING = frozenset(("set_requires_grad", "toggle_grad", "requires_grad", "requires_grad_"))
"""Functions and methods that choose whether parameters ask for gradients."""

_CHOOSES = frozenset(("set_trainable", "set_learnable", "set_train_parameters"))
_METHODS = ("requires_grad_", "detach_")
_COMPILED = frozenset(("freeze", "TRTModule", "torch2trt", "InferenceSession"))
# What else the name of what freezes says is a part of a model: `freeze_bn`, `freeze_encoder`, `freeze_first_layers`.
_PARTS = frozenset(
    "bn bns batchnorm batch norm norms layernorm stats layer layers stage stages block blocks backbone encoder decoder "
    "embed embedding embeddings head heads body trunk stem feature features extractor conv convs base bottom lower "
    "early first except partial part parts some until".split()
)
_WHOLE = frozenset(("all", "whole", "entire", "everything"))
_ALL_PARTS = ("children", "modules", "named_children", "named_modules", "parameters", "named_parameters")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MAX_DEPTH = 3


class Freezing:
    """Finds the modules."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    @cached_property
    def found(self) -> list[cst.BaseExpression]:
        """What stands for a module where the file freezes it, and what that is bound to."""
        return list(self._find())

    def _find(self) -> Iterator[cst.BaseExpression]:
        yield from self._by_flags(self._tree.module)
        for call in self._tree.nodes(cst.Call):
            name = identifier(call.func)
            if method_call(call, *_METHODS) is not None:
                switched = list(self._by_method(call))
                yield from (*switched, *self._bound_to(call)) if switched else ()
            elif name in _CHOOSES and any(literal(argument.value) is False for argument in call.args):
                yield from (call.args[0].value, *self._bound_to(call))
            elif ("freeze" in name and "unfreeze" not in name) or name in SETTING:
                yield from self._frozen_in(call)
            elif name == "apply" and (switching := self._applied(call)) is not None:
                yield switching
        for target in self._tree.nodes(cst.AssignTarget):
            statement = self._tree.parent(target)
            if isinstance(statement, cst.Assign) and self._is_compiled(statement.value):
                yield target.target

    def _applied(self, call: cst.Call) -> cst.BaseExpression | None:
        """The module of ``net.apply(lambda m: m.requires_grad_(False))``."""
        method, function = method_call(call), call.args[0].value if len(call.args) == 1 else None
        body = function.body if isinstance(function, cst.Lambda) else None
        if method is None or not isinstance(body, cst.Call) or method_call(body, "requires_grad_") is None:
            return None
        return method.value if [literal(argument.value) for argument in body.args] == [False] else None

    def _direct(self, root: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """The modules whose parameters code below ``root`` switches itself."""
        for call in self._tree.below(root, cst.Call):
            yield from self._by_method(call)
        yield from self._by_flags(root)

    def _by_method(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        """What ``net.requires_grad_(False)`` switches, or ``p.detach_()`` in a loop over parameters."""
        method = method_call(call, *_METHODS)
        if method is not None and method.attr.value == "detach_":
            yield from self._looped_over(method.value)
        elif method is not None and call.args and literal(call.args[0].value) is False:
            yield from self._frozen_by(method.value)

    def _by_flags(self, root: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """What assignments below ``root`` switch: ``p.requires_grad = False``."""
        for target in self._tree.below(root, cst.AssignTarget):
            statement, place = self._tree.parent(target), target.target
            switches = isinstance(place, cst.Attribute) and place.attr.value == "requires_grad"
            if isinstance(place, cst.Attribute) and switches and isinstance(statement, cst.Assign):
                yield from self._frozen_by(place.value) if literal(statement.value) is False else ()

    def _frozen_in(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        """What a function or method that is named for it freezes: ``freeze(net)``, ``net.freeze()``, not a part."""
        if self._does_nothing(call):
            return
        frozen = [argument for argument in call.args if self._freezes(call, argument)]
        for argument in frozen:
            yield argument.value
            yield from self._owners(argument.value, 0)
        if len(frozen) == len(call.args):
            yield from self._bound_to(call)
        method = call.func if isinstance(call.func, cst.Attribute) else None
        if method is not None and self._freezes(call, None):
            yield method.value

    def _freezes(self, call: cst.Call, argument: cst.Arg | None) -> bool:
        """Whether a function freezes all of what a call gives it, or (None) of the object whose method it is."""
        of = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef):
            return _is_whole(call, argument.value if argument is not None else of)
        own = {parameter.name.value for parameter in parameters(function)}
        switched = [self._gone_over(one) for one in self._direct(function.body)]
        if any(root_of(one) not in own for one in switched):  # of which it is unclear what it belongs to
            return _is_whole(call, argument.value if argument is not None else of)
        if not switched:
            return True  # by other functions
        taken = parameter_for(function, argument, call, self._evaluator.definitions) if argument is not None else None
        wanted = taken.name.value if taken is not None else "self" if argument is None else ""
        return any(isinstance(one, cst.Name) and one.value == wanted for one in switched)

    def _does_nothing(self, call: cst.Call) -> bool:
        """Whether the file shows that a function which is named for it freezes nothing: it only sets an unread flag."""
        definitions, method = self._evaluator.definitions, method_call(call)
        function = definitions.definition(call.func)
        made = self._evaluator.value(method.value).definition if method is not None else None
        if isinstance(made, cst.ClassDef) and function is None:
            function = definitions.method(made, identifier(call.func))
        if not isinstance(function, cst.FunctionDef) or function.decorators:
            return False
        owner = definitions.owner(function)
        if owner is not None and (not self._is_of_torch(owner) or self._is_overridden(owner, function.name.value)):
            return False
        statements = plain_statements(function) or []
        flags = [each for each in statements if isinstance(each, cst.Assign)]
        return bool(flags) and all(map(self._is_idle, statements))

    def _is_of_torch(self, owner: cst.ClassDef) -> bool:
        """Whether all that a class derives from is in the file, or torch's own."""
        definitions, waiting = self._evaluator.definitions, [owner]
        for each in waiting:
            for base in each.bases:
                found = definitions.definition(base.value)
                if isinstance(found, cst.ClassDef):
                    waiting += [found] if all(other is not found for other in waiting) else []
                elif not (self._evaluator.names.qualified(base.value) or "").startswith(("torch.nn.", "builtins.")):
                    return False
        return True

    def _is_overridden(self, owner: cst.ClassDef, name: str) -> bool:
        """Whether a class that derives from another has a method of its own by a name."""
        waiting = [owner]
        for each in waiting:
            heirs = [heir for heir in self._heirs.get(id(each), ()) if all(other is not heir for other in waiting)]
            if any(name in self._evaluator.definitions.methods(heir) for heir in heirs):
                return True
            waiting += heirs
        return False

    @cached_property
    def _heirs(self) -> dict[int, list[cst.ClassDef]]:
        """The classes that name a class of the file among their bases."""
        found: dict[int, list[cst.ClassDef]] = {}
        for each in self._tree.nodes(cst.ClassDef):
            for base in each.bases:
                found.setdefault(id(self._evaluator.definitions.definition(base.value)), []).append(each)
        return found

    def _is_idle(self, statement: cst.BaseSmallStatement) -> bool:
        """Whether a statement has no effect that the file shows: it sets a flag that nobody reads."""
        if isinstance(statement, cst.Return):
            return statement.value is None or isinstance(statement.value, cst.Name)
        if not isinstance(statement, cst.Assign):
            return is_placeholder(statement)
        flags = [target.target for target in statement.targets]
        is_plain = literal(statement.value) is not None or isinstance(statement.value, cst.Name)
        return is_plain and all(isinstance(flag, cst.Attribute) and not self._is_read(flag) for flag in flags)

    def _is_read(self, flag: cst.Attribute) -> bool:
        """Whether something may depend on a flag: torch, the setter of a property, or what reads it in the file."""
        name = flag.attr.value
        if name == "requires_grad" or any(each.name.value == name for each in self._tree.nodes(cst.FunctionDef)):
            return True
        if any(name in text.raw_value for text in self._tree.nodes(cst.SimpleString)):
            return True  # getattr(self, "frozen", False)
        above = map(self._tree.parent, self._tree.attributes_named(name))
        return not all(isinstance(each, (cst.AssignTarget, cst.AnnAssign)) for each in above)

    def _gone_over(self, frozen: cst.BaseExpression) -> cst.BaseExpression:
        """The module of which loops go over all parts to freeze them: ``for part in net.children()``; else the part."""
        frozen = unchained(frozen)
        loop = self._tree.enclosing(frozen, cst.For)
        if loop is None or not isinstance(frozen, cst.Name) or not self._binds(loop, frozen):
            return frozen
        over = method_call(loop.iter, *_ALL_PARTS)
        return unchained(over.value) if over is not None else frozen

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
        inner = self._tree.enclosing(parameter, cst.For, cst.ListComp)
        loop = inner.for_in if isinstance(inner, cst.ListComp) else inner
        if not isinstance(loop, (cst.For, cst.CompFor)) or not isinstance(parameter, cst.Name):
            return
        owner = method_call(_unpacked(loop.iter), "parameters", "named_parameters")
        if owner is None and self._binds(loop, parameter) and _lists_parameters(loop.iter):
            yield from self._owners(loop.iter, 0)  # of a list of parameters, or a chain of such
        if owner is None or not self._binds(loop, parameter):
            return
        yield owner.value
        around = self._tree.enclosing(loop, cst.For)
        if around is None or not self._binds(around, owner.value):
            return
        if (whole := method_call(around.iter, *_ALL_PARTS)) is not None:
            yield whole.value
        elif isinstance(around.iter, (cst.List, cst.Tuple)):
            yield from (element.value for element in around.iter.elements)
        elif isinstance(around.iter, (cst.Name, cst.Attribute)):
            yield around.iter
        elif (values := method_call(around.iter, "values", "items")) is not None:
            yield values.value

    def _binds(self, loop: cst.For | cst.CompFor, name: cst.BaseExpression) -> bool:
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


def _is_whole(call: cst.Call, module: cst.BaseExpression) -> bool:
    """Return whether a call is named for freezing all of a module: not a part, unless that is what it is given."""
    words = _words(identifier(call.func))
    parts = words & _PARTS if words.isdisjoint(_WHOLE) else frozenset()
    return not parts or not parts.isdisjoint(_words(identifier(module)))


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _unpacked(iterated: cst.BaseExpression) -> cst.BaseExpression:
    """Return ``net.parameters()`` of ``[*net.parameters()]``."""
    elements = iterated.elements if isinstance(iterated, (cst.List, cst.Tuple)) else ()
    return elements[0].value if len(elements) == 1 and isinstance(elements[0], cst.StarredElement) else iterated


def _lists_parameters(iterated: cst.BaseExpression) -> bool:
    """Return whether a loop goes over a variable, or over a chain of what several modules have."""
    return isinstance(iterated, cst.Name) or (isinstance(iterated, cst.Call) and identifier(iterated.func) == "chain")


def unchained(module: cst.BaseExpression) -> cst.BaseExpression:
    """Return ``net`` of ``net.cuda().eval()``."""
    chained = method_call(module)
    while chained is not None:
        module = chained.value
        chained = method_call(module)
    return module
