"""What one step of a program makes the machine do: operators, kernels, synchronisations, copies, memory."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.harness.devices import import_torch, synchronizer

_SYNCHRONISING_CALLS = frozenset(
    {
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
        "cudaEventSynchronize",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "hipStreamSynchronize",
        "hipDeviceSynchronize",
        "hipEventSynchronize",
    }
)
_LABEL = "torchlint step"
_LATE = frozenset({"kernel", "gpu_memcpy"})


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts for one step; None is what this device does not tell."""

    parameters: int
    peak_bytes: int | None
    """CUDA: all that is allocated at the peak. CPU: what the step allocates above what was there before it."""

    operators: int | None
    value_reads: int | None
    """How often Python read a tensor's value; on an accelerator each read waits for the device."""

    kernels: int | None
    synchronisations: int | None
    host_to_device_bytes: int | None
    synchronising_lines: tuple[int, ...] = ()
    """Lines of the program at which CUDA's synchronisation debug mode warned."""


def count(step: Callable[[], Any], state: Any, device: str, program: str) -> Counters:
    """Return the counters of one step, which is run three times: for memory, for warnings, and under the profiler.

    Memory comes first, without the profiler, since what the profiler holds on to would count.
    """
    torch = import_torch()
    kind = torch.device(device).type
    peak = _cuda_peak(torch, step, device) if kind == "cuda" else None
    lines = _synchronising_lines(torch, step, program) if kind == "cuda" else ()
    events = _profiled(torch, step, kind, device)
    on_device = kind == "cuda"
    if peak is None and kind == "cpu":
        peak = max((event["args"].get("Total Allocated", 0) for event in _named(events, "[memory]")), default=0)
    copies = [event for event in events if event.get("cat") == "gpu_memcpy" and "HtoD" in event["name"]]
    return Counters(
        parameters=parameter_count(torch, state),
        peak_bytes=peak,
        operators=sum(event.get("cat") == "cpu_op" for event in events),
        value_reads=len(_named(events, "aten::_local_scalar_dense")),
        kernels=sum(event.get("cat") == "kernel" for event in events) if on_device else None,
        synchronisations=sum(event["name"] in _SYNCHRONISING_CALLS for event in events) if on_device else None,
        host_to_device_bytes=sum(event["args"].get("bytes", 0) for event in copies) if on_device else None,
        synchronising_lines=lines,
    )


def uncounted(state: Any) -> Counters:
    """Return what can be told of a program without running a profiler over it."""
    return Counters(parameter_count(import_torch(), state), None, None, None, None, None, None)


def parameter_count(torch: Any, state: Any) -> int:
    """Return how many parameters the modules hold that the state names."""
    values = (
        state.values() if isinstance(state, Mapping) else vars(state).values() if hasattr(state, "__dict__") else ()
    )
    modules = [value for value in values if isinstance(value, torch.nn.Module)]
    return sum({p: p.numel() for module in modules for p in module.parameters()}.values())


def _cuda_peak(torch: Any, step: Callable[[], Any], device: str) -> int:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    step()
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device))


def _synchronising_lines(torch: Any, step: Callable[[], Any], program: str) -> tuple[int, ...]:
    """Return the program's own lines that CUDA's debug mode warns about; it warns of most synchronisations, not all."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return tuple(sorted({warning.lineno for warning in caught if warning.filename == program}))


def _profiled(torch: Any, step: Callable[[], Any], kind: str, device: str) -> list[dict[str, Any]]:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if kind in ("cuda", "xpu"):
        activities.append(getattr(torch.profiler.ProfilerActivity, kind.upper()))
    synchronize = synchronizer(device)
    synchronize()
    with torch.profiler.profile(activities=activities, profile_memory=kind == "cpu") as profile:
        with torch.profiler.record_function(_LABEL):
            step()
        synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events: list[dict[str, Any]] = json.loads(trace.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    events = [event for event in events if "name" in event and event.get("ph") in ("X", "i")]
    label = next(event for event in events if event["name"] == _LABEL and event.get("cat") == "user_annotation")
    end = label["ts"] + label["dur"]
    # Kernels may run after the step has returned; the synchronisation that waits for them is not the program's.
    return [event for event in events if event.get("cat") in _LATE or label["ts"] <= event["ts"] <= end]


def _named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]
