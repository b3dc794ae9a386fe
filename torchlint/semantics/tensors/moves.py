"""Moves of tensors between devices: ``.cuda()``, ``.to(device)``, ``.type_as(x)``, ``.type(tensor_type)``."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.functions import named_device
from torchlint.semantics.evaluate.hints import named
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import (
    CUDA_CONSTRUCTORS,
    DEFAULT_DEVICE_SETTERS,
    DEVICE_CONTEXTS,
    DTYPE_OF_CONSTRUCTOR,
    LEGACY_CONSTRUCTORS,
)
from torchlint.semantics.tensors.optional_moves import is_optional
from torchlint.semantics.values import Device, Kind, Value
from torchlint.syntax.calls import bind, code, identifier, is_none, literal, method_call
from torchlint.syntax.canonical import canonical, is_same

_TO = ("device", "dtype", "non_blocking", "copy")
_CUDA = ("device", "non_blocking", "memory_format")
_HARMLESS = frozenset(("device", "dtype", "non_blocking", "copy"))
_SWITCHES = DEFAULT_DEVICE_SETTERS | {"torch.cuda.set_device", "torch.set_default_dtype"}
_COMPUTES = (Device.ACCELERATOR, Device.EITHER)
_PLAIN_CALLS = frozenset(("torch.device", "torch.cuda.current_device", "torch.cuda.is_available"))


Source: TypeAlias = "str | cst.BaseExpression"
"""Code, or the expression whose code it is, which is only asked for where somebody wants to read it."""


class Move(NamedTuple):
    """A method call that moves a tensor to a device, with what the same device is called elsewhere."""

    call: cst.Call
    receiver: cst.BaseExpression
    method: str
    place: Device
    device_source: Source
    dtype_source: Source
    names: tuple[cst.BaseExpression, ...]
    """The expressions of the user's that ``device`` and ``dtype`` are made of."""

    evidence: Evidence
    droppable: bool
    """Whether the move does nothing else, once the tensor is on the device with the dtype."""

    @property
    def device(self) -> str:
        """The code that names the device, "" where none does."""
        return _written(self.device_source)

    @property
    def dtype(self) -> str:
        """The code of the dtype that the move casts to, "" if it keeps the dtype."""
        return _written(self.dtype_source)


def _written(source: Source) -> str:
    return source if isinstance(source, str) else code(source)


class TensorType(NamedTuple):
    """A legacy tensor type such as ``torch.cuda.FloatTensor``."""

    place: Device
    dtype: str | None
    name: str | None
    """The qualified name, None if it is chosen at run time."""


class Moves:
    """Recognises moves."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._devices: frozenset[str] | None = None
        self._setters: frozenset[int] | None = None
        self._destination: tuple[Device | None] | None = None

    def is_plain(self, expression: cst.CSTNode) -> bool:
        """Return whether evaluating an expression earlier or twice cannot be noticed: names, attributes, literals."""
        return _is_plain(expression, self._evaluator)

    def move(self, call: cst.Call) -> Move | None:
        """Return the move that a call makes, to whatever device; None if it is none or may be none."""
        if not isinstance(call.func, cst.Attribute):
            return None
        method = call.func.attr.value
        if method not in ("to", "cuda", "cpu", "type_as", "type") or self._evaluator.names.qualified(call.func):
            return None
        if method == "cpu":
            return self._made(call, Device.CPU, '"cpu"')
        if method == "cuda":
            return self._cuda(call)
        if method == "type_as":
            return self._type_as(call)
        return self._type(call) if method == "type" else self._to(call)

    @property
    def destination(self) -> Device | None:
        """Where the file visibly moves tensors or models: an accelerator for certain, one of them, or None."""
        if self._destination is None:
            tree = self._evaluator.tree
            found = (self.move(call) for call in tree.nodes(cst.Call))
            moves = [m for m in found if m and m.method in ("to", "cuda") and m.place in _COMPUTES]
            is_open = any(m.place is Device.EITHER for m in moves) or all(is_optional(m.call, tree) for m in moves)
            self._destination = ((Device.EITHER if is_open else Device.ACCELERATOR) if moves else None,)
        return self._destination[0]

    def tensor_type(self, expression: cst.CSTNode) -> TensorType | None:
        """Return the legacy tensor type that an expression names, also one that is chosen at run time."""
        name = self._evaluator.names.qualified(expression)
        text = literal(expression)
        name = text if isinstance(text, str) else name
        if name is not None:
            if name not in CUDA_CONSTRUCTORS and name not in LEGACY_CONSTRUCTORS:
                return None
            place = Device.ACCELERATOR if name in CUDA_CONSTRUCTORS else Device.CPU
            return TensorType(place, DTYPE_OF_CONSTRUCTOR[name.rpartition(".")[2]], name)
        if isinstance(expression, cst.IfExp):
            return _either(self.tensor_type(expression.body), self.tensor_type(expression.orelse))
        return self._chosen_type(expression) if isinstance(expression, (cst.Name, cst.Attribute)) else None

    def _chosen_type(self, variable: cst.Name | cst.Attribute) -> TensorType | None:
        """The types that are assigned to a name, or to an attribute of ``self``."""
        found: list[TensorType] = []
        for value in self._assigned(variable):
            one = self.tensor_type(value) if value is not None and not is_same(variable, value) else None
            if one is None:
                return None
            found.append(one)
        joined: TensorType | None = found[0] if found else None
        for other in found[1:]:
            joined = _either(joined, other)
        return joined

    def _assigned(self, variable: cst.Name | cst.Attribute) -> list[cst.BaseExpression | None]:
        if isinstance(variable, cst.Name):
            bindings = self._evaluator.flow.definitions(variable)
            return [b.value if b.kind is BindingKind.ASSIGNMENT and not b.path else None for b in bindings]
        owner = variable.value
        class_def = self._evaluator.definitions.receiver(owner) if isinstance(owner, cst.Name) else None
        if class_def is None:
            return []
        attributes = self._evaluator.definitions.attribute(class_def, variable.attr.value)
        return [None if attribute.path else attribute.value for attribute in attributes]

    def in_context(self, node: cst.CSTNode) -> bool:
        """Return whether a ``with`` block around a node decides about devices or streams."""
        return any(
            isinstance(ancestor, cst.With)
            and any(
                self._evaluator.names.qualified(call_target(item.item)) in DEVICE_CONTEXTS for item in ancestor.items
            )
            for ancestor in self._evaluator.tree.ancestors(node)
        )

    def on_default_device(self, node: cst.CSTNode) -> bool:
        """Return whether factories at a node may work on a default device that the file sets, itself or in a caller."""
        setters = self._default_setters()
        if not setters or id(None) in setters:
            return bool(setters)
        waiting = [self._evaluator.definitions.enclosing_function(node)]
        seen: set[int] = set()
        while waiting:
            function = waiting.pop()
            if id(function) in setters:
                return True
            if function is not None and id(function) not in seen:
                seen.add(id(function))
                callers = self._evaluator.callers(function)
                if not callers and self._evaluator.definitions.owner(function) is not None:
                    return True  # an object calls it, such as a model its forward pass: from anywhere
                waiting += [self._evaluator.definitions.enclosing_function(call) for call in callers]
        return False

    def switches_device(self, statement: cst.CSTNode) -> bool:
        """Return whether a statement, or a function of this file that it calls, sets the current or default device."""
        calls = [node for node in self._evaluator.tree.descendants(statement) if isinstance(node, cst.Call)]
        called = (self._evaluator.definitions.definition(call.func) for call in calls)
        calls += [
            node
            for function in called
            if isinstance(function, cst.FunctionDef)
            for node in self._evaluator.tree.descendants(function)
            if isinstance(node, cst.Call)
        ]
        return any(self._evaluator.names.qualified(call.func) in _SWITCHES for call in calls)

    def _default_setters(self) -> frozenset[int]:
        """The functions that set the device or the tensor type of factories; that of None for the module itself."""
        if self._setters is None:
            self._setters = frozenset(
                id(self._evaluator.definitions.enclosing_function(call))
                for call in self._evaluator.tree.nodes(cst.Call)
                if self._evaluator.names.qualified(call.func) in DEFAULT_DEVICE_SETTERS and self._sets_device(call)
            )
        return self._setters

    def _sets_device(self, call: cst.Call) -> bool:
        wanted = call.args[0].value if call.args else None
        legacy = self.tensor_type(wanted) if wanted is not None else None
        if legacy is not None:
            return legacy.place is not Device.CPU
        return wanted is not None and named_device(self._evaluator.value(wanted)) is not Device.CPU

    def _made(
        self,
        call: cst.Call,
        place: Device,
        device: Source,
        dtype: Source = "",
        names: tuple[cst.BaseExpression, ...] = (),
        evidence: Evidence = Evidence.PROVEN,
        droppable: bool = True,
    ) -> Move:
        assert isinstance(call.func, cst.Attribute)
        return Move(call, call.func.value, call.func.attr.value, place, device, dtype, names, evidence, droppable)

    def _cuda(self, call: cst.Call) -> Move | None:
        given = bind(call.args, _CUDA)
        if given.open:
            return None
        droppable = given.get("memory_format") is None
        device = given.get("device")
        if device is None or is_none(device):
            return self._made(call, Device.ACCELERATOR, '"cuda"', droppable=droppable)
        value = self._evaluator.value(device)
        names = (device,)
        if value.kind is Kind.DEVICE or isinstance(value.literal, str):
            # By its name alone it may be None, which is the current device here and the CPU in a factory.
            return self._made(call, Device.ACCELERATOR, device, "", names, value.evidence, droppable)
        torch_device = self._evaluator.names.spelling("torch.device", call)
        index = value.kind is Kind.NUMBER and torch_device is not None
        made = f'{torch_device}("cuda", {code(device)})' if index else ""
        evidence = value.evidence if index else Evidence.NAMED
        return self._made(call, Device.ACCELERATOR, made, "", names, evidence, droppable)

    def _to(self, call: cst.Call) -> Move | None:
        given = bind(call.args, _TO)
        device, dtype = given.get("device"), given.get("dtype")
        if given.open_positions or given.get("other") is not None or device is None or is_none(device):
            return None
        value = self._evaluator.value(device)
        place, evidence = self._place(device, value), self.certainty(device, value)
        if place is None:
            return None
        if (
            dtype is not None
            and not isinstance(literal(dtype), bool)
            and self._evaluator.value(dtype).kind is not Kind.DTYPE
        ):
            evidence = min(evidence, Evidence.INFERRED)
        casts = dtype is not None and not is_none(dtype) and not isinstance(literal(dtype), bool)
        cast = dtype if dtype is not None and casts else ""
        mappings = tuple(argument.value for argument in call.args if argument.star)
        names = (device, dtype, *mappings) if dtype is not None and casts else (device, *mappings)
        droppable = given.named.keys() <= _HARMLESS and not given.extra and not given.open_keywords
        return self._made(call, place, device, cast, names, evidence, droppable)

    def to_other(self, call: cst.Call, places: tuple[Device, ...] = _COMPUTES) -> Move | None:
        """Return the move to where another tensor is, which is one of some places: ``x.to(other)``."""
        if method_call(call, "to") is None or len(call.args) != 1 or call.args[0].star or call.args[0].keyword:
            return None
        other = self._evaluator.value(call.args[0].value)
        if not other.is_tensor or other.device not in places:
            return None
        return self._made(call, other.device, "", "", (call.args[0].value,), min(other.evidence, Evidence.INFERRED))

    def indexes_host(self, move: Move) -> bool:
        """Return whether a tensor only goes to where one is that it indexes: ``x[i.to(x.device)].cuda()``."""
        tree, place = self._evaluator.tree, move.names[0] if move.names else None
        subscript = tree.enclosing(move.call, cst.Subscript, cst.Call)
        method = tree.parent(subscript) if isinstance(subscript, cst.Subscript) else None
        moves_on = tree.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(place, cst.Attribute) or not isinstance(subscript, cst.Subscript):
            return False
        on = self.move(moves_on) if isinstance(moves_on, cst.Call) else None
        return on is not None and on.receiver is subscript and is_same(place.value, subscript.value)

    def leaves_host(self, device: cst.BaseExpression, accelerator: Evidence | None) -> bool:
        """Return whether an argument names a device other than the CPU, by more than its name alone."""
        value = self._evaluator.value(device)
        if self._place(device, value) in (None, Device.CPU):
            return False
        is_certain = isinstance(device, cst.Attribute) or value.evidence >= Evidence.INFERRED
        return is_certain or accelerator is Evidence.PROVEN

    def _place(self, expression: cst.BaseExpression, value: Value) -> Device | None:
        """Return the place that the argument of ``.to`` names; None for a dtype, a tensor, or anything unknown."""
        if isinstance(expression, cst.FormattedString):
            first = expression.parts[0] if expression.parts else None
            text = first.value if isinstance(first, cst.FormattedStringText) else ""
            return Device.ACCELERATOR if text.startswith("cuda") else Device.EITHER
        if value.kind is Kind.DEVICE:
            return value.device
        if value.kind is Kind.STRING:
            return named_device(value)
        if value.kind is Kind.NUMBER and not isinstance(value.literal, (bool, float)):
            return Device.ACCELERATOR
        return Device.EITHER if self._is_attribute_device(expression) or _is_called_device(expression) else None

    def certainty(self, expression: cst.BaseExpression, value: Value) -> Evidence:
        """Return how certain it is that an expression in the place of a device is one."""
        if self._is_attribute_device(expression) or canonical(expression) in self._known_devices():
            return max(value.evidence, Evidence.INFERRED) if value.known else Evidence.INFERRED
        return value.evidence if value.known else Evidence.NAMED

    def _is_attribute_device(self, expression: cst.BaseExpression) -> bool:
        """``x.device``, ``x["device"]``: what a tensor, a module and most settings call the place where they live."""
        if isinstance(expression, cst.Subscript) and isinstance(expression.slice[0].slice, cst.Index):
            return literal(expression.slice[0].slice.value) == "device"
        if isinstance(expression, cst.Attribute) and expression.attr.value == "index":
            return self._is_attribute_device(expression.value)
        return isinstance(expression, cst.Attribute) and expression.attr.value == "device"

    def _known_devices(self) -> frozenset[str]:
        """What the file gives to ``device=`` or ``torch.device`` somewhere."""
        if self._devices is None:
            arguments = self._evaluator.tree.nodes(cst.Arg)
            self._devices = frozenset(
                canonical(argument.value) for argument in arguments if self._names_device(argument)
            )
        return self._devices

    def _names_device(self, argument: cst.Arg) -> bool:
        if not isinstance(argument.value, (cst.Name, cst.Attribute)):
            return False
        if argument.keyword is not None:
            return argument.keyword.value == "device"
        call = self._evaluator.tree.parent(argument)
        name = self._evaluator.names.qualified(call.func) if isinstance(call, cst.Call) else None
        return name in ("torch.device", "torch.cuda.set_device")

    def _type_as(self, call: cst.Call) -> Move | None:
        if len(call.args) != 1 or call.args[0].star or call.args[0].keyword is not None:
            return None
        other = call.args[0].value
        place = self._evaluator.value(other).device
        if not isinstance(other, (cst.Name, cst.Attribute)):
            return self._made(call, place, "", "", (other,), Evidence.NAMED)
        text = code(other)
        return self._made(call, place, f"{text}.device", f"{text}.dtype", (other,))

    def _type(self, call: cst.Call) -> Move | None:
        if len(call.args) != 1 or call.args[0].star:
            return None
        found = self.tensor_type(call.args[0].value)
        if found is None:
            return None
        if found.name is None or found.dtype is None:
            return self._made(call, found.place, "", "", (), Evidence.NAMED)
        dtype = self._evaluator.names.spelling(found.dtype, call)
        evidence = Evidence.PROVEN if dtype else Evidence.NAMED
        return self._made(call, found.place, '"cuda"', dtype or "", (), evidence)


def call_target(expression: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a call calls; of anything else the expression itself."""
    return expression.func if isinstance(expression, cst.Call) else expression


def _is_plain(expression: cst.CSTNode, evaluator: Evaluator) -> bool:
    if isinstance(expression, cst.Name) or literal(expression) is not None:
        return True
    if isinstance(expression, cst.Attribute):
        return _is_plain(expression.value, evaluator)
    parts: list[cst.BaseExpression] = []
    if isinstance(expression, cst.Call) and evaluator.names.qualified(expression.func) in _PLAIN_CALLS:
        parts = [argument.value for argument in expression.args]
    elif isinstance(expression, cst.IfExp):
        parts = [expression.test, expression.body, expression.orelse]
    elif isinstance(expression, cst.FormattedString):
        parts = [part.expression for part in expression.parts if isinstance(part, cst.FormattedStringExpression)]
    else:
        return False
    return all(_is_plain(part, evaluator) for part in parts)


def _is_called_device(expression: cst.BaseExpression) -> bool:
    """Return whether a name says that an element or a result is a device: ``gpus[0]``, ``get_device()``."""
    if isinstance(expression, cst.Subscript):
        return named(identifier(expression)).kind is Kind.DEVICE
    return isinstance(expression, cst.Call) and named(identifier(expression.func)).kind is Kind.DEVICE


def _either(first: TensorType | None, second: TensorType | None) -> TensorType | None:
    if first is None or second is None:
        return None
    if first == second:
        return first
    place = first.place if first.place is second.place else Device.EITHER
    return TensorType(place, first.dtype if first.dtype == second.dtype else None, None)
