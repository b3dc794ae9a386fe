"""What a program's steps returned, as plain data that crosses from process to process."""

from __future__ import annotations

import ctypes
import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchlint.harness.devices import import_torch


@dataclass(frozen=True, slots=True)
class Leaf:
    """One number, string or tensor of a step's outputs."""

    path: str
    """Where it stands in the outputs: ``loss``, ``scores[0]``."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    """Of the raw bytes: equal digests are bitwise equal values."""

    values: array[float]
    """The values in float64; empty for what is not a number."""


def flatten(outputs: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the leaves of nested mappings and sequences of tensors and numbers."""
    torch = import_torch()
    if isinstance(outputs, torch.Tensor):
        yield _tensor_leaf(torch, outputs, path)
    elif isinstance(outputs, Mapping):
        for key in outputs:
            yield from flatten(outputs[key], f"{path}.{key}" if path else str(key))
    elif isinstance(outputs, Sequence) and not isinstance(outputs, str):
        for index, item in enumerate(outputs):
            yield from flatten(item, f"{path}[{index}]")
    elif isinstance(outputs, (bool, int, float)):
        text = repr(outputs).encode()
        yield Leaf(path, type(outputs).__name__, (), hashlib.sha256(text).hexdigest(), array("d", [float(outputs)]))
    else:
        text = repr(outputs).encode()
        yield Leaf(path, type(outputs).__name__, (), hashlib.sha256(text).hexdigest(), array("d"))


def _tensor_leaf(torch: Any, tensor: Any, path: str) -> Leaf:
    plain = tensor.detach().cpu().contiguous()
    real = torch.view_as_real(plain) if plain.is_complex() else plain
    wide = real.to(torch.float64).contiguous()
    return Leaf(
        path=path,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        digest=hashlib.sha256(_raw(plain)).hexdigest(),
        values=array("d", _raw(wide)),
    )


def _raw(tensor: Any) -> bytes:
    """Return a contiguous CPU tensor's bytes, without NumPy, which a machine with torch may lack."""
    size = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), size) if size else b""
