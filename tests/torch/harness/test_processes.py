"""Worker processes: what they answer, and how they end."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from torchlint.harness.errors import ProgramError
from torchlint.harness.processes import Launcher, Program, survey

TRAINING = """
from types import SimpleNamespace

import torch
from torch import nn


def setup(device):
    model = nn.Linear(4, 2).to(device)
    return SimpleNamespace(model=model, seen=[])


def step(state):
    loss = state.model(torch.randn(3, 4)).sum()
    loss.item()
    kept = torch.zeros(1000)
    return {"loss": loss, "steps": [1, "two", True], "kept": kept.shape[0]}
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Launcher:
    found, device, environment = survey(tmp_path_factory.mktemp("survey"), "cpu", 1)
    assert (device, environment.kind, environment.threads) == ("cpu", "cpu", 1)
    return found


def test_outputs_come_back_as_leaves_and_repeat_with_the_seed(tmp_path: Path, launcher: Launcher) -> None:
    found = []
    for name in ("a", "b"):
        with Program(tmp_path / name, launcher, TRAINING, "cpu", 60) as program:
            found.append(program.ready().outputs(2))
    assert [leaf.path for leaf in found[0][0]] == ["loss", "steps[0]", "steps[1]", "steps[2]", "kept"]
    assert found[0] == found[1]
    assert found[0][0][0].digest != found[0][1][0].digest


def test_counters(tmp_path: Path, launcher: Launcher) -> None:
    with Program(tmp_path, launcher, TRAINING, "cpu", 60) as program:
        program.ready().tell("count")
        counters = program.counters()
    assert counters.parameters == 10
    assert counters.value_reads == 1
    assert counters.peak_bytes is not None
    assert 4000 <= counters.peak_bytes <= 8000
    assert counters.kernels is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def setup(device):\n    raise ValueError('no data')\n", "ValueError: no data"),
        ("def setup(device:\n", "SyntaxError"),
        ("import os\ndef setup(device):\n    os._exit(7)\n", r"the process died \(exit code 7\)"),
        ("import time\ndef setup(device):\n    time.sleep(60)\n", "no answer within 1 s"),
    ],
)
def test_failing_programs_are_results(tmp_path: Path, launcher: Launcher, text: str, problem: str) -> None:
    with (
        Program(tmp_path, launcher, text, "cpu", 1 if "sleep" in text else 60) as program,
        pytest.raises(ProgramError, match=problem),
    ):
        program.ready()


def test_two_programs_are_set_up_at_the_same_time(tmp_path: Path, launcher: Launcher) -> None:
    """Each waits in its ``setup`` until the other has come as far."""
    text = TRAINING.replace(
        "def setup(device):\n",
        "def setup(device):\n    import pathlib, time\n    here = pathlib.Path(__file__).parent\n"
        "    (here / 'arrived').touch()\n"
        "    while not all((here.parent / name / 'arrived').exists() for name in ('a', 'b')):\n"
        "        time.sleep(0.01)\n",
    )
    with (
        Program(tmp_path / "a", launcher, text, "cpu", 60) as one,
        Program(tmp_path / "b", launcher, text, "cpu", 60) as two,
    ):
        assert one.ready().outputs(1) == two.ready().outputs(1)


def test_what_a_program_has_started_ends_with_it(tmp_path: Path, launcher: Launcher) -> None:
    text = TRAINING.replace(
        "def setup(device):\n",
        "def setup(device):\n    import subprocess\n    other = subprocess.Popen(['sleep', '300'])\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(other.pid))\n",
    )
    with Program(tmp_path / "program", launcher, text, "cpu", 60) as program:
        program.ready()
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
    for _ in range(50):
        if not _runs(pid):
            break
        time.sleep(0.1)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_program_starts_its_own_processes_as_any_program_does(tmp_path: Path, launcher: Launcher) -> None:
    text = "import multiprocessing\ndef setup(d): ...\ndef step(state): return multiprocessing.get_start_method()\n"
    wanted = multiprocessing.get_all_start_methods()[0]
    with Program(tmp_path, launcher, text, "cpu", 60) as program:
        [[leaf]] = program.ready().outputs(1)
    assert leaf.digest == hashlib.sha256(repr(wanted).encode()).hexdigest()
