"""Loaders that a program iterates over anew in each pass of an outer loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import COMPREHENSIONS, Binding
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.loaders import PREPARES
from torchlint.semantics.tables.torch_api import ITERATION_WRAPPERS
from torchlint.syntax.calls import element_at, identifier, method_call

_WRAPPERS = ITERATION_WRAPPERS | {"builtins.enumerate", "builtins.zip"}
_BARS = ("tqdm", "track")
_MOST_CALLERS = 4
_EAGER = frozenset(("builtins.iter", "builtins.list", "builtins.tuple", "builtins.sorted"))
"""What begins to iterate at once."""

_DEPTH = 2
"""Through how many functions a loader is followed that hand it on."""


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
        for used in (made, *self.reads(made, through_attributes=through_attributes), *prepared):
            for place in self._iterations(used):
                loop = self._loop_around(place, used, made) or self._loop_below(place, used, made)
                if loop is not None:
                    return loop
        return None

    def makes_anew(self, loop: cst.For | cst.While, made: cst.Call) -> bool:
        """Return whether what a loop calls makes the loader."""
        return any(self._holds(region, made) for region in self.regions(loop))

    def is_one_of_many(self, made: cst.Call) -> bool:
        """Return whether loaders are made one for each of many things, and all kept: in a comprehension, by a class."""
        definitions = self._evaluator.definitions
        maker = definitions.enclosing_function(made)
        owner = definitions.owner(maker) if maker is not None and maker.name.value == "__init__" else None
        places = [made]
        if owner is not None:
            places += [call for call in self._tree.nodes(cst.Call) if definitions.definition(call.func) is owner]
        around = (self._tree.enclosing(place, *COMPREHENSIONS, cst.SimpleStatementLine) for place in places)
        kept = (each for each in around if isinstance(each, COMPREHENSIONS))
        return not all(map(self._is_for_few, kept))

    def _is_for_few(self, comprehension: cst.BaseComp) -> bool:
        """Whether a comprehension goes over a few things that are written out, or over the names of splits."""
        over: cst.BaseExpression | None = comprehension.for_in.iter
        bindings = self._evaluator.flow.definitions(over) if isinstance(over, cst.Name) else []
        over = bindings[0].part if len(bindings) == 1 else over
        is_named = isinstance(comprehension, cst.DictComp) and not isinstance(over, cst.Call)
        return is_named or isinstance(over, (cst.Tuple, cst.List, cst.Set))

    def iterated(self, made: cst.Call) -> bool:
        """Return whether a loop iterates over what a call makes, where it is made or through its variable."""
        return any(True for _ in self.places(made))

    def places(self, made: cst.Call, *, through_attributes: bool = False) -> Iterator[cst.CSTNode]:
        """Yield the loops over what a call makes, and the calls of functions of the file that hold such a loop."""
        for used in (made, *self.reads(made, through_attributes=through_attributes)):
            yield from self._iterations(used)

    def names(self, made: cst.Call) -> list[cst.Name]:
        """Return the uses of the variable that holds what a call makes."""
        binding = self._binding(made)
        return self._uses(binding) if binding is not None else []

    def regions(self, loop: cst.For | cst.While) -> list[cst.CSTNode]:
        """Return the body of a loop, and those of the functions of the file that it calls."""
        found: list[cst.CSTNode] = [loop.body]
        waiting: list[tuple[cst.CSTNode, int]] = [(loop.body, 0)]
        for region, depth in waiting:
            for call in self._tree.below(region, cst.Call) if depth <= _DEPTH else ():
                function = self._evaluator.definitions.definition(call.func)
                if isinstance(function, cst.FunctionDef) and not any(function.body is one for one in found):
                    found.append(function.body)
                    waiting.append((function.body, depth + 1))
        return found

    def reads(
        self, made: cst.Call, *, through_attributes: bool = False
    ) -> Iterator[cst.Name | cst.Attribute | cst.Call]:
        """Yield the reads of what holds the result of a call, and the calls of the function that returns it."""
        yield from self.names(made)
        if through_attributes:
            yield from self._attributes(made)
            yield from self._kept(made)
            for call in self._calls_of_maker(made):
                yield call
                yield from self.names(call)
                yield from (*self._attributes(call), *self._kept(call))
            yield from self._unpacked(made)

    def _unpacked(self, made: cst.Call) -> Iterator[cst.Name]:
        """The reads of the variables to which callers unpack what a function returns: ``train, test = loaders()``."""
        function = self._evaluator.definitions.enclosing_function(made)
        returned = {id(used) for used in (made, *self.names(made))}
        if function is not None:
            yield from self.unpacked(function, lambda element: id(element) in returned)

    def unpacked(self, function: cst.FunctionDef, of: Callable[[cst.BaseExpression], bool]) -> Iterator[cst.Name]:
        """Yield the reads of the variables to which callers unpack some elements of what a function returns."""
        results = self._evaluator.definitions.results(function)
        given = results[0] if len(results) == 1 else None
        elements = given.elements if isinstance(given, cst.Tuple) else ()
        places = [index for index, element in enumerate(elements) if of(element.value)]
        for call in self._evaluator.callers(function):
            statement = self._tree.parent(call)
            target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
            for index in places:
                bound = element_at(target, (index,))
                bindings = self._evaluator.scopes.bindings(bound) if isinstance(bound, cst.Name) else []
                yield from (use for each in bindings if each.node is bound for use in self._uses(each))

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
        taken = parameter_for(made, argument, call, self._evaluator.definitions)
        kept = (
            value
            for value in self._tree.below(made.body, cst.Assign)
            if isinstance(value.value, cst.Name) and taken is not None and value.value.value == taken.name.value
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
        read = (node for node in self._tree.attributes_named(name) if node is not target)
        return [node for node in read if self._receiver(node) is owner]

    def _receiver(self, attribute: cst.Attribute) -> cst.ClassDef | None:
        owner = attribute.value
        return self._evaluator.definitions.receiver(owner) if isinstance(owner, cst.Name) else None

    def _binding(self, made: cst.Call) -> Binding | None:
        """The binding of the variable that a call is assigned to, itself or as a value of a dictionary."""
        held: cst.CSTNode = made
        entry = self._tree.parent(made)
        if isinstance(entry, cst.DictElement):
            held = self._tree.parent(entry) or made
        elif isinstance(entry, cst.DictComp) and entry.value is made:
            held = entry
        statement = self._tree.parent(held)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Name):
            return None
        return next((b for b in self._evaluator.scopes.bindings(target) if b.value is held), None)

    def _uses(self, binding: Binding) -> list[cst.Name]:
        """The uses of a variable where it can hold nothing but what this binding gives it."""
        names = self._tree.named(binding.name)
        return [name for name in names if self._evaluator.flow.definitions(name) == [binding]]

    def _iterations(self, used: cst.Name | cst.Attribute | cst.Call, depth: int = 0) -> Iterator[cst.CSTNode]:
        """Yield the loop that a use of a loader iterates in, or the call of a function that does, or of ``iter``."""
        child: cst.CSTNode = used
        wrapper: cst.Call | None = None
        for ancestor in self._tree.ancestors(used):
            if isinstance(ancestor, (cst.For, cst.CompFor)) and child is ancestor.iter:
                if isinstance(ancestor, cst.CompFor) or not _leaves(ancestor.body):
                    yield ancestor
                return
            is_call = isinstance(ancestor, cst.Call) and child is not ancestor.func
            if depth and isinstance(ancestor, cst.From) and isinstance(self._tree.parent(ancestor), cst.Yield):
                yield ancestor  # of a generator that is given the loader
                return
            if isinstance(ancestor, cst.Call) and is_call and self.wraps(ancestor):
                wrapper = ancestor
            elif isinstance(ancestor, cst.Call) and is_call and self._is_iterated_by(ancestor, child, depth):
                yield ancestor
                return
            elif not isinstance(ancestor, cst.Arg) and not (
                isinstance(ancestor, cst.Subscript) and child is ancestor.value  # of a dictionary of loaders
            ):
                break
            child = ancestor
        if wrapper is not None and self._evaluator.names.qualified(wrapper.func) in _EAGER:
            yield wrapper
        elif wrapper is not None and depth < _DEPTH:
            for name in self._bound_to(wrapper):
                yield from self._iterations(name, depth + 1)

    def _bound_to(self, wrapper: cst.Call) -> list[cst.Name]:
        """The uses of the variable that holds what wraps a loader: ``with tqdm(loader) as bar``."""
        holder = self._tree.parent(wrapper)
        target = holder.targets[0].target if isinstance(holder, cst.Assign) else None
        if isinstance(holder, cst.WithItem) and holder.asname is not None:
            target = holder.asname.name
        bindings = self._evaluator.scopes.bindings(target) if isinstance(target, cst.Name) else []
        return [use for each in bindings if each.node is target for use in self._uses(each)]

    def wraps(self, call: cst.Call) -> bool:
        """Return whether a call gives an iterator over what it is given: ``enumerate``, ``zip``, a progress bar."""
        return self._evaluator.names.qualified(call.func) in _WRAPPERS or identifier(call.func) in _BARS

    def _is_iterated_by(self, call: cst.Call, argument: cst.CSTNode, depth: int) -> bool:
        """Whether a function of the file has a loop over what a call gives it, or hands it to one that has."""
        if not isinstance(argument, cst.Arg):
            return False
        names = self.handed(call, argument) if depth < _DEPTH else []
        return any(True for name in names for _ in self._iterations(name, depth + 1))

    def handed(self, call: cst.Call, argument: cst.Arg) -> list[cst.Name]:
        """Return the uses, in the function of the file that a call runs, of what the call gives it."""
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef):
            return []
        taken = parameter_for(function, argument, call, self._evaluator.definitions)
        name = taken.name.value if taken is not None else ""
        scope = self._evaluator.scopes.inner(function)
        return [
            used
            for used in self._tree.below(function.body, cst.Name)
            if used.value == name and self._evaluator.scopes.deciding(name, self._evaluator.scopes.scope(used)) is scope
        ]

    def _loop_around(
        self, place: cst.CSTNode, used: cst.CSTNode, made: cst.Call, through: tuple[cst.FunctionDef, ...] = ()
    ) -> cst.For | cst.While | None:
        """The loop around a place, or around the calls of its function, in which the loader is not made anew."""
        loop = self._loop_of(place, used, made)
        if loop is not None:
            return None if self._runs_once(loop) else loop
        function = self._evaluator.definitions.enclosing_function(place)
        is_known = any(function is each for each in through) or len(through) > _MOST_CALLERS
        if function is None or self._holds(function, made) or is_known:
            return None
        for caller in self._evaluator.callers(function):
            if not self._holds(function, caller):
                loop = self._loop_around(caller, caller, made, (*through, function))
                if loop is not None:
                    return loop
        return None

    def _loop_of(self, place: cst.CSTNode, used: cst.CSTNode, made: cst.Call) -> cst.For | cst.While | None:
        """The loop around a place, in its function, in which the loader is not made anew."""
        function = self._evaluator.definitions.enclosing_function(place)
        child = place
        tests: list[cst.BaseExpression] = []
        for ancestor in self._tree.ancestors(place):
            if ancestor is function:
                break
            is_within = child is getattr(ancestor, "body", None) and not self._holds(ancestor, made)
            if isinstance(ancestor, LOOPS) and is_within and not self._takes_turns(ancestor, used):
                return None if any(self._holds_once(test, ancestor) for test in tests) else ancestor
            if isinstance(ancestor, cst.If) and child is ancestor.body:
                tests.append(ancestor.test)
            child = ancestor
        return None

    def _takes_turns(self, loop: cst.For | cst.While, used: cst.CSTNode) -> bool:
        """Whether each pass of a loop takes another loader out of a dictionary: ``loaders[phase]``."""
        entry = self._tree.parent(used)
        if not isinstance(entry, cst.Subscript) or not isinstance(loop, cst.For):
            return False
        keys = {name.value for element in entry.slice for name in self._tree.below(element, cst.Name)}
        return any(name.value in keys for name in self._tree.below(loop.target, cst.Name))

    def _holds_once(self, test: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether a condition holds in one pass of a loop only: ``epoch == 0``, or ``not done`` until it is done."""
        if isinstance(test, cst.BooleanOperation):
            sides = (self._holds_once(side, loop) for side in (test.left, test.right))
            return all(sides) if isinstance(test.operator, cst.Or) else any(sides)
        if isinstance(test, cst.Comparison):
            named = {name.value for name in self._tree.below(test, cst.Name)}
            counts = self._tree.below(loop.target, cst.Name) if isinstance(loop, cst.For) else ()
            is_equal = all(isinstance(target.operator, cst.Equal) for target in test.comparisons)
            is_periodic = any(map(_is_remainder, self._tree.below(test, cst.BinaryOperation)))
            return is_equal and not is_periodic and any(name.value in named for name in counts)
        if not isinstance(test, cst.UnaryOperation) or not isinstance(test.expression, cst.Name):
            return False
        stored = (target.target for target in self._tree.below(loop.body, cst.AssignTarget))
        return any(isinstance(target, cst.Name) and target.value == test.expression.value for target in stored)

    def _loop_below(
        self, place: cst.CSTNode, used: cst.CSTNode, made: cst.Call, depth: int = 0
    ) -> cst.For | cst.While | None:
        """The loop of the function that a call hands the loader to, around its iterations over it."""
        if not isinstance(place, cst.Call) or depth == _DEPTH:
            return None
        argument = next((argument for argument in place.args if self._tree.within(used, argument)), None)
        for name in self.handed(place, argument) if argument is not None else ():  # else a variable in between
            for inner in self._iterations(name, depth + 1):
                loop = self._loop_of(inner, name, made)
                loop = loop if loop is not None and not self._runs_once(loop) else None
                loop = loop or self._loop_below(inner, name, made, depth + 1)
                if loop is not None:
                    return loop
        return None

    def _runs_once(self, loop: cst.For | cst.While) -> bool:
        """Whether a loop is over ``range(1)`` or one written element, or only tries again what raised an error."""
        over = loop.iter if isinstance(loop, cst.For) else None
        if isinstance(over, (cst.Tuple, cst.List)) and len(over.elements) == 1:
            return True
        if (
            isinstance(over, cst.Call)
            and len(over.args) == 1
            and self._evaluator.value(over.args[0].value).literal == 1
        ):
            return True
        attempts = [statement.body for statement in loop.body.body if isinstance(statement, cst.Try)]
        return any(_leaves(body) for body in (loop.body, *attempts))

    def _holds(self, node: cst.CSTNode, below: cst.CSTNode) -> bool:
        return self._tree.order(node) <= self._tree.order(below) <= self._tree.last(node)


def _is_remainder(operation: cst.BinaryOperation) -> bool:
    return isinstance(operation.operator, cst.Modulo)


def _leaves(body: cst.BaseSuite) -> bool:
    """Whether the last statement of a block is one that ends a loop."""
    last = body.body[-1] if body.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Break, cst.Return))
