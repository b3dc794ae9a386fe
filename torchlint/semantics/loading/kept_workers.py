"""What workers that stay from epoch to epoch would not see, and loops that would share their one iterator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import COMPREHENSIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.loading.changed_datasets import is_changed_by_loader, is_changed_elsewhere
from torchlint.semantics.loading.epochs import Epochs
from torchlint.semantics.loading.trainer_loaders import is_asked_once, is_changed_between
from torchlint.semantics.tables.container_methods import STORES
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

_STORES = frozenset((*STORES, "store"))
_READING = frozenset("len print isinstance repr str id next iter enumerate zip tqdm range sorted list".split())
_DEPTH = 3


class KeptWorkers:
    """Asks what ``persistent_workers=True`` would change besides the time."""

    def __init__(self, evaluator: Evaluator, epochs: Epochs) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._epochs = epochs
        self._misses_writes: dict[cst.Call, bool] = {}

    def share_iterator(self, made: cst.Call) -> bool:
        """Return whether a loader is iterated over while a loop over it runs: both would take turns on one iterator."""
        places = list(self._epochs.places(made, through_attributes=True))
        loops = [place for place in places if isinstance(place, cst.For)]
        regions = [region for loop in loops for region in self._epochs.regions(loop)]
        reads = list(self._epochs.reads(made, through_attributes=True)) or [made]
        holders = [self._holder(place) for place in places]
        if any(holders) and len(set(holders)) > 1:
            return True
        if any(isinstance(self._tree.parent(place), cst.ListComp) for place in places):
            return True  # `[iter(loader) for _ in range(2)]`
        if any(self._is_in_generator(place, made) for place in places):
            return True
        again = [*places, *filter(self._is_iterated, reads)]
        if any(self._tree.within(place, region) for place in again for region in regions):
            return True
        if any(sum(self._tree.within(read, loop.iter) for read in reads) > 1 for loop in loops):
            return True
        alone = self._only_generator(reads, made)
        return any(
            function is not alone and self._shares(function)
            for call, _ in self._given(reads)
            for function in self._reached(call)
        )

    def _only_generator(
        self, reads: list[cst.Name | cst.Attribute | cst.Call], made: cst.Call
    ) -> cst.FunctionDef | None:
        """The generator function that is given a loader once, where that is made, and by whom nobody else gets it."""
        frames = (*LOOPS, *COMPREHENSIONS, cst.FunctionDef, cst.Lambda)
        around = self._tree.enclosing(reads[0], *frames)
        if len(reads) > 1 or isinstance(reads[0], cst.Attribute) or around is not self._tree.enclosing(made, *frames):
            return None
        return next((self._function(call) for call, _ in self._given(reads)), None)

    def _is_in_generator(self, place: cst.CSTNode, made: cst.Call) -> bool:
        """Whether a loop stands in a generator that has the loader from around it: each call of it makes another."""
        function = self._evaluator.definitions.enclosing_function(place)
        if function is None or function is self._evaluator.definitions.enclosing_function(made):
            return False
        return any(True for _ in self._tree.below(function.body, cst.Yield))

    def _holder(self, place: cst.CSTNode) -> str:
        """What keeps an iterator, a variable or a list; "" for a loop, which is done with it at its end."""
        is_kept = isinstance(place, cst.Call) and identifier(place.func) == "iter"
        statement = self._tree.parent(place) if is_kept else None
        if isinstance(statement, cst.Element):
            return str(self._tree.order(place))
        return identifier(statement.targets[0].target) if isinstance(statement, cst.Assign) else ""

    def _given(self, reads: Iterable[cst.CSTNode]) -> Iterator[tuple[cst.Call, cst.Arg]]:
        """The calls that are given one of the reads, and as which argument."""
        for read in reads:
            argument = self._tree.parent(read)
            call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
            if isinstance(argument, cst.Arg) and isinstance(call, cst.Call):
                yield call, argument

    def _reached(self, call: cst.Call, depth: int = 0) -> Iterator[cst.FunctionDef]:
        """The function of the file that a call runs, and those that it hands its arguments on to."""
        function = self._function(call)
        if function is None:
            return
        yield function
        for argument in call.args if depth < _DEPTH else ():
            for inner, _ in self._given(self._epochs.handed(call, argument)):
                yield from self._reached(inner, depth + 1)

    def misses_changes(self, loader: LoaderCall, loop: cst.For | cst.While) -> bool:
        """Return whether the loop over epochs, or what it calls, does something to what the workers hold."""
        direct, below = self._held(loader)
        if self._goes_along(loader, direct) or is_changed_elsewhere(direct, self._evaluator):
            return True
        reads = list(self._epochs.reads(loader.call, through_attributes=True))
        if any(map(self._gives_dataset, reads)):
            return True
        loaders = frozenset(map(identifier, reads))
        names = frozenset(identifier(each) for each in (*direct, *below) if isinstance(each, (cst.Name, cst.Attribute)))
        if is_changed_by_loader(loaders, names, self._evaluator):
            return True
        around = (node for node in self._tree.ancestors(loop) if isinstance(node, LOOPS))
        loop = next((node for node in reversed([loop, *around]) if not self._tree.within(loader.call, node)), loop)
        for nodes in (self._between(loader.call), *map(self._tree.descendants, self._epochs.regions(loop))):
            for node in nodes:
                if isinstance(node, cst.Attribute) and node.attr.value == "dataset" and self._is_changed(node):
                    return True
                if isinstance(node, (cst.Name, cst.Attribute)):
                    if self._is_one_of(node, direct) and (self._is_changed(node) or self._is_given(node)):
                        return True
                    if self._is_one_of(node, below) and self._is_changed(node):
                        return True
        return self._seeds_by_epoch(loader, loop)

    def _gives_dataset(self, read: cst.CSTNode) -> bool:
        """Whether another variable is given the dataset of a loader, by which it may be changed."""
        part = self._tree.parent(read)
        if not isinstance(part, cst.Attribute) or part.value is not read or part.attr.value != "dataset":
            return False
        return isinstance(self._tree.parent(part), cst.Assign)

    def stay_with_trainer(self, loader: LoaderCall) -> bool:
        """Return whether a trainer asks for a loader once, goes over it in each epoch, and nothing changes it."""
        if not is_asked_once(loader.call, self._evaluator):
            return False
        direct, _ = self._held(loader)
        return not is_changed_between((*loader.datasets, *direct), self._evaluator)

    def misses_writes(self, loader: LoaderCall) -> bool:
        """Return whether a loop over the batches writes to the dataset, of which workers have copies."""
        if loader.call not in self._misses_writes:
            self._misses_writes[loader.call] = self._are_written(loader)
        return self._misses_writes[loader.call]

    def _are_written(self, loader: LoaderCall) -> bool:
        if self._collates_with_memory(loader):
            return True
        direct, _ = self._held(loader)
        samplers = (loader.given.get("sampler"), loader.given.get("batch_sampler"))
        direct += [each for each in samplers if each is not None]
        loops = (place for place in self._epochs.places(loader.call) if isinstance(place, cst.For))
        below = (node for loop in loops for node in self._tree.descendants(loop.body))
        return any(
            isinstance(node, (cst.Name, cst.Attribute)) and self._is_one_of(node, direct) and self._is_written(node)
            for node in below
        )

    def _collates_with_memory(self, loader: LoaderCall) -> bool:
        """Whether the function that joins a batch notes something for the program: ``names.append(item.name)``."""
        collate = loader.collate
        made = self._evaluator.definitions.definition(collate) if collate is not None else None
        owner = self._evaluator.value(collate).definition if collate is not None and made is None else None
        if isinstance(owner, cst.ClassDef):
            made = self._evaluator.definitions.method(owner, "__call__")
        if not isinstance(made, cst.FunctionDef):
            return False
        local = self._evaluator.scopes.inner(made)
        stored = [*self._stored_in(made)]
        puts = (method_call(call, *STORES) for call in self._tree.below(made.body, cst.Call))
        stored += [put.value for put in puts if put is not None and isinstance(put.value, cst.Name)]
        scopes = self._evaluator.scopes
        is_own = (scopes.deciding(name.value, scopes.scope(name)) is local for name in stored)
        receives = any(self._evaluator.definitions.receiver(name) is not None for name in stored)
        return receives or not all(is_own)

    def _is_written(self, node: cst.CSTNode) -> bool:
        """Whether a part of an object is stored to, or a method of the file is called that stores to its own."""
        parent = self._tree.parent(node)
        if not isinstance(parent, (cst.Attribute, cst.Subscript)) or parent.value is not node:
            return False
        above = self._tree.parent(parent)
        if isinstance(above, (cst.AugAssign, cst.AssignTarget)):
            return above.target is parent
        if isinstance(above, cst.Subscript):
            return self._is_written(parent)
        if not isinstance(parent, cst.Attribute) or not isinstance(above, cst.Call) or above.func is not parent:
            return False
        if parent.attr.value in _STORES:
            return True
        methods = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == parent.attr.value)
        stored = (target for method in methods for target in self._stored_in(method))
        return any(self._evaluator.definitions.receiver(name) is not None for name in stored)

    def _stored_in(self, method: cst.FunctionDef) -> Iterator[cst.Name]:
        """The names of the objects whose attributes a method stores to."""
        statements: list[cst.AssignTarget | cst.AugAssign] = [
            *self._tree.below(method.body, cst.AssignTarget),
            *self._tree.below(method.body, cst.AugAssign),
        ]
        for statement in statements:
            target: cst.BaseExpression = statement.target
            while isinstance(target, (cst.Subscript, cst.Attribute)):
                target = target.value
            if isinstance(target, cst.Name) and target is not statement.target:
                yield target

    def _between(self, made: cst.Call) -> Iterator[cst.CSTNode]:
        """What runs between two loops over the loader, in the function that makes it."""
        places = [self._tree.order(place) for place in self._epochs.places(made)]
        function = self._evaluator.definitions.enclosing_function(made)
        for node in self._tree.descendants(function.body) if function is not None and len(places) > 1 else ():
            if min(places) < self._tree.order(node) < max(places):
                yield node

    def _goes_along(self, loader: LoaderCall, held: list[cst.BaseExpression]) -> bool:
        """Whether a function or class of the file is given the loader and also what its workers hold."""
        reads = (loader.call, *self._epochs.reads(loader.call, through_attributes=True))
        return any(
            isinstance(other.value, (cst.Name, cst.Attribute)) and self._is_one_of(other.value, held)
            for call, argument in self._given(reads)
            if self._evaluator.definitions.definition(call.func) is not None
            for other in call.args
            if other is not argument
        )

    def _is_one_of(self, node: cst.Name | cst.Attribute, held: list[cst.BaseExpression], depth: int = 0) -> bool:
        """Whether an expression is a variable that is held, or another name of one."""
        if isinstance(node, cst.Attribute):
            return any(is_same(node, one) for one in held)
        definitions = self._evaluator.flow.definitions
        here = {id(binding) for binding in definitions(node)}
        same = (one for one in held if isinstance(one, cst.Name) and one.value == node.value)
        if any(here & {id(binding) for binding in definitions(one)} for one in same):
            return True
        values = [b.value for b in definitions(node) if b.kind is BindingKind.ASSIGNMENT and not b.path]
        names = (value for value in values if isinstance(value, cst.Name))
        if depth < _DEPTH and any(self._is_one_of(name, held, depth + 1) for name in names):
            return True
        others = (value for value in values if value is not None and not isinstance(value, cst.Name))
        return any(is_same(value, one) for value in others for one in held)

    def _shares(self, function: cst.FunctionDef) -> bool:
        """Whether a function yields from what it is given, or uses a parameter again in a loop over it."""
        if any(True for _ in self._tree.below(function.body, cst.Yield)):
            return True
        names = {parameter.name.value for parameter in parameters(function)}
        for loop in self._tree.below(function.body, cst.For):
            over = {n.value for n in self._tree.below(loop.iter, cst.Name)} & names
            for name in self._tree.below(loop.body, cst.Name):
                if name.value in over and self._is_iterated(name):
                    return True
        return False

    def _is_iterated(self, read: cst.CSTNode) -> bool:
        parent = self._tree.parent(read)
        is_looped = isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is read
        return is_looped or self._is_given(read, reading=False)

    def _held(self, loader: LoaderCall) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression]]:
        """The datasets and functions that the workers hold, and what those are made of."""
        direct: list[cst.BaseExpression] = []
        started = loader.given.get("worker_init_fn")
        for source in (*loader.datasets, loader.collate, started):
            if source is not None:
                direct += [source, *self._variables(source)]
        direct += [given for held in direct for given in self._passed(held, loader.call)]
        direct += [kept for held in direct for kept in self._kept(held)]
        direct += [each for source in loader.datasets for each in self._returned(source, loader.call)]
        below: list[cst.BaseExpression] = []
        below += self._returned(loader.collate, loader.call) if loader.collate is not None else ()
        waiting = [(held, 0) for held in direct]
        for held, depth in waiting:
            bindings = self._evaluator.flow.definitions(held) if isinstance(held, cst.Name) else []
            for value in (binding.value for binding in bindings if binding.value is not None):
                found = list(self._variables(value))
                (direct if isinstance(value, cst.Name) else below).extend(found)
                waiting += [(one, depth + 1) for one in found if depth < _DEPTH]
        return direct, below

    def _passed(self, held: cst.BaseExpression, made: cst.Call) -> Iterator[cst.BaseExpression]:
        """What callers pass for a parameter, where the function that makes the loader takes it as one."""
        function = self._evaluator.definitions.enclosing_function(made)
        if function is None or not isinstance(held, cst.Name):
            return
        param = next((param for param in parameters(function) if param.name.value == held.value), None)
        if param is None:
            return
        for call in self._evaluator.callers(function):
            given = argument_for(function, param, call, self._evaluator.definitions)
            if given is not None:
                yield from (given, *self._variables(given))

    def _returned(self, held: cst.BaseExpression, made: cst.Call) -> list[cst.Name]:
        """The variables of callers that get what a loader holds, where the function that makes it returns both."""
        function = self._evaluator.definitions.enclosing_function(made)
        if function is None or not isinstance(held, cst.Name):
            return []
        return list(self._epochs.unpacked(function, lambda e: isinstance(e, cst.Name) and self._is_one_of(e, [held])))

    def _kept(self, held: cst.BaseExpression) -> Iterator[cst.Attribute]:
        """The attributes in which the value of a variable is kept."""
        for statement in self._tree.nodes(cst.Assign) if isinstance(held, cst.Name) else ():
            if isinstance(statement.value, cst.Name) and self._is_one_of(statement.value, [held]):
                yield from (t.target for t in statement.targets if isinstance(t.target, cst.Attribute))

    def _variables(self, expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The variables that an expression is made of: names, and attributes of names."""
        if isinstance(expression, (cst.Name, cst.Attribute)):
            if self._evaluator.names.qualified(expression) is None:
                yield expression
        elif isinstance(expression, cst.Call):
            for argument in expression.args:
                yield from self._variables(argument.value)
        elif isinstance(expression, cst.Subscript):
            yield from self._variables(expression.value)
        elif isinstance(expression, (cst.List, cst.Tuple)):
            for element in expression.elements:
                yield from self._variables(element.value)

    def _function(self, call: cst.Call) -> cst.FunctionDef | None:
        found = self._evaluator.definitions.definition(call.func)
        return found if isinstance(found, cst.FunctionDef) else None

    def _is_changed(self, node: cst.CSTNode) -> bool:
        """Whether a method of a value is called, or it or a part of it is stored to or shuffled."""
        parent = self._tree.parent(node)
        if isinstance(parent, (cst.Attribute, cst.Subscript)) and parent.value is node:
            above = self._tree.parent(parent)
            called = isinstance(above, cst.Call) and above.func is parent and isinstance(parent, cst.Attribute)
            return called or self._is_stored(parent, above)
        if isinstance(parent, cst.Arg):
            return "shuffle" in identifier(getattr(self._tree.parent(parent), "func", parent))
        return self._is_stored(node, parent)

    def _is_stored(self, node: cst.CSTNode, parent: cst.CSTNode | None) -> bool:
        if isinstance(parent, (cst.AugAssign, cst.AssignTarget)):
            return parent.target is node
        return isinstance(parent, (cst.Attribute, cst.Subscript)) and self._is_changed(parent)

    def _is_given(self, node: cst.CSTNode, *, reading: bool = True) -> bool:
        """Whether a value is handed to a call that may do anything with it."""
        argument = self._tree.parent(node)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        name = identifier(call.func)
        return name not in (_READING if reading else ("len", "print")) and not name.endswith("Loader")

    def _seeds_by_epoch(self, loader: LoaderCall, loop: cst.For | cst.While) -> bool:
        """Whether what starts a worker reads a variable that the loop sets."""
        started = loader.given.get("worker_init_fn")
        function = self._evaluator.definitions.definition(started) if started is not None else None
        read: Iterable[cst.Name] = ()
        if isinstance(function, cst.FunctionDef):
            read = self._tree.below(function.body, cst.Name)
        elif isinstance(started, cst.Lambda):
            read = self._tree.below(started.body, cst.Name)
        stored = {n.value for t in self._tree.below(loop, cst.AssignTarget) for n in self._tree.below(t, cst.Name)}
        if isinstance(loop, cst.For):
            stored |= {name.value for name in self._tree.below(loop.target, cst.Name)}
        return any(name.value in stored for name in read)
