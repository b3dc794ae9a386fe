"""Says which torch was used, and what could not be run with it."""

from __future__ import annotations

from typing import Any

import torch

from tests.refute.run import unsearchable


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Add what was not run to the end of the output."""
    terminalreporter.section(f"torch {torch.__version__}")
    if not torch.cuda.is_available():
        terminalreporter.write_line("not run: anything on a GPU (there is none); CPU, meta and fake tensors stood in")
    for code, package in unsearchable().items():
        terminalreporter.write_line(f"not run: the search of {code}, which needs {package}: it is not installed")
