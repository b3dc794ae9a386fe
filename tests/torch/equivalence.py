"""How a fixture states what its fix must not change; see `Case`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch

Inputs = Callable[[torch.device], Sequence[Mapping[str, Any]]]


class May(str, Enum):
    """What an unsafe fix can change."""

    VALUES = "values"
    RNG = "rng"
    TYPE = "type"
    LEAF = "leaf"
    KEYS = "keys"
    STORAGE = "storage"
    NONE_GRADS = "none_grads"


def no_inputs(device: torch.device) -> Sequence[Mapping[str, Any]]:
    """Return the arguments of a single run without arguments."""
    return ({},)


@dataclass(frozen=True)
class Case:
    """A program that the fix rewrites, and what may be different afterwards: nothing, unless it says so.

    The program defines ``run(device, **inputs)`` and returns what is compared. It may name CUDA devices; the runner
    plays them on any machine. A case that lets nothing differ demands that all its fixes are safe, or says what for
    they are not.
    """

    name: str
    source: str
    inputs: Inputs = no_inputs
    may_differ: frozenset[May] | set[May] = field(default_factory=frozenset)
    may_differ_on_gpu: frozenset[May] | set[May] = field(default_factory=frozenset)
    """What else the fix changes where there is a GPU: no stand-in shows it."""

    unsafe_for: str = ""
    """What a fix is unsafe for all the same, which a program by itself does not show: other files, streams, tracers."""

    tolerance: float = 0.0
    """How far values may lie apart, relative and absolute; they must be equal bit for bit by default."""

    target_torch: str | None = None

    removed_in: tuple[int, int] | None = None
    """The torch in which the original stopped to work."""

    reads_values: str = ""
    """Why the program cannot run on tensors without values (it calls ``.item()``, branches on a tensor)."""
