"""A plugin for pytest that makes each test of a foreign suite repeatable: ``pytest -p steady``.

Random numbers begin anew with each test, whatever ran before it; the operators that torchvision lacks beside a torch
for the CPU are declared, so that it can be imported; and which lines of some files ran is written down.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

_FOLDER = Path(os.environ["STEADY_FOLDER"])
_TRACED = json.loads((_FOLDER / "traced.json").read_text(encoding="utf-8"))
_COVERAGE = importlib.import_module("coverage").Coverage(data_file=None, config_file=False, include=_TRACED)
_LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
_OPERATORS = ("nms", "qnms")

if _TRACED:
    _COVERAGE.start()


def pytest_configure() -> None:
    """Import torchvision if it is here."""
    with suppress(ImportError):
        try:
            importlib.import_module("torchvision")
        except RuntimeError:
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
            for operator in _OPERATORS:
                _LIBRARY.define(f"{operator}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
            importlib.import_module("torchvision")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin the random numbers of a test."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def pytest_unconfigure() -> None:
    """Write down which lines ran."""
    if _TRACED:
        _COVERAGE.stop()
    data = _COVERAGE.get_data()
    lines = {path: data.lines(path) or [] for path in data.measured_files()}
    (_FOLDER / "lines.json").write_text(json.dumps(lines), encoding="utf-8")
