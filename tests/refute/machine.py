"""Runs a program in a fresh namespace, with everything global as it was found before and after."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import Any, TypeAlias

import numpy as np
import torch
import torch._dynamo  # which seeding imports at its first call, and which must not happen inside a program
from torch.utils import _device

from tests.refute.observe import Observer, Seen
from tests.torch.stand_in import StandIn

Played: TypeAlias = "Callable[[str], AbstractContextManager[object]]"
"""What is played besides the devices while a program runs, given its text."""


def run(program: str, place: StandIn, played: Played = nullcontext) -> Seen:
    """Return what a program shows when it has run as a script, or the error that ended it."""
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins, "seen": []}
    printed, seen = io.StringIO(), Seen()
    with as_found(), redirect_stdout(printed), redirect_stderr(io.StringIO()):
        try:
            with place.play() as player, played(program):
                exec(compile(program, "<program>", "exec", dont_inherit=True), names)
            seen.recorded = player.saw_gradients
        except (Exception, SystemExit) as error:
            seen.error = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        seen.generators = pickle.dumps((torch.get_rng_state().numpy(), np.random.get_state(), random.getstate()))
        seen.switches = {**switches(), **{f"environment {name}": value for name, value in os.environ.items()}}
    seen.output = printed.getvalue()
    if not seen.error:
        observer = Observer(values=place.has_values)
        observer.names(names)
        seen.facts, seen.sharing = observer.facts, observer.sharing()
    return seen


@contextmanager
def as_found() -> Iterator[None]:
    """Seed the generators, and put every switch and environment variable back afterwards."""
    _put_back()  # what ran before in this process may have left another state
    environment, before = dict(os.environ), switches()
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _put_back()
        if os.environ != environment:
            os.environ.clear()
            os.environ.update(environment)
        if switches() != before:
            raise RuntimeError("a program left a switch behind that is not put back")


def _put_back() -> None:
    """Give every switch that programs turn the value that torch starts with."""
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    if torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.allow_tf32 = True


def switches() -> dict[str, object]:
    """Return the global state that a fix must leave alone; the environment aside."""
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(_device.CURRENT_DEVICE),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32),
        "precision of products": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
    }
