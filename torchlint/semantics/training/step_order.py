"""What a training step does to gradients, in the order in which it does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import canonical
from torchlint.syntax.walk import children

CLIPS = frozenset(
    f"torch.nn.utils{module}.{name}"
    for module in ("", ".clip_grad")
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
)
_GRADIENTS = frozenset(("torch.autograd.grad", "torch.autograd.backward"))
# Packages none of whose functions takes a training step.
_PLAIN = frozenset("torch torchvision builtins numpy math time random os sys json logging tqdm copy itertools".split())
# What can be called without taking a training step.
_PASSIVE = frozenset(
    (
        *(Kind.TENSOR, Kind.NDARRAY, Kind.NUMBER, Kind.STRING, Kind.BATCH, Kind.SEQUENCE, Kind.MAPPING, Kind.DEVICE),
        *(Kind.OPTIMIZER, Kind.SCALER, Kind.SCHEDULER, Kind.DATALOADER, Kind.ITERATOR),
    )
)
_MODES = frozenset(("train", "eval", "to", "cuda", "cpu", "parameters", "named_parameters", "state_dict", "modules"))
# Methods that are harmless whatever has them.
_HARMLESS = frozenset(
    "sum mean item detach float double view reshape flatten squeeze unsqueeze cpu cuda to numpy tolist append extend "
    "size dim clone log exp max min argmax norm format join items keys values set_description set_postfix "
    "debug info warn warning error exception".split()
)
# Methods of modules that may do more than compute outputs.
_TRAINS = re.compile("zero|reset|clear|step|train|optim|grad|update|backward")


class Act(Enum):
    """What a call does to gradients or by means of them."""

    BACKWARD = "computes gradients"
    CLIP = "clips gradients"
    UNSCALE = "divides gradients by the loss scale"
    UPDATE = "moves the parameters"
    CLEAR = "drops gradients"
    SCHEDULE = "sets the learning rate"
    OTHER = "may do any of these"


class Event(NamedTuple):
    """One call of a step."""

    act: Act
    node: cst.CSTNode
    subject: str = ""
    """The optimizer that is updated or unscaled, what is cleared, or the scheduler, as the code names it."""

    scaled: bool = False
    """Whether a gradient scaler takes part."""


class Steps:
    """Lists the events of loops and functions."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._events: dict[int, tuple[Event, ...]] = {}
        self._acting: dict[int, bool] = {}

    def root(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the innermost loop or function whose body a node runs in, or the module."""
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (*LOOPS, cst.FunctionDef, cst.Lambda)) and child is ancestor.body:
                return ancestor
            child = ancestor
        return self._tree.module

    def events(self, root: cst.CSTNode) -> tuple[Event, ...]:
        """Return the events of a loop or function in document order; an inner loop that acts is one of them."""
        if id(root) not in self._events:
            self._events[id(root)] = tuple(sorted(self._find(root), key=self._place))
        return self._events[id(root)]

    def _place(self, event: Event) -> tuple[int, int]:
        """The place of an event in time: arguments and receivers are computed before what is called."""
        return self._tree.last(event.node), -self._tree.order(event.node)

    def around(self, node: cst.CSTNode) -> Event | None:
        """Return the event that a call is."""
        return next((event for event in self.events(self.root(node)) if event.node is node), None)

    def preceding(self, event: Event) -> Iterator[tuple[Event, bool]]:
        """Yield the events before one in its loop or function, the nearest first, with whether each always happens.

        In a loop those of the pass before follow. What stands in another branch of an ``if`` is left out.
        """
        root = self.root(event.node)
        events = [e for e in self.events(root) if e is event or not self._exclusive(e, event)]
        place = events.index(event)
        for earlier in reversed(events[:place]):
            yield earlier, self._shares_block(earlier, event)
        if isinstance(root, LOOPS):
            for earlier in reversed(events[place + 1 :]):
                yield earlier, self._is_direct(earlier, root) and self._is_direct(event, root)

    def following(self, event: Event) -> list[Event]:
        """Return the events after one in its loop or function, those in other branches left out."""
        events = self.events(self.root(event.node))
        return [e for e in events[events.index(event) + 1 :] if not self._exclusive(e, event)]

    def may_clear(self, event: Event) -> bool:
        """Return whether an event that is no more than a call of something unknown may drop gradients.

        A function does not if it is given no module and no optimizer, nor does a method of a module that only computes.
        """
        node = event.node
        if event.act is not Act.OTHER:
            return False
        if not isinstance(node, cst.Call) or self._evaluator.definitions.definition(node.func) is not None:
            return True
        if isinstance(node.func, cst.Attribute) and self._evaluator.names.qualified(node.func) is None:
            forward = self._evaluator.value(node.func.value).kind is Kind.MODULE
            return not forward or bool(_TRAINS.search(node.func.attr.value))
        given = (name for a in node.args for name in self._tree.descendants(a.value) if isinstance(name, cst.Name))
        return any(self._evaluator.value(name).kind in (Kind.OPTIMIZER, Kind.MODULE) for name in given)

    def _exclusive(self, first: Event, second: Event) -> bool:
        return self._evaluator.flow.exclusive(first.node, second.node)

    def _shares_block(self, first: Event, second: Event) -> bool:
        """Whether an earlier event has happened whenever a later one does, but for early exits."""
        around = {id(block) for block, _ in self._evaluator.flow.blocks(second.node)}
        for block, _ in self._evaluator.flow.blocks(first.node):
            if id(block) in around:
                return True
            if not isinstance(self._tree.parent(block), cst.With):
                return False
        return False

    def _is_direct(self, event: Event, loop: cst.CSTNode) -> bool:
        """Whether an event happens in every pass of a loop."""
        for ancestor in self._tree.ancestors(event.node):
            if ancestor is loop:
                return True
            if isinstance(ancestor, (cst.If, cst.IfExp, cst.BooleanOperation, cst.Try, cst.Match)):
                return False
        return False

    def _find(self, root: cst.CSTNode) -> Iterator[Event]:
        body = getattr(root, "body", root)
        stack = list(body) if isinstance(body, (list, tuple)) else [body]
        while stack:
            node = stack.pop()
            if isinstance(node, LOOPS):
                if self._acts(node):
                    yield Event(Act.OTHER, node)
                continue
            if node.__class__ in FUNCTIONS or isinstance(node, cst.ClassDef):
                continue
            if isinstance(node, cst.AssignTarget) and _is_gradient(node.target):
                yield Event(Act.OTHER, node)
            elif isinstance(node, cst.Call):
                event = self._event(node)
                if event is not None:
                    yield event
            stack += children(node)

    def _event(self, call: cst.Call) -> Event | None:
        method = method_call(call)
        if method is not None:
            found = self._method(call, method)
            if found is not None:
                return found
        name = self._evaluator.names.qualified(call.func)
        if name in CLIPS:
            return Event(Act.CLIP, call)
        return Event(Act.OTHER, call) if name in _GRADIENTS or self._may_act(call, name, method) else None

    def _method(self, call: cst.Call, method: cst.Attribute) -> Event | None:
        name, receiver = method.attr.value, method.value
        if name.endswith("_") and _is_gradient(receiver):
            return Event(Act.OTHER, call)
        if name == "backward":
            engine = any(argument.keyword is None for argument in call.args)
            return Event(Act.OTHER if engine else Act.BACKWARD, call, scaled=method_call(receiver, "scale") is not None)
        if name == "zero_grad":
            return Event(Act.CLEAR, call, canonical(receiver))
        if name == "unscale_" and call.args:
            return Event(Act.UNSCALE, call, canonical(call.args[0].value), scaled=True)
        if name != "step":
            return None
        kind = self._evaluator.value(receiver).kind
        if kind is Kind.OPTIMIZER and not call.args:
            return Event(Act.UPDATE, call, canonical(receiver))
        if kind is Kind.SCALER and call.args:
            return Event(Act.UPDATE, call, canonical(call.args[0].value), scaled=True)
        schedules = kind is Kind.SCHEDULER or "sched" in identifier(receiver).lower()
        return Event(Act.SCHEDULE if schedules else Act.OTHER, call, canonical(receiver))

    def _may_act(self, call: cst.Call, name: str | None, method: cst.Attribute | None) -> bool:
        """Whether a call may do anything to gradients, as far as this file shows."""
        definition = self._evaluator.definitions.definition(call.func)
        if isinstance(definition, cst.FunctionDef):
            return self._acts(definition)
        if name is not None:
            return name.partition(".")[0] not in _PLAIN
        if method is None:
            return self._evaluator.value(call.func).kind is not Kind.MODULE
        if method.attr.value in _HARMLESS or literal(method.value) is not None:
            return False
        if self._evaluator.value(call.func).kind is Kind.MODULE:
            return False
        owner = self._evaluator.value(method.value)
        return owner.kind not in _PASSIVE and not (owner.kind is Kind.MODULE and method.attr.value in _MODES)

    def _acts(self, node: cst.FunctionDef | cst.For | cst.While) -> bool:
        """Whether anything happens in a function or loop; recursion adds nothing."""
        if id(node) not in self._acting:
            self._acting[id(node)] = False
            self._acting[id(node)] = next(self._find(node), None) is not None
        return self._acting[id(node)]


def _is_gradient(expression: cst.BaseExpression) -> bool:
    """Whether an expression is ``p.grad`` or ``p.grad.data``."""
    while isinstance(expression, cst.Attribute):
        if expression.attr.value == "grad":
            return True
        expression = expression.value
    return False
