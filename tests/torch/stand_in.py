"""Devices that play the accelerator on a machine without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class StandIn:
    """A place to run programs that name CUDA devices."""

    name: str
    device: str
    has_values: bool
    fake: bool = False

    @contextmanager
    def play(self) -> Iterator[Player]:
        """Send what names a CUDA device to this one for the block."""
        with ExitStack() as stack:
            if self.fake:
                # Else fake tensors put a real one on their device, and a machine with one GPU has no cuda:1.
                stack.enter_context(mock.patch("torch.cuda.is_available", return_value=False))
                stack.enter_context(FakeTensorMode())
            yield stack.enter_context(Player(self.device))


VALUES = StandIn("values", "cpu", has_values=True)
META = StandIn("meta", "meta", has_values=False)
FAKE_CUDA = StandIn("fake-cuda", "cuda", has_values=False, fake=True)
REAL_CUDA = StandIn("cuda", "cuda", has_values=True)


class Player(TorchFunctionMode):
    """Calls of torch functions with each CUDA device replaced by one of the stand-in."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.saw_gradients = False
        """Whether a result asked for gradients: a graph was recorded."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        keywords = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            index = args[1] if len(args) > 1 else keywords.pop("device", None)
            func, args = torch.Tensor.to, (args[0], self._place("cuda" if index is None else index), *args[2:])
        elif func is torch.Tensor.to:
            args = (args[0], *(self._place(arg) for arg in args[1:2]), *args[2:])
        elif func is not torch.device:
            args = tuple(self._place(arg) if isinstance(arg, torch.device) else arg for arg in args)
        if "device" in keywords and func is not torch.device:
            keywords["device"] = self._place(keywords["device"])
        result = func(*args, **keywords)
        self.saw_gradients |= isinstance(result, torch.Tensor) and result.requires_grad
        return result

    def _place(self, wanted: Any) -> Any:
        """Return the stand-in for a CUDA device; anything else is returned as it is."""
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            wanted = torch.device("cuda", wanted)
        if isinstance(wanted, str) and wanted.partition(":")[0] == "cuda":
            wanted = torch.device(wanted)
        if not isinstance(wanted, torch.device) or wanted.type != "cuda":
            return wanted
        return torch.device(self.device, wanted.index or 0)
