"""What a run returns, taken apart into plain facts, and how two runs differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.torch.equivalence import May

_PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.device, torch.dtype, torch.Size)


@dataclass(frozen=True)
class TensorFacts:
    """A tensor without its place in memory."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    stride: tuple[int, ...]
    leaf: tuple[bool, bool]
    value: torch.Tensor | None
    storage: int


@dataclass
class Outcome:
    """Everything that a run shows: facts by path, and where the generator stands."""

    facts: dict[str, Any] = field(default_factory=dict)
    generator: torch.Tensor | None = None


def observe(result: object, *, values: bool) -> Outcome:
    """Return the facts about a result."""
    facts = {}
    for path, leaf in leaves(result, "out"):
        facts[path] = tensor_facts(leaf, values) if isinstance(leaf, torch.Tensor) else leaf
    return Outcome(facts, torch.get_rng_state() if values else None)


def leaves(value: Any, path: str) -> Iterator[tuple[str, object]]:
    """Yield the tensors and plain values inside a result, each with its path."""
    if isinstance(value, torch.Tensor):
        yield path, value
        if value.is_leaf and value.requires_grad:
            yield from leaves(value.grad, f"{path}.grad")
    elif isinstance(value, torch.nn.Module):
        yield from leaves(dict(value.named_parameters()), f"{path}.parameters")
        yield from leaves(dict(value.named_buffers()), f"{path}.buffers")
    elif isinstance(value, torch.optim.Optimizer):
        yield from leaves(list(value.state.values()), f"{path}.state")
    elif isinstance(value, Mapping):
        for key in value:
            yield from leaves(value[key], f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    elif isinstance(value, _PLAIN):
        yield path, value
    else:
        raise TypeError(f"{path} is a {type(value).__name__}: return tensors, modules, optimizers and plain values")


def tensor_facts(tensor: torch.Tensor, values: bool) -> TensorFacts:
    """Return what can be said about a tensor."""
    return TensorFacts(
        tuple(tensor.shape),
        tensor.dtype,
        tensor.device,
        tensor.stride(),
        (tensor.is_leaf, tensor.requires_grad),
        tensor.detach().cpu().clone() if values else None,
        tensor.untyped_storage()._cdata,
    )


def differences(before: Outcome, after: Outcome, tolerance: float) -> list[tuple[May, str]]:
    """Return all differences, each with what it is a difference of."""
    one_sided = sorted(before.facts.keys() ^ after.facts.keys())
    found = [(May.KEYS, f"only one side has {path}") for path in one_sided]
    for path in before.facts.keys() & after.facts.keys():
        found += compare(path, before.facts[path], after.facts[path], tolerance)
    if sharing(before, after) != sharing(after, before):
        found.append((May.STORAGE, "other tensors share storage"))
    if before.generator is not None and not torch.equal(before.generator, after.generator):
        found.append((May.RNG, "the generator has drawn other numbers"))
    return found


def compare(path: str, old: Any, new: Any, tolerance: float) -> Iterator[tuple[May, str]]:
    """Yield the differences of two facts with the same path."""
    if isinstance(old, TensorFacts) and isinstance(new, TensorFacts):
        if (old.shape, old.dtype, old.device, old.stride) != (new.shape, new.dtype, new.device, new.stride):
            yield May.TYPE, f"{path} is {describe(old)}, then {describe(new)}"
        elif old.value is not None and not equal(old.value, new.value, tolerance):
            yield May.VALUES, f"{path} has other values"
        if old.leaf != new.leaf:
            yield May.LEAF, f"{path} has (is_leaf, requires_grad) {old.leaf}, then {new.leaf}"
    elif type(old) is not type(new):
        yield (
            (May.NONE_GRADS if path.endswith(".grad") and new is None else May.TYPE),
            f"{path} is {old!r}, then {new!r}",
        )
    elif old != new and not (isinstance(old, float) and abs(old - new) <= tolerance * max(1.0, abs(old))):
        yield May.VALUES, f"{path} is {old!r}, then {new!r}"


def describe(facts: TensorFacts) -> str:
    """Return the properties that must agree, for a message."""
    return f"{facts.dtype} {facts.shape} stride {facts.stride} on {facts.device}"


def equal(old: torch.Tensor, new: torch.Tensor | None, tolerance: float) -> bool:
    """Return whether the values are equal, bit for bit where the tolerance is 0."""
    assert new is not None
    if tolerance:
        return torch.allclose(old, new, rtol=tolerance, atol=tolerance, equal_nan=True)
    return torch.equal(as_bits(old), as_bits(new))


def as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of the values."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def sharing(outcome: Outcome, other: Outcome) -> set[frozenset[str]]:
    """Return which of the tensors that both sides have lie in the same storage."""
    groups: dict[int, set[str]] = {}
    for path, facts in outcome.facts.items():
        if isinstance(facts, TensorFacts) and isinstance(other.facts.get(path), TensorFacts):
            groups.setdefault(facts.storage, set()).add(path)
    return {frozenset(paths) for paths in groups.values() if len(paths) > 1}
