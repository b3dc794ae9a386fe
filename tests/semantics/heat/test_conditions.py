"""Whether a function measures time."""

from __future__ import annotations

import pytest

from tests.semantics.support import calls, model_of

PROGRAM = """
import time
import timeit
from datetime import datetime
import torch

def {name}(timer, x):
{body}
    here.at()
"""


def timed(body: str, name: str = "step") -> bool:
    """Return whether the call of ``here.at`` stands where time is measured."""
    model = model_of(PROGRAM.format(name=name, body="\n".join(f"    {line}" for line in body.splitlines())))
    return model.conditions.is_timed(calls(model, "at")[0])


@pytest.mark.parametrize(
    "body",
    [
        "start = time.time()",
        "start = time.perf_counter()",
        "start = timeit.default_timer()",
        "start = datetime.now()",
        "start = torch.cuda.Event(enable_timing=True)",
        "x.record()",
        "timer.start()",
        "timer.tic()",
        "if x:\n    start = time.time()",
        "with torch.profiler.profile():\n    pass",
        "with Timer():\n    pass",
        "with x.Stopwatch('a'):\n    pass",
    ],
)
def test_measures(body: str) -> None:
    assert timed(body)


@pytest.mark.parametrize("body", ["x.start()", "x.step()", "times = x.times()", "runtime = x()", "x.update()"])
def test_does_not_measure(body: str) -> None:
    assert not timed(body)


@pytest.mark.parametrize("name", ["benchmark", "run_benchmark", "measure_latency", "profile_model", "warmup"])
def test_by_its_name(name: str) -> None:
    assert timed("pass", name)
