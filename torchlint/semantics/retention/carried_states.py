"""Recurrent states that go from step to step with the graph of all steps before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.hotness import Hotness
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_CUTS = frozenset(("detach", "detach_", "data", "no_grad", "inference_mode", "repackage_hidden", "stop_gradient"))
_OPTIONS = ("gradient", "retain_graph", "create_graph", "inputs")

Variable = cst.Name | cst.Attribute


class CarriedState(NamedTuple):
    """A state that a model is given and gives."""

    variable: Variable
    place: cst.CSTNode
    """Where the variable that carries it is bound."""

    call: cst.Call
    """The forward pass."""

    is_shared: bool
    """Whether a second backward pass of the same step needs the graph that the first one keeps."""


class CarriedStates:
    """Finds them, where backward passes keep their graphs: without ``retain_graph=True`` the second one fails."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness
        self._backward = backward

    @cached_property
    def occur(self) -> bool:
        """Whether a backward pass of the file keeps its graph."""
        return bool(self._keeping)

    @cached_property
    def _keeping(self) -> list[cst.Call]:
        calls = (call for call in self._backward.passes() if method_call(call, "backward") is not None)
        return [call for call in calls if self._keeps_graph(call)]

    def _keeps_graph(self, call: cst.Call) -> bool:
        given = bind(call.args, _OPTIONS)
        is_kept = given.get("retain_graph")
        return is_kept is not None and literal(is_kept) is True and given.absent("create_graph")

    def state(self, statement: cst.Assign) -> CarriedState | None:
        """Return the state of ``output, state = model(input, state)``, which nothing cuts off from earlier steps."""
        call = statement.value
        if not isinstance(call, cst.Call) or self._evaluator.value(call.func).kind is not Kind.MODULE:
            return None
        for target in _variables(statement):
            if isinstance(target, cst.Name):
                found = self._is_carried(target, statement, call)
            else:
                found = self._is_kept_by_module(target, statement, call)
            if found and not self._is_cut_by(call):
                is_shared = self._is_shared(statement)
                loop = self._tree.enclosing(statement, *LOOPS)
                carrier = self._carrier(target, loop) if isinstance(target, cst.Name) and loop is not None else target
                place = self._evaluator.flow.statement(carrier)
                shown = self._is_shown(call) or not is_shared
                return CarriedState(carrier, place, call, is_shared) if shown else None
        return None

    def _is_carried(self, target: cst.Name, statement: cst.Assign, call: cst.Call) -> bool:
        """Whether a variable is read and bound by the same statement of a training loop, and nowhere else in it."""
        loop = self._tree.enclosing(statement, *LOOPS, *FUNCTIONS)
        if loop is None or not isinstance(loop, LOOPS):
            return False
        heat = self._hotness.heat(statement)
        if heat is None or heat.root is not loop or not heat.trains:
            return False
        target = self._carrier(target, loop)
        uses = [name for name in self._tree.named(target.value) if self._tree.within(name, loop)]
        given = [name for name in uses if name is not target]
        if not given or not all(self._is_argument(name, call) for name in given):
            return False
        is_same_variable = any(b.node is target for n in given for b in self._evaluator.flow.definitions(n))
        return is_same_variable and self._feeds_kept_graph(statement, loop)

    def _carrier(self, target: cst.Name, loop: cst.CSTNode) -> cst.Name:
        """The variable that carries what another one gets on to the next pass: ``state = new_state``."""
        uses = [n for n in self._tree.named(target.value) if self._tree.within(n, loop) and n is not target]
        handed = self._tree.parent(uses[0]) if len(uses) == 1 else None
        if not isinstance(handed, cst.Assign) or len(handed.targets) != 1 or handed.value is not uses[0]:
            return target
        carrier = handed.targets[0].target
        return carrier if isinstance(carrier, cst.Name) else target

    def _feeds_kept_graph(self, statement: cst.Assign, loop: cst.CSTNode) -> bool:
        """Whether a backward pass in a loop keeps the graph of what a statement computes."""
        if not any(self._tree.enclosing(call, *LOOPS, *FUNCTIONS) is loop for call in self._keeping):
            return False
        return any(self._backward.reaches(variable, loop) for variable in _variables(statement))

    def _is_kept_by_module(self, target: cst.Attribute, statement: cst.Assign, call: cst.Call) -> bool:
        """Whether a module keeps its state in an attribute that nothing else in the file binds or cuts off."""
        function = self._evaluator.definitions.enclosing_function(statement)
        if function is None or function.name.value != "forward" or not isinstance(target.value, cst.Name):
            return False
        owner = self._evaluator.definitions.receiver(target.value)
        if owner is None or self._tree.enclosing(statement, *LOOPS, *FUNCTIONS) is not function:
            return False
        uses = self._tree.attributes_named(target.attr.value)
        others = [node for node in uses if node is not target and not self._is_made(node)]
        if not others or not all(is_same(node, target) and self._is_argument(node, call) for node in others):
            return False
        return any((heat := self._hotness.heat(kept)) is not None and heat.trains for kept in self._keeping)

    def _is_made(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute is bound where its object is made, or beside all loops that train."""
        if not isinstance(self._tree.parent(attribute), cst.AssignTarget):
            return False
        function = self._evaluator.definitions.enclosing_function(attribute)
        if function is not None and function.name.value == "__init__":
            return True
        around = [
            (self._evaluator.definitions.enclosing_function(c), list(self._loops_around(c))) for c in self._keeping
        ]
        return all(
            each is function and loops and not any(self._tree.within(attribute, loop) for loop in loops)
            for each, loops in around
        )

    def _loops_around(self, call: cst.Call) -> Iterator[cst.CSTNode]:
        for ancestor in self._tree.ancestors(call):
            if isinstance(ancestor, FUNCTIONS):
                return
            if isinstance(ancestor, LOOPS):
                yield ancestor

    def _is_argument(self, node: cst.CSTNode, call: cst.Call) -> bool:
        """Whether something is given to a call, alone or in a tuple."""
        parent = self._tree.parent(node)
        while isinstance(parent, (cst.Element, cst.Tuple)):
            parent = self._tree.parent(parent)
        return isinstance(parent, cst.Arg) and self._tree.parent(parent) is call

    def _is_shared(self, statement: cst.Assign) -> bool:
        """Whether all passes of the loop that keep their graph stand before another pass in it: two losses."""
        loop = self._tree.enclosing(statement, *LOOPS, *FUNCTIONS)
        passes = [call for call in self._backward.passes() if self._tree.enclosing(call, *LOOPS, *FUNCTIONS) is loop]
        last = max(map(self._tree.order, passes), default=0)
        return bool(passes) and not any(self._tree.order(call) == last for call in self._keeping)

    def _is_shown(self, call: cst.Call) -> bool:
        """Whether it can be seen what a model does with its state: one of another file may cut it off itself."""
        model = self._evaluator.value(call.func)
        return isinstance(model.definition, cst.ClassDef) or (model.name or "").startswith("torch.nn.")

    def _is_cut_by(self, call: cst.Call) -> bool:
        """Whether the model that is called, if the file shows it, may cut the state off itself."""
        definition = self._evaluator.value(call.func).definition
        within = self._tree.descendants(definition) if isinstance(definition, cst.ClassDef) else iter(())
        return any(identifier(node) in _CUTS for node in within if isinstance(node, (cst.Name, cst.Attribute)))


def _variables(statement: cst.Assign) -> Iterator[Variable]:
    """Yield the names and attributes that a statement binds, also in tuples."""
    stack: list[cst.BaseExpression] = [target.target for target in statement.targets]
    while stack:
        target = stack.pop()
        if isinstance(target, (cst.Tuple, cst.List)):
            stack += [element.value for element in target.elements]
        elif isinstance(target, (cst.Name, cst.Attribute)):
            yield target
