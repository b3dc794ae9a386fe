"""Abstract values: what an expression can be known to hold without running it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evidence import Evidence


class Kind(Enum):
    """What sort of object a value is."""

    UNKNOWN = "unknown"
    PENDING = "pending"
    """Whatever the variable held before: a join passes it over."""

    NONE = "None"
    NUMBER = "number"
    STRING = "string"
    TENSOR = "tensor"
    NDARRAY = "ndarray"
    SEQUENCE = "sequence"
    MAPPING = "mapping"
    ITERATOR = "iterator"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    DATASET = "dataset"
    DATALOADER = "dataloader"
    BATCH = "batch"
    DEVICE = "device"
    DTYPE = "dtype"
    FUNCTION = "function"
    CLASS = "class"
    INSTANCE = "instance"


class Device(Enum):
    """Where a tensor lives, or which place a device value names."""

    UNKNOWN = "unknown"
    CPU = "cpu"
    ACCELERATOR = "accelerator"
    EITHER = "chosen at run time"


class Graph(Enum):
    """Whether a tensor keeps the autograd graph that led to it alive."""

    UNKNOWN = "unknown"
    DETACHED = "detached"
    ATTACHED = "attached"


class Origin(Enum):
    """Where a tensor comes from."""

    UNKNOWN = "unknown"
    FACTORY = "factory"
    BATCH = "batch"
    OUTPUT = "model output"
    LOSS = "loss"
    PARAMETER = "parameter"


class Value(NamedTuple):
    """One abstract value. Fields that do not apply to its kind keep their defaults."""

    kind: Kind = Kind.UNKNOWN
    evidence: Evidence = Evidence.PROVEN
    name: str | None = None
    """Qualified name of the class of a module, optimizer, dataset..., or of a function or class itself."""

    definition: cst.FunctionDef | cst.ClassDef | None = None
    """The function, or the class of an instance, where the file defines it."""

    device: Device = Device.UNKNOWN
    graph: Graph = Graph.UNKNOWN
    origin: Origin = Origin.UNKNOWN
    dtype: str | None = None
    literal: bool | int | float | str | None = None
    element: Value | None = None
    """What iterating gives: the items of a sequence, the batches of a loader, the values of a mapping.

    Of a type of tensors what calling it gives.
    """

    elements: tuple[Value, ...] | None = None
    """The items of a tuple or list whose length is visible."""

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.kind is not Kind.UNKNOWN and self.kind is not Kind.PENDING

    @property
    def is_tensor(self) -> bool:
        """Whether this is a torch tensor."""
        return self.kind is Kind.TENSOR

    def weakened(self, evidence: Evidence) -> Value:
        """Return the same value on no better evidence than this."""
        return self if evidence >= self.evidence else self._replace(evidence=evidence)

    def borne_out(self) -> Value:
        """Return the same value on the evidence of its use."""
        elements = None if self.elements is None else tuple(e.borne_out() for e in self.elements)
        element = None if self.element is None else self.element.borne_out()
        return self._replace(evidence=max(self.evidence, Evidence.INFERRED), elements=elements, element=element)

    def item(self, index: int) -> Value:
        """Return what unpacking or subscripting with a constant gives."""
        if self.elements is not None and -len(self.elements) <= index < len(self.elements):
            return self.elements[index]
        return self.iterated()

    def iterated(self) -> Value:
        """Return what one step of iteration gives."""
        if self.element is not None:
            return self.element
        if self.elements:
            return join(self.elements)
        if self.kind is Kind.DATALOADER:
            evidence = min(self.evidence, Evidence.INFERRED)
            return Value(Kind.BATCH, evidence, device=Device.CPU, graph=Graph.DETACHED, origin=Origin.BATCH)
        if self.kind in (Kind.TENSOR, Kind.BATCH):
            return self._replace(kind=Kind.TENSOR)
        if self.kind in (Kind.NDARRAY, Kind.PENDING):
            return self
        if self.kind is Kind.MODULE:
            return Value(Kind.MODULE, self.evidence)
        return UNKNOWN


UNKNOWN = Value()
PENDING = Value(Kind.PENDING)
NONE = Value(Kind.NONE)
NUMBER = Value(Kind.NUMBER)
STRING = Value(Kind.STRING)
DTYPE = Value(Kind.DTYPE)
NDARRAY = Value(Kind.NDARRAY)
TENSOR = Value(Kind.TENSOR)


def tensor(
    evidence: Evidence = Evidence.PROVEN,
    device: Device = Device.UNKNOWN,
    graph: Graph = Graph.UNKNOWN,
    origin: Origin = Origin.UNKNOWN,
    dtype: str | None = None,
) -> Value:
    """Return a tensor value."""
    return Value(Kind.TENSOR, evidence, device=device, graph=graph, origin=origin, dtype=dtype)


def sequence(*elements: Value) -> Value:
    """Return a tuple or list of visible length."""
    return Value(Kind.SEQUENCE, min((e.evidence for e in elements), default=Evidence.PROVEN), elements=elements)


def of(kind: Kind, element: Value) -> Value:
    """Return a container of unknown length, as certain as what it holds."""
    return Value(kind, element.evidence, element=element)


def join(values: tuple[Value, ...] | list[Value]) -> Value:
    """Return what is true of all values; None is passed over, anything else that differs makes it unknown."""
    settled = [v for v in values if v.kind is not Kind.PENDING]
    if not settled:
        return PENDING if values else UNKNOWN
    present = [v for v in settled if v.kind is not Kind.NONE]
    if not present:
        return NONE
    first = present[0]
    for other in present[1:]:
        first = _join_two(first, other)
    return first.weakened(Evidence.INFERRED) if len(present) < len(settled) else first


def _join_two(first: Value, second: Value) -> Value:
    if first == second:
        return first
    if first.kind is not second.kind:
        batches = {first.kind, second.kind} == {Kind.BATCH, Kind.TENSOR}
        if not batches:
            return UNKNOWN
    same_shape = (
        first.elements is not None and second.elements is not None and len(first.elements) == len(second.elements)
    )
    return Value(
        Kind.TENSOR if first.kind is not second.kind else first.kind,
        min(first.evidence, second.evidence),
        name=first.name if first.name == second.name else None,
        definition=first.definition if first.definition is second.definition else None,
        device=_join_devices(first.device, second.device),
        graph=_join_graphs(first.graph, second.graph),
        origin=first.origin if first.origin is second.origin else Origin.UNKNOWN,
        dtype=first.dtype if first.dtype == second.dtype else None,
        literal=first.literal if first.literal == second.literal else None,
        element=None if same_shape and first.elements else _join_items(first, second),
        elements=tuple(map(_join_two, first.elements, second.elements))  # type: ignore[arg-type]
        if same_shape
        else None,
    )


def _join_items(first: Value, second: Value) -> Value | None:
    """What two containers hold, of which an empty one says nothing."""
    held = [v.iterated() for v in (first, second) if v.element is not None or v.elements]
    found = join(held) if held else UNKNOWN
    return found if found.known else None


def _join_devices(first: Device, second: Device) -> Device:
    if first is second:
        return first
    return Device.UNKNOWN if Device.UNKNOWN in (first, second) else Device.EITHER


def _join_graphs(first: Graph, second: Graph) -> Graph:
    """A value that is attached on one path is one that can be attached."""
    if Graph.ATTACHED in (first, second):
        return Graph.ATTACHED
    return first if first is second else Graph.UNKNOWN
