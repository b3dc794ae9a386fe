"""Probability distributions of torch: what their methods and attributes give lives where their parameters live."""

from __future__ import annotations

from torchlint.semantics.evaluate.operators import combined
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import DISTRIBUTION_ATTRIBUTES, DISTRIBUTION_METHODS
from torchlint.semantics.values import UNKNOWN, Device, Graph, Kind, Value, tensor

_PREFIX = "torch.distributions."
_DETACHED = ("sample", "sample_n", "enumerate_support")


def made(name: str, arguments: list[Value]) -> Value:
    """Return a distribution with these parameters, each of them a tensor, a number (of the CPU) or a distribution."""
    parts = [v.element if is_distribution(v) and v.element is not None else v for v in arguments]
    found = combined(parts)
    of_numbers = bool(parts) and all(part.kind is Kind.NUMBER for part in parts)
    device = found.device if found.is_tensor else Device.CPU if of_numbers else Device.UNKNOWN
    graph = Graph.ATTACHED if found.graph is Graph.ATTACHED else Graph.UNKNOWN  # what is asked about may carry one
    return Value(Kind.INSTANCE, name=name, element=tensor(Evidence.INFERRED, device, graph))


def is_distribution(value: Value) -> bool:
    """Return whether a value is a distribution of torch."""
    return value.kind is Kind.INSTANCE and (value.name or "").startswith(_PREFIX)


def method(owner: Value, name: str) -> Value:
    """Return what a method of a distribution gives; samples hold no graph."""
    if owner.element is None or name not in DISTRIBUTION_METHODS:
        return UNKNOWN
    return owner.element._replace(graph=Graph.DETACHED) if name in _DETACHED else owner.element


def attribute(owner: Value, name: str) -> Value:
    """Return a parameter or a moment of a distribution."""
    return owner.element if owner.element is not None and name in DISTRIBUTION_ATTRIBUTES else UNKNOWN
