"""Devices behind one face: synchronise, time, peak memory; CUDA and ROCm, CPU, and what torch.accelerator knows.

Every function imports torch when it is called, never before: the parent process stays free of it.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torchlint.harness.errors import HarnessError

OLDEST_TORCH = (2, 4)
DRIVE = "/content/drive"
"""Where Colab mounts a Google Drive."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a measurement was taken; no host name, nothing personal."""

    device: str
    """The model of the device: "NVIDIA H100 80GB HBM3", "AMD EPYC"."""

    kind: str
    """torch's device type: cpu, cuda, mps, xpu."""

    devices: int
    """How many devices of this kind there are."""

    driver: str
    torch: str
    python: str
    cpu: str
    threads: int
    system: str
    date: str


def import_torch() -> Any:
    """Return the torch module.

    Raises:
        HarnessError: torch is missing or too old.
    """
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise HarnessError(f"measuring needs torch in this Python environment ({error}); install it first") from error
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        raise HarnessError(f"measuring needs torch 2.4 or newer, this is {torch.__version__}")
    return torch


def resolve(name: str) -> str:
    """Return the name of a device that exists: ``auto`` is the first accelerator, or else the CPU.

    Raises:
        HarnessError: there is no such device.
    """
    torch = import_torch()
    if name == "auto":
        return _accelerator(torch) or "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, ImportError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise HarnessError(f"there is no device {name!r} here ({reason}); --device cpu always works") from error
    return str(device)


def _accelerator(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    if hasattr(torch, "accelerator") and torch.accelerator.is_available():
        return str(torch.accelerator.current_accelerator().type)
    if torch.backends.mps.is_available():
        return "mps"
    return "xpu" if hasattr(torch, "xpu") and torch.xpu.is_available() else ""


def describe(device: str) -> Environment:
    """Return the environment around a device that exists."""
    torch = import_torch()
    kind = torch.device(device).type
    cpu = cpu_model()
    name, count, driver = cpu, 1, ""
    if kind == "cuda":
        name, count = torch.cuda.get_device_name(device), torch.cuda.device_count()
        driver = _cuda_driver(torch)
    elif kind == "xpu":
        name, count = torch.xpu.get_device_name(device), torch.xpu.device_count()
    elif kind == "mps":
        name, driver = f"{cpu} GPU", f"macOS {platform.mac_ver()[0]}"
    return Environment(
        device=name,
        kind=kind,
        devices=count,
        driver=driver,
        torch=torch.__version__,
        python=platform.python_version(),
        cpu=cpu,
        threads=torch.get_num_threads(),
        system=f"{platform.system()} {platform.machine()}",
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    )


def _cuda_driver(torch: Any) -> str:
    runtime = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    version = Path("/sys/module/nvidia/version")
    return f"{version.read_text().strip()}, {runtime}" if version.is_file() else runtime


def cpu_model() -> str:
    """Return the model name of the CPU."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def synchronizer(device: str) -> Callable[[], None]:
    """Return a function that waits until the device has done all that it was asked."""
    torch = import_torch()
    kind = torch.device(device).type
    if kind == "cpu":
        return lambda: None
    if kind == "cuda":
        return lambda: torch.cuda.synchronize(device)
    module = getattr(torch, kind, None)
    if module is not None and hasattr(module, "synchronize"):
        return cast("Callable[[], None]", module.synchronize)
    return cast("Callable[[], None]", torch.accelerator.synchronize)


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time of a step within a block of steps, in seconds."""

    host: float
    """By the host's monotonic clock."""

    device: float | None
    """By CUDA events; None where there are none."""


def stopwatch(device: str) -> Callable[[Callable[[], object], int], Elapsed]:
    """Return a function that runs a step several times and returns how long one takes.

    On the CPU each step is timed by itself and the median counts, so that a step in which another process had the core
    does not. An accelerator works behind the host's back: there the block is timed from one synchronised moment to
    another, and the mean counts.
    """
    torch = import_torch()
    kind = torch.device(device).type
    synchronize = synchronizer(device)

    def each(step: Callable[[], object], count: int) -> Elapsed:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        return Elapsed(statistics.median(times), None)

    def block(step: Callable[[], object], count: int) -> Elapsed:
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        synchronize()
        return Elapsed((time.perf_counter() - start) / count, None)

    def with_events(step: Callable[[], object], count: int) -> Elapsed:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        synchronize()
        start = time.perf_counter()
        first.record()
        for _ in range(count):
            step()
        last.record()
        synchronize()
        host = time.perf_counter() - start
        return Elapsed(host / count, first.elapsed_time(last) / 1000 / count)

    return {"cpu": each, "cuda": with_events}.get(kind, block)


def missing(needs: str, device: str) -> str:
    """Return why a program cannot show its effect on this device, or nothing if it can."""
    torch = import_torch()
    kind = torch.device(device).type
    if needs == "accelerator" and kind == "cpu":
        return "it takes an accelerator, and this is the CPU"
    if needs == "cuda" and kind != "cuda":
        return f"it is about CUDA, and this is {kind}"
    if needs == "pinned-memory" and kind != "cuda":
        return f"only CUDA and ROCm devices copy from pinned memory, and this is {kind}"
    if needs == "cudnn" and not (kind == "cuda" and torch.backends.cudnn.is_available()):
        return f"cuDNN runs on CUDA devices only, and this is {kind}"
    if needs == "two-cuda-devices" and not (kind == "cuda" and torch.cuda.device_count() > 1):
        return f"it takes two CUDA devices, and here {_count(torch)}"
    if needs == "two-cores" and (os.cpu_count() or 1) < 2:
        return "worker processes take a second core, and here is one"
    if needs == "numpy" and importlib.util.find_spec("numpy") is None:
        return "it takes NumPy, which is not installed"
    if needs == "google-drive" and not os.path.ismount(DRIVE):
        return f"it takes a Google Drive mounted at {DRIVE}, and here is none"
    return ""


def _count(torch: Any) -> str:
    count = torch.cuda.device_count()
    return {0: "is none", 1: "is one"}.get(count, f"are {count}, but another device was asked for")
