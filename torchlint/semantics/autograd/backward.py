"""Which values gradients are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.autograd.differentiated import Differentiated, starts
from torchlint.semantics.autograd.frozen import Frozen
from torchlint.semantics.autograd.passes import Passes
from torchlint.semantics.autograd.results import Results
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.own_keys import is_by_own_key
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.container_methods import PUTS_INTO
from torchlint.semantics.tables.names import OPTIONS
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered
from torchlint.syntax.walk import children

# A variable: its scope and name, 0 and the name for an attribute; of a name that a statement binds only that binding.
_Key = tuple[int, str]
_Assignment = tuple[set[_Key], cst.CSTNode]
_ASSIGNING: frozenset[type] = frozenset(
    (cst.Assign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.WithItem, cst.Return, cst.Yield, cst.Call)
)

ENDS = ("item", "detach", "tolist", "numpy", "argmax", "argmin", "argsort")
"""Methods through which no gradient goes."""

NO_RESULTS = frozenset(
    "parameters named_parameters train eval zero_grad state_dict modules children to cuda cpu training device".split()
)
"""What is read of every module, and is no result of a pass."""

# Methods that objects of many classes have.
_COMMON = frozenset("forward step update train eval get add run __call__ log compute".split())
_LOOK_UPS = tuple(f"builtins.{name}" for name in ("getattr", "vars", "locals", "globals"))
# The functions of torch that go with them.
_MAKES_ANEW = ("Variable", "argmax", "argmin", "argsort")


class _Reads(NamedTuple):
    """What an expression reads: variables, and the keys of attributes."""

    names: tuple[cst.Name, ...]
    keys: frozenset[_Key]


class Backward:
    """Follows values to the backward passes of a file."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self.frozen = Frozen(evaluator)
        self._upstream = Differentiated(evaluator, self.frozen)
        self._passes = Passes(evaluator)
        self._results = Results(evaluator, self._passes, self._upstream)
        self._assigned: dict[int, list[_Assignment]] = {}

    def passes(self, root: cst.CSTNode | None = None) -> list[cst.Call]:
        """Return the calls that compute gradients, those below ``root`` if one is given."""
        return self._passes.below(root)

    def passes_for(self, call: cst.Call, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the backward passes in a function that a call of it does not leave out: ``step(x, train=False)``."""
        told = self._evaluator.told
        return [one for one in self.passes(function) if not told.leaves_out(one, function, call)]

    def leaves_passes_out(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Return whether a function computes gradients, but not for a call of it."""
        return bool(self.passes(function)) and not self.passes_for(call, function)

    def is_over_at(self, place: cst.CSTNode) -> bool:
        """Return whether a script has made all backward passes of the file before a place at its top level.

        No loop comes back from there to one.
        """
        around = [each for each in self._tree.ancestors(place) if isinstance(each, LOOPS)]
        return all(
            self._evaluator.definitions.enclosing_function(one) is None
            and self._tree.order(one) < self._tree.order(place)
            and not any(self._tree.within(one, loop) for loop in around)
            for one in self.passes()
        )

    def losses(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return the values from which the backward passes below ``root`` start, or that it hands to a framework."""
        return self._passes.losses(root)

    def framework_losses(self) -> list[tuple[cst.FunctionDef, cst.BaseExpression]]:
        """Return what Lightning's ``training_step`` and the ``compute_loss`` of Hugging Face's trainers return."""
        return self._passes.framework_losses()

    def reaches(self, variable: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a variable (``x``, ``self.x``, ``x[i]``) flows into a backward pass below ``root``.

        The function of the file that it is given to may run that pass.
        """
        return self._flow_into_passes({self._key(variable)}, root)

    @cached_property
    def start_from_named(self) -> bool:
        """Whether a pass starts from what is looked up by its name: ``getattr(self, name).backward()``, ``vars(x)``."""
        from_calls = [start for call in self.passes() for start in starts(call)]
        made = [held for start in from_calls for held in self._evaluator.held_by(start) if held is not None]
        return any(self._looks_up(part) for each in (*from_calls, *made) for part in _terms(each))

    def _looks_up(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            return node.attr.value == "__dict__"
        return isinstance(node, cst.Call) and self._evaluator.names.qualified(node.func) in _LOOK_UPS

    def reaches_from(self, name: cst.Name, root: cst.CSTNode) -> bool:
        """Return whether what one assignment binds a name to flows into such a pass; no other of that name counts."""
        return self._flow_into_passes({(id(name), name.value)}, root)

    def differentiates_given(self, call: cst.Call, value: cst.BaseExpression) -> bool:
        """Return whether the function of the file that a call runs differentiates what is computed of an argument."""
        function = self._running_a_pass(call)
        if function is None:
            return False
        places = (index for index, argument in enumerate(call.args) if self._tree.within(value, argument))
        taken = (name for index in places for name in self._possible_parameters(function, call, index))
        return any(self.reaches_from(name, function) for name in taken)

    def _flow_into_passes(self, keys: set[_Key], root: cst.CSTNode) -> bool:
        reached = self._spread(keys, root)
        handed = [*self.passes(root), *self._passes.handed_over(root)]
        if any(self._mentions(expression, reached) for expression in handed):
            return True
        for function in self._given_functions(reached, root):
            reached |= self._spread(reached, function)
        variables = {key for key in reached if key[0]}
        return any(self._mentions(call, variables) for call in self.passes())

    def _given_functions(self, reached: set[_Key], root: cst.CSTNode) -> list[cst.FunctionDef]:
        """The functions of the file with a backward pass that are given one of these variables below ``root``."""
        calls = [call for call in self._tree.below(root, cst.Call) if call.args] if self.passes() else []
        given = [call for call in calls if any(self._mentions(argument.value, reached) for argument in call.args)]
        return [function for call in given if (function := self._running_a_pass(call)) is not None]

    def _running_a_pass(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of the file that a call runs, if it takes a backward pass then."""
        function = self._evaluator.definitions.definition(call.func)
        if isinstance(function, cst.FunctionDef) and self.passes_for(call, function):
            return function
        handed = (self._evaluator.definitions.definition(argument.value) for argument in call.args[:-1])
        for function in handed:  # `stack.callback(apply, losses)`
            if isinstance(function, cst.FunctionDef) and self.passes(function):
                return function
        named = self._differentiating.get(identifier(call.func), ()) if isinstance(call.func, cst.Attribute) else ()
        return next((method for method in named if self._may_run(call, method)), None)

    @cached_property
    def _differentiating(self) -> dict[str, list[cst.FunctionDef]]:
        """The methods of the file that take backward passes, by their names."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for function in self._tree.nodes(cst.FunctionDef):
            if self._evaluator.definitions.owner(function) is not None and self.passes(function):
                found.setdefault(function.name.value, []).append(function)
        return found

    def _may_run(self, call: cst.Call, method: cst.FunctionDef) -> bool:
        """Whether a call may run a method: of a heir of the object's class, or of an object that nothing tells of."""
        if not isinstance(call.func, cst.Attribute) or self._evaluator.names.qualified(call.func) is not None:
            return False
        if not self.passes_for(call, method):
            return False
        owner, held = self._evaluator.definitions.owner(method), self._evaluator.value(call.func.value)
        if isinstance(held.definition, cst.ClassDef):
            return owner is not None and held.definition in self._evaluator.definitions.family(owner)
        return not held.known and method.name.value not in _COMMON

    def _spread(self, keys: set[_Key], root: cst.CSTNode) -> set[_Key]:
        """These variables, and those below ``root`` that they flow into."""
        reached = set(keys)
        names = {name for _, name in reached}
        for _ in range(4):
            before = len(reached)
            for targets, value in self._assignments(root):
                if not targets <= reached and self._mentions_named(value, reached, names):
                    reached |= targets
                    names.update(name for _, name in targets)
            if len(reached) == before:
                break
        return reached

    def reads_of(self, model: cst.BaseExpression, root: cst.CSTNode, after: cst.CSTNode) -> bool:
        """Return whether what is read of an object flows into a pass below ``root``: ``net.loss``, ``net.losses()``.

        Not what its methods compute of what they are given, nor its parameters, nor what is read before ``after``.
        """
        start = self._tree.order(after)
        own = [each for each in self._tree.below(root, cst.Attribute) if is_same(each.value, model)]
        before = {each.attr.value for each in own if self._tree.order(each) < start} | NO_RESULTS
        own = [each for each in own if each.attr.value not in before and not self._is_given_something(each)]
        keys = {(0, name) for each in own for name in (each.attr.value, f"{each.attr.value}()")}
        return bool(keys) and self._flow_into_passes(keys, root)

    def _is_given_something(self, method: cst.Attribute) -> bool:
        call = self._tree.parent(method)
        return isinstance(call, cst.Call) and call.func is method and bool(call.args)

    def flows_into(self, held: list[cst.BaseExpression], values: list[cst.BaseExpression], root: cst.CSTNode) -> bool:
        """Return whether values below ``root`` are computed of variables.

        A name that is bound counts as that; one that is read, as a list that is appended to, as its variable.
        """
        made_by = self._evaluator.scopes.made_by
        bound = {(id(each), each.value) for each in held if isinstance(each, cst.Name) and made_by(each) is not None}
        read = (each for each in held if not isinstance(each, cst.Name) or made_by(each) is None)
        keys = bound | {self._key(each) for each in read}
        reached = self._spread(keys, root) if keys else set()
        return any(self._mentions(value, reached) for value in values)

    def returned_parts(self, variable: cst.BaseExpression, function: cst.FunctionDef) -> list[int] | None:
        """Return the places of the tuples that a function returns in which a variable is; None for any place."""
        reached = self._spread({self._key(variable)}, function)
        given = [r for r in self._evaluator.definitions.results(function) if self._mentions(r, reached)]
        if not all(isinstance(result, cst.Tuple) for result in given):
            return None
        tuples = [result.elements for result in given if isinstance(result, cst.Tuple)]
        return [i for parts in tuples for i, part in enumerate(parts) if self._mentions(part.value, reached)]

    def differentiates(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a value below ``root`` is part of what a backward pass there differentiates."""
        return self._upstream.includes(value, root, self.losses(root)) or self._results.differentiates(value, root)

    def is_detached_item(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a loop takes a value out of a dictionary whose items are detached below ``root``."""
        return self._upstream.is_detached_item(value, root)

    def is_item_in_turn(self, value: cst.BaseExpression) -> bool:
        """Return whether a loop over the keys of a dictionary asks for a value: ``for key in losses: losses[key]``."""
        return isinstance(value, cst.Subscript) and is_by_own_key(value, self._evaluator.flow)

    def may_be_number(self, value: cst.BaseExpression) -> bool:
        """Return whether a value is an item of a dictionary of an object: one may still be what it was made with."""
        return isinstance(self._upstream.iterated(value), cst.Attribute)

    def detaches(self, value: cst.BaseExpression) -> bool:
        """Return whether something in an expression is detached, other than what a module is given."""
        return self._upstream.detaches(value)

    def _assignments(self, root: cst.CSTNode) -> list[_Assignment]:
        if id(root) not in self._assigned:
            self._assigned[id(root)] = list(self._find_assignments(root))
        return self._assigned[id(root)]

    def _find_assignments(self, root: cst.CSTNode) -> Iterator[_Assignment]:
        for node in self._tree.descendants(root):
            if node.__class__ not in _ASSIGNING:  # most
                continue
            if isinstance(node, cst.Assign):
                yield {key for t in node.targets for key in self._bound(t.target)}, node.value
            elif isinstance(node, cst.AugAssign):
                yield self._keys(node.target), node.value
                yield self._bound(node.target), node.target
            elif isinstance(node, cst.NamedExpr):
                yield self._bound(node.target), node.value
            elif isinstance(node, (cst.For, cst.CompFor)):
                yield self._keys(node.target), node.iter
            elif isinstance(node, cst.WithItem) and node.asname is not None:
                yield self._keys(node.asname.name), node.item
            elif isinstance(node, (cst.Return, cst.Yield)) and node.value is not None:
                function = self._evaluator.definitions.enclosing_function(node)
                if function is not None:
                    yield {self._called_by(function)}, node.value
            elif isinstance(node, cst.Call):
                yield from self._passed(node)

    def _passed(self, call: cst.Call) -> Iterator[_Assignment]:
        """Yield what a call puts into a container, and what it gives to the parameters of a function of the file."""
        method = method_call(call, *PUTS_INTO)
        if method is not None and self._evaluator.names.qualified(method.value) is None:
            yield from (({self._key(method.value)}, argument.value) for argument in call.args)
        function = self._evaluator.definitions.definition(call.func) if call.args else None
        if not isinstance(function, cst.FunctionDef) and call.args:
            function = self._running_a_pass(call)
        if isinstance(function, cst.FunctionDef):
            for index, argument in enumerate(call.args):
                names = self._possible_parameters(function, call, index)
                yield {(id(name), name.value) for name in names}, argument.value

    def _possible_parameters(self, function: cst.FunctionDef, call: cst.Call, index: int) -> list[cst.Name]:
        """The parameters that an argument of a call may be given to: one, if what the call is bound to is known."""
        argument, names = call.args[index], [parameter.name for parameter in parameters(function)]
        if argument.keyword is not None:
            return [name for name in names if name.value == argument.keyword.value] or names
        is_handed = any(self._evaluator.definitions.definition(given.value) is function for given in call.args)
        if is_handed or any(given.star for given in call.args[: index + 1]):
            return names
        is_method = self._evaluator.definitions.owner(function) is not None
        return names[index : index + 1 + is_method] or names  # `C.step(c, x)` and `c.step(x)` look alike

    def _called_by(self, function: cst.FunctionDef) -> _Key:
        """The key of what a call of a function gives; of a property it is that of an attribute."""
        if self._evaluator.definitions.owner(function) is None:
            return self._key(function.name)
        is_property = any(identifier(decorator.decorator).endswith("property") for decorator in function.decorators)
        return 0, function.name.value + "()" * (not is_property)

    def _keys(self, target: cst.BaseExpression) -> set[_Key]:
        if isinstance(target, (cst.Tuple, cst.List)):
            return {key for element in target.elements for key in self._keys(element.value)}
        return {self._key(target)}

    def _bound(self, target: cst.BaseExpression) -> set[_Key]:
        """The keys of what an assignment binds: a name counts only where this binding of it can be read."""
        if isinstance(target, (cst.Tuple, cst.List)):
            return {key for element in target.elements for key in self._bound(element.value)}
        return {(id(target), target.value)} if isinstance(target, cst.Name) else {self._key(target)}

    def _is_one_of(self, name: cst.Name, keys: set[_Key]) -> bool:
        """Whether a name stands for one of some variables, or reads one of their bindings."""
        if self._key(name) in keys:
            return True
        return any((id(binding.node), name.value) in keys for binding in self._evaluator.flow.definitions(name))

    def _key(self, variable: cst.CSTNode) -> _Key:
        """A variable by the scope that binds it, an attribute by its name, ``x[i]`` as ``x``."""
        while isinstance(variable, cst.Subscript):
            variable = variable.value
        if not isinstance(variable, cst.Name):
            return 0, identifier(variable)
        scopes = self._evaluator.scopes
        return id(scopes.deciding(variable.value, scopes.scope(variable))), variable.value

    def _mentions(self, node: cst.CSTNode, keys: set[_Key]) -> bool:
        """Whether one of some variables is read in an expression; not through ``.item()`` or ``.detach()``."""
        return self._mentions_named(node, keys, {name for _, name in keys})

    def _mentions_named(self, node: cst.CSTNode, keys: set[_Key], names: set[str]) -> bool:
        """Whether one of some variables, which have these names, is read in an expression."""
        reads = self._reads(node)
        if not keys.isdisjoint(reads.keys):
            return True
        return any(name.value in names and self._is_one_of(name, keys) for name in reads.names)

    def _ends_graph(self, node: cst.CSTNode) -> bool:
        """Whether no gradient goes through a call: ``x.item()``, ``torch.argmax(x)``, ``Variable(x.data)``."""
        if method_call(node, *ENDS) is not None:
            return True
        if not isinstance(node, cst.Call) or identifier(node.func) not in _MAKES_ANEW:
            return False
        return (self._evaluator.names.qualified(node.func) or "").startswith("torch.")

    @remembered
    def _reads(self, node: cst.CSTNode) -> _Reads:
        """What is read in an expression, which many variables are looked for in."""
        names: list[cst.Name] = []
        keys: set[_Key] = set()
        stack = [node]
        while stack:
            current = stack.pop()
            if self._ends_graph(current):
                continue
            if isinstance(current, cst.Name):
                names.append(current)
            elif isinstance(current, cst.Attribute):
                keys.add((0, current.attr.value))
                if not _is_setting(current):
                    keys.add((0, f"{current.attr.value}()"))
                stack.append(current.value)
            elif isinstance(current, cst.Call) and isinstance(current.func, cst.Attribute):
                keys.add((0, f"{current.func.attr.value}()"))  # a field of the same name is something else
                stack += (current.func.value, *current.args)
            elif isinstance(current, cst.Arg):
                stack.append(current.value)
            else:
                stack += children(current)
        return _Reads(tuple(names), frozenset(keys))


def _is_setting(attribute: cst.Attribute) -> bool:
    """Return whether an attribute belongs to the options of a program: ``self.config.train``, which runs nothing."""
    owner = attribute.value
    while isinstance(owner, cst.Attribute) and identifier(owner) not in OPTIONS:
        owner = owner.value
    return isinstance(owner, (cst.Name, cst.Attribute)) and identifier(owner) in OPTIONS


def _terms(start: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what a pass starts from and all that it is made of, but for what calls are told by keywords."""
    yield start
    if not isinstance(start, cst.Arg) or start.keyword is None:
        for child in children(start):
            yield from _terms(child)
