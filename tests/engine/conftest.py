"""A small project, and its cache as a run sees it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from torchlint.engine.cache.identity import run_name
from torchlint.engine.cache.results import ResultCache, check_with
from torchlint.engine.plan import Planned, Task, make_plan
from torchlint.engine.result import FileResult
from torchlint.engine.worker import Worker
from torchlint.registry import rules
from torchlint.source import digest

ROOT = Path(__file__).parent.parent.parent
NAMES = {rule.code: rule.name for rule in rules()}
FOUND = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"
CLEAN = "import torch\n"
COMMAND = (sys.executable, "-m", "torchlint", "check", "--quiet", "--output-format", "json")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, the current folder."""
    monkeypatch.delenv("TORCHLINT_CACHE_DIR", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    for index in range(6):
        (folder / f"found{index}.py").write_text(FOUND + f"x = {index}\n")
        (folder / f"clean{index}.py").write_text(CLEAN + f"x = {index}\n")
    monkeypatch.chdir(folder)
    return folder


def planned() -> Planned:
    """Return what is to be done in the current folder."""
    return make_plan(["."], overrides={}, isolated=False, config=None, cached=True)


def opened(plan: Planned) -> ResultCache:
    """Return the cache as it is on the disk."""
    assert plan.cache is not None
    return ResultCache(plan.cache, run_name({}, isolated=False, config=None), plan.plans, plan.words)


def run() -> tuple[list[FileResult], int]:
    """Check the current folder and return the results, and how many files had to be checked."""
    plan = planned()
    checked: list[Task] = []

    def check(tasks: list[Task]) -> list[FileResult]:
        checked.extend(tasks)
        return [Worker(plan.plans).check(task) for task in tasks]

    return check_with(opened(plan), plan.tasks, check), len(checked)


def shown(found: list[FileResult]) -> list[object]:
    """Return what reports show of the results."""
    return [(each.path, each.status, each.diagnostics, each.suppressed, each.note, each.excerpts) for each in found]


def document(folder: Path, kind: str = "results") -> Path:
    """Return the document of a kind that was written last."""
    return max((folder / ".torchlint_cache").glob(f"{kind}-*.json"), key=os.path.getmtime)


def rewritten(path: Path, content: object) -> None:
    """Put other content into a document, with the right checksum: what a forger can do."""
    body = json.dumps(content).encode()
    name = path.stem.partition("-")[2]
    path.write_bytes(f"torchlint cache {name} {digest(body)}\n".encode() + body)


def content(path: Path) -> dict[str, list[object]]:
    """Return what a document holds."""
    body: dict[str, list[object]] = json.loads(path.read_bytes().partition(b"\n")[2])
    return body
