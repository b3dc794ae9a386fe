"""What a finished program shows to anybody who looks: the facts about all that its names hold."""

from __future__ import annotations

import enum
import os
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch


class Kind(str, enum.Enum):
    """What two runs can differ in; the promise of a safe fix is that they do not."""

    VALUES = "values"
    DTYPE = "dtype"
    SHAPE = "shape"
    STRIDE = "stride"
    DEVICE = "device"
    LEAF = "leaf"
    GRADIENT = "gradient"
    """One has a gradient of zeros where the other has none."""

    SHARING = "sharing"
    NAMES = "names"
    GENERATORS = "generators"
    SWITCHES = "switches"
    OUTPUT = "output"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """A tensor without its place in memory."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    stride: tuple[int, ...]
    leaf: tuple[bool, ...]
    """Whether it is a leaf, requires a gradient, and was made in inference mode."""

    values: bytes | None


@dataclass(frozen=True, slots=True)
class Same:
    """The very object that stands at another path."""

    path: str


_KINDS = {
    "shape": Kind.SHAPE,
    "dtype": Kind.DTYPE,
    "device": Kind.DEVICE,
    "stride": Kind.STRIDE,
    "leaf": Kind.LEAF,
    "values": Kind.VALUES,
}


_NOTHING = ("NoneType", None)


@dataclass(slots=True)
class Seen:
    """All that a run shows."""

    error: str = ""
    recorded: bool = False
    """Whether a graph was recorded, which a torch without CUDA cannot do for tensors that only play CUDA ones."""

    facts: dict[str, Any] = field(default_factory=dict)
    sharing: frozenset[tuple[str, str]] = frozenset()
    """Pairs of paths whose memory overlaps."""

    generators: bytes = b""
    switches: dict[str, object] = field(default_factory=dict)
    output: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.what}"


class Observer:
    """Walks through the names of a program and notes the facts about what they hold."""

    def __init__(self, *, values: bool) -> None:
        self._values = values
        self._paths: dict[int, str] = {}
        self._memory: list[tuple[str, object, int, int]] = []
        self._kept: list[object] = []
        """What was made for looking; an id would be given out again otherwise."""

        self.facts: dict[str, Any] = {}

    def names(self, names: Mapping[str, object]) -> None:
        """Note everything that the names of a program hold."""
        for name in sorted(names):
            if not name.startswith("__"):
                self._note(names[name], name)

    def sharing(self) -> frozenset[tuple[str, str]]:
        """Return the pairs of paths whose memory overlaps."""
        return frozenset(
            (one, other)
            for index, (one, key, start, end) in enumerate(self._memory)
            for other, other_key, other_start, other_end in self._memory[index + 1 :]
            if key == other_key and start < other_end and other_start < end
        )

    def _note(self, value: Any, path: str) -> None:
        if value is None or isinstance(value, (bool, int, str, bytes, enum.Enum, torch.dtype, torch.device)):
            self.facts[path] = (type(value).__name__, value)
        elif isinstance(value, (float, complex)):
            self.facts[path] = (type(value).__name__, repr(value))
        elif isinstance(value, np.generic):
            self.facts[path] = (str(value.dtype), value.tobytes())
        elif id(value) in self._paths:
            self.facts[path] = Same(self._paths[id(value)])
        elif not _is_code(value):
            self._paths[id(value)] = path
            self._kept.append(value)
            self._object(value, path)

    def _object(self, value: Any, path: str) -> None:
        if isinstance(value, torch.Tensor):
            self._tensor(value, path)
        elif isinstance(value, np.ndarray):
            self.facts[path] = TensorFacts(
                value.shape, str(value.dtype), "numpy", value.strides, (value.flags.writeable,), value.tobytes()
            )
            start, end = np.lib.array_utils.byte_bounds(value) if value.size else (0, 0)
            self._memory.append((path, "host", start, end))
        else:
            self.facts[path] = type(value).__name__
            for name, item in _items(value):
                self._note(item, f"{path}{name}")

    def _tensor(self, tensor: torch.Tensor, path: str) -> None:
        strided = tensor.layout == torch.strided
        dense = tensor.detach() if strided else tensor.detach().to_dense()
        self.facts[path] = TensorFacts(
            tuple(tensor.shape),
            f"{type(tensor).__name__} of {tensor.dtype}, {tensor.layout}",
            str(tensor.device),
            tensor.stride() if strided else (),
            (_is_leaf(tensor), tensor.requires_grad, tensor.is_inference()),
            _bits(dense) if self._values and not tensor.is_meta else None,
        )
        if strided and self._values and tensor.device.type == "cpu":
            start = tensor.untyped_storage().data_ptr()
            self._memory.append((path, "host", start, start + tensor.untyped_storage().nbytes()))
        elif strided:
            self._memory.append((path, tensor.untyped_storage()._cdata, 0, 1))
        if _is_leaf(tensor) and tensor.requires_grad:
            self._note(tensor.grad, f"{path}.grad")


def _is_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf; a view that may not be looked at, since its base was changed, is none."""
    try:
        return tensor.is_leaf
    except RuntimeError:
        return False


def _is_code(value: object) -> bool:
    """Whether an object is part of the program and not of its data."""
    return isinstance(value, (type, types.ModuleType, types.CodeType, type(os.environ))) or (
        callable(value) and not isinstance(value, torch.nn.Module)
    )


def _items(value: Any) -> Iterator[tuple[str, object]]:
    """Yield what an object holds."""
    if isinstance(value, torch.nn.Module):
        yield ".training", value.training
        yield ".state", " ".join(value.state_dict())
        yield from ((f".{name}", parameter) for name, parameter in value.named_parameters())
        yield from ((f".{name}", buffer) for name, buffer in value.named_buffers())
    elif isinstance(value, torch.optim.Optimizer):
        yield ".state", list(value.state.values())
        yield ".groups", value.param_groups
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield "{}", sorted(map(repr, value))
    elif type(value).__module__ == "__main__":
        yield from ((f".{name}", item) for name, item in sorted(vars(value).items()))


def _bits(tensor: torch.Tensor) -> bytes:
    """Return the values, bit for bit but for the sign of zeros, which compare as equal."""
    values = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    values.copy_(tensor)  # no view of it: one whose data was made in inference mode has none
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        values += 0.0
    return values.reshape(-1).view(torch.uint8).numpy().tobytes()


def differences(before: Seen, after: Seen) -> list[Difference]:
    """Return all that one run shows and the other does not."""
    if before.error or after.error:
        return [Difference(Kind.ERROR, after.error or "none any more")] if before.error != after.error else []
    found = [Difference(Kind.NAMES, f"only one side has {path}") for path in sorted(before.facts.keys() ^ after.facts)]
    for path in sorted(before.facts.keys() & after.facts):
        found += _compare(path, before.facts[path], after.facts[path])
    for one, other in sorted(before.sharing ^ after.sharing):
        found.append(Difference(Kind.SHARING, f"{one} and {other} overlap on one side only"))
    if before.generators != after.generators:
        found.append(Difference(Kind.GENERATORS, "random generators stand elsewhere"))
    for name in sorted(before.switches.keys() | after.switches):
        old, new = before.switches.get(name), after.switches.get(name)
        if old != new:
            found.append(Difference(Kind.SWITCHES, f"{name} is {old!r}, then {new!r}"))
    if before.output != after.output:
        found.append(Difference(Kind.OUTPUT, f"printed {before.output!r}, then {after.output!r}"))
    return found


def _compare(path: str, old: Any, new: Any) -> Iterator[Difference]:
    if old == new:
        return
    if isinstance(old, TensorFacts) and isinstance(new, TensorFacts):
        for each in fields(TensorFacts):
            one, other = getattr(old, each.name), getattr(new, each.name)
            if one != other:
                words = "differ" if each.name == "values" else f"{one}, then {other}"
                yield Difference(_KINDS[each.name], f"{path}: {words}")
    elif path.endswith(".grad") and _NOTHING in (old, new):
        yield Difference(Kind.GRADIENT, f"{path} is {'gone' if isinstance(old, TensorFacts) else 'there now'}")
    elif isinstance(old, Same) or isinstance(new, Same):
        yield Difference(Kind.SHARING, f"{path} is {old}, then {new}")
    else:
        kind = Kind.VALUES if _type(old) == _type(new) else Kind.DTYPE
        yield Difference(kind, f"{path} is {old!r}, then {new!r}")


def _type(fact: object) -> object:
    return fact[0] if isinstance(fact, Sequence) and not isinstance(fact, str) else fact
