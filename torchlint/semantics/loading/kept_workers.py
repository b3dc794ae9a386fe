"""What workers that stay from epoch to epoch would not see, and loops that would share their one iterator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.loading.epochs import Epochs
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

_READING = frozenset("len print isinstance repr str id next iter enumerate zip tqdm range sorted list".split())
_DEPTH = 3


class KeptWorkers:
    """Asks what ``persistent_workers=True`` would change besides the time."""

    def __init__(self, evaluator: Evaluator, epochs: Epochs) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._epochs = epochs

    def share_iterator(self, made: cst.Call) -> bool:
        """Return whether a loader is iterated over while a loop over it runs: both would take turns on one iterator."""
        places = list(self._epochs.places(made))
        loops = [place for place in places if isinstance(place, cst.For)]
        if any(self._tree.within(place, loop.body) for place in places for loop in loops):
            return True
        names = self._epochs.names(made)
        if any(sum(self._tree.within(name, loop.iter) for name in names) > 1 for loop in loops):
            return True
        arguments = [parent for name in names if isinstance(parent := self._tree.parent(name), cst.Arg)]
        calls = [call for argument in arguments if isinstance(call := self._tree.parent(argument), cst.Call)]
        functions = [function for call in calls if (function := self._function(call)) is not None]
        return any(map(self._shares, functions))

    def misses_changes(self, loader: LoaderCall, loop: cst.For | cst.While) -> bool:
        """Return whether the loop over epochs, or what it calls, does something to what the workers hold."""
        direct, below = self._held(loader)
        for region in self._regions(loop):
            for node in self._tree.descendants(region):
                if isinstance(node, cst.Attribute) and node.attr.value == "dataset" and self._is_changed(node):
                    return True
                if isinstance(node, (cst.Name, cst.Attribute)):
                    if self._is_one_of(node, direct) and (self._is_changed(node) or self._is_given(node)):
                        return True
                    if self._is_one_of(node, below) and self._is_changed(node):
                        return True
        return self._seeds_by_epoch(loader, loop)

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

    def _is_iterated(self, name: cst.Name) -> bool:
        parent = self._tree.parent(name)
        return (isinstance(parent, cst.For) and parent.iter is name) or self._is_given(name, reading=False)

    def _held(self, loader: LoaderCall) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression]]:
        """The datasets and functions that the workers hold, and what those are made of."""
        direct: list[cst.BaseExpression] = []
        started = loader.given.get("worker_init_fn")
        for source in (*loader.datasets, loader.collate, started):
            if source is not None:
                direct += [source, *self._variables(source)]
        below: list[cst.BaseExpression] = []
        waiting = [(held, 0) for held in direct]
        for held, depth in waiting:
            bindings = self._evaluator.flow.definitions(held) if isinstance(held, cst.Name) else []
            for value in (binding.value for binding in bindings if binding.value is not None):
                found = list(self._variables(value))
                (direct if isinstance(value, cst.Name) else below).extend(found)
                waiting += [(one, depth + 1) for one in found if depth < _DEPTH]
        return direct, below

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

    def _regions(self, loop: cst.For | cst.While) -> list[cst.CSTNode]:
        """The body of a loop, and those of the functions of the file that it calls."""
        found: list[cst.CSTNode] = [loop.body]
        waiting: list[tuple[cst.CSTNode, int]] = [(loop.body, 0)]
        for region, depth in waiting:
            for call in self._tree.below(region, cst.Call) if depth < _DEPTH else ():
                function = self._function(call)
                if function is not None and not any(function.body is one for one in found):
                    found.append(function.body)
                    waiting.append((function.body, depth + 1))
        return found

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
