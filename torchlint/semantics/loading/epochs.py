"""Loaders that a program iterates over anew in each pass of an outer loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.loaders import PREPARES
from torchlint.semantics.tables.torch_api import ITERATION_WRAPPERS
from torchlint.syntax.calls import identifier, literal, method_call

_WRAPPERS = ITERATION_WRAPPERS | {"builtins.enumerate", "builtins.zip"}
_BARS = ("tqdm", "track")


class Epochs:
    """Follows a loader from where it is made to the loops that iterate over it."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def repeating(
        self, made: cst.Call, *, through_attributes: bool = False, through_accelerators: bool = False
    ) -> cst.For | cst.While | None:
        """Return the loop around an iteration over what a call makes; None if nothing shows that there is one.

        The variable that holds it is followed through the functions of the file that it is given to; attributes of
        ``self``, functions that return it, and what accelerate and Fabric hand back for it, only if asked.
        """
        prepared = (read for name in self.names(made) for read in self._prepared(name)) if through_accelerators else ()
        for used in (*self._holders(made, through_attributes), *prepared):
            for place in self._iterations(used):
                loop = self._loop_around(place, made)
                if loop is not None:
                    return loop
        return None

    def iterated(self, made: cst.Call) -> bool:
        """Return whether a loop iterates over what a call makes, where it is made or through its variable."""
        return any(True for _ in self.places(made))

    def places(self, made: cst.Call, *, through_attributes: bool = False) -> Iterator[cst.CSTNode]:
        """Yield the loops over what a call makes, and the calls of functions of the file that hold such a loop."""
        for used in (made, *self._holders(made, through_attributes)):
            yield from self._iterations(used)

    def names(self, made: cst.Call) -> list[cst.Name]:
        """Return the uses of the variable that holds what a call makes."""
        binding = self._binding(made)
        return self._uses(binding) if binding is not None else []

    def _holders(self, made: cst.Call, through_attributes: bool) -> Iterator[cst.Name | cst.Attribute | cst.Call]:
        """Yield the reads of what holds the result of a call, and the calls of the function that returns it."""
        yield from self.names(made)
        if through_attributes:
            yield from self._attributes(made)
            yield from self._kept(made)
            for call in self._calls_of_maker(made):
                yield call
                yield from self.names(call)
                yield from (*self._attributes(call), *self._kept(call))

    def _prepared(self, used: cst.Name) -> list[cst.Name]:
        """The reads of the variable to which an accelerator hands a loader back: ``loader = fabric.setup(loader)``."""
        argument = self._tree.parent(used)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or method_call(call, *PREPARES) is None:
            return []
        statement = self._tree.parent(call)
        target: cst.CSTNode | None = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if isinstance(target, cst.Tuple) and len(target.elements) == len(call.args):
            target = target.elements[call.args.index(argument)].value
        elif len(call.args) != 1:
            return []
        bindings = self._evaluator.scopes.bindings(target) if isinstance(target, cst.Name) else []
        return [read for each in bindings if each.node is target for read in self._uses(each)]

    def _calls_of_maker(self, made: cst.Call) -> list[cst.Call]:
        """The calls of the function that returns what a call makes."""
        function = self._evaluator.definitions.enclosing_function(made)
        returned = (made, *self.names(made))
        if function is None or not any(isinstance(self._tree.parent(used), cst.Return) for used in returned):
            return []
        return self._evaluator.callers(function)

    def _kept(self, made: cst.Call) -> list[cst.Attribute]:
        """The reads of the attributes in which classes of the file keep what a call makes."""
        places: list[cst.Name | cst.Call] = [made, *self.names(made)]
        return [read for used in places for read in self._kept_of(used)]

    def _kept_of(self, used: cst.Name | cst.Call) -> list[cst.Attribute]:
        """The reads of the attribute in which a class of the file keeps what its constructor is given."""
        argument = self._tree.parent(used)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        owner = self._evaluator.definitions.definition(call.func) if isinstance(call, cst.Call) else None
        made = self._evaluator.definitions.method(owner, "__init__") if isinstance(owner, cst.ClassDef) else None
        if not isinstance(argument, cst.Arg) or not isinstance(call, cst.Call) or made is None:
            return []
        name = self._parameter(made, call, argument)
        kept = (
            value
            for value in self._tree.below(made.body, cst.Assign)
            if isinstance(value.value, cst.Name) and value.value.value == name
        )
        return [read for statement in kept for read in self._attributes(statement.value)]

    def _attributes(self, made: cst.BaseExpression) -> list[cst.Attribute]:
        """The reads of the attribute of ``self`` that holds a value, and nothing else."""
        statement = self._tree.parent(made)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        owner = self._receiver(target) if isinstance(target, cst.Attribute) else None
        if owner is None or not isinstance(target, cst.Attribute):
            return []
        name = target.attr.value
        if len(self._evaluator.definitions.attribute(owner, name)) != 1:
            return []
        read = (node for node in self._tree.nodes(cst.Attribute) if node.attr.value == name and node is not target)
        return [node for node in read if self._receiver(node) is owner]

    def _receiver(self, attribute: cst.Attribute) -> cst.ClassDef | None:
        owner = attribute.value
        return self._evaluator.definitions.receiver(owner) if isinstance(owner, cst.Name) else None

    def _binding(self, made: cst.Call) -> Binding | None:
        """The binding of the variable that a call is assigned to."""
        statement = self._tree.parent(made)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Name):
            return None
        return next((b for b in self._evaluator.scopes.bindings(target) if b.value is made), None)

    def _uses(self, binding: Binding) -> list[cst.Name]:
        """The uses of a variable where it can hold nothing but what this binding gives it."""
        names = (name for name in self._tree.nodes(cst.Name) if name.value == binding.name)
        return [name for name in names if self._evaluator.flow.definitions(name) == [binding]]

    def _iterations(self, used: cst.Name | cst.Attribute | cst.Call) -> Iterator[cst.CSTNode]:
        """Yield the loop that a use of a loader iterates in, or the call of a function that does."""
        child: cst.CSTNode = used
        for ancestor in self._tree.ancestors(used):
            if isinstance(ancestor, cst.For) and child is ancestor.iter:
                yield ancestor
                return
            if isinstance(ancestor, cst.Call):
                if child is ancestor.func or not self._wraps(ancestor):
                    if child is not ancestor.func and self._is_iterated_by(ancestor, child):
                        yield ancestor
                    return
            elif not isinstance(ancestor, cst.Arg):
                return
            child = ancestor

    def _wraps(self, call: cst.Call) -> bool:
        return self._evaluator.names.qualified(call.func) in _WRAPPERS or identifier(call.func) in _BARS

    def _is_iterated_by(self, call: cst.Call, argument: cst.CSTNode) -> bool:
        """Whether a function of the file has a loop of its own over what a call gives it."""
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef) or not isinstance(argument, cst.Arg) or argument.star:
            return False
        name = self._parameter(function, call, argument)
        scope = self._evaluator.scopes.inner(function)
        return any(
            isinstance(used, cst.Name)
            and used.value == name
            and self._evaluator.scopes.deciding(name, self._evaluator.scopes.scope(used)) is scope
            and any(isinstance(place, cst.For) for place in self._iterations(used))
            for loop in self._tree.below(function.body, cst.For)
            for used in self._tree.descendants(loop.iter)
        )

    @staticmethod
    def _parameter(function: cst.FunctionDef, call: cst.Call, argument: cst.Arg) -> str:
        """The name by which a function knows an argument of a call; empty where it takes no such one."""
        names = [parameter.name.value for parameter in parameters(function)]
        if names[:1] == ["self"]:
            names = names[1:]
        place = next(index for index, given in enumerate(call.args) if given is argument)
        return argument.keyword.value if argument.keyword is not None else (names[place : place + 1] or [""])[0]

    def _loop_around(self, place: cst.CSTNode, made: cst.Call) -> cst.For | cst.While | None:
        """The loop around a place, or around the calls of its function, in which the loader is not made anew."""
        function = self._evaluator.definitions.enclosing_function(place)
        child = place
        for ancestor in self._tree.ancestors(place):
            if ancestor is function:
                break
            if isinstance(ancestor, LOOPS) and child is ancestor.body and not self._holds(ancestor, made):
                return None if _runs_once(ancestor) else ancestor
            child = ancestor
        if function is None or self._holds(function, made):
            return None
        for caller in self._evaluator.callers(function):
            if not self._holds(function, caller):
                loop = self._loop_around(caller, made)
                if loop is not None:
                    return loop
        return None

    def _holds(self, node: cst.CSTNode, below: cst.CSTNode) -> bool:
        return self._tree.order(node) <= self._tree.order(below) <= self._tree.last(node)


def _runs_once(loop: cst.For | cst.While) -> bool:
    """Whether a loop is over ``range(1)``."""
    made = loop.iter if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Call) else None
    return made is not None and len(made.args) == 1 and literal(made.args[0].value) == 1
