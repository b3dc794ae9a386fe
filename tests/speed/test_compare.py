"""The comparison counts what it runs, in pairs, and says when it cannot run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.speed.compare import NOT_RUN, Cost, Tool, alternated, main, table, timed


def tool(name: str, program: str) -> Tool:
    """Return a tool that runs a Python program."""
    return Tool(name, (sys.executable, "-c", program), {"ODD": "1"})


def test_run_is_timed_with_its_output(tmp_path: Path) -> None:
    cost = timed(tool("one", "import os; print(os.environ['ODD']); print(sum(range(3_000_000)))"), tmp_path)
    assert cost.lines == 2
    assert cost.wall > 0
    assert cost.cpu > 0


def test_failing_tool_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken ends with 3"):
        timed(tool("broken", "raise SystemExit(3)"), tmp_path)


def test_findings_are_no_failure(tmp_path: Path) -> None:
    assert timed(tool("finds", "raise SystemExit(1)"), tmp_path).lines == 0


def test_tools_take_turns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tools = [tool(name, f"print('{name}', file=open({str(log)!r}, 'a'))") for name in "ab"]
    costs = alternated(tools, tmp_path, 2)
    assert log.read_text(encoding="utf-8").split() == ["a", "b", "a", "b"]
    assert [len(own) for own in costs.values()] == [2, 2]


def test_ratios_are_those_of_one_round() -> None:
    costs = {"slow": [Cost(10, 8, 5), Cost(40, 8, 5)], "fast": [Cost(1, 1, 7), Cost(2, 2, 7)]}
    _, slow, fast = table(costs).splitlines()
    assert slow.split() == ["slow", "25.00", "8.00", "5", "1.0", "(1.0-1.0)", "1.0", "(1.0-1.0)"]
    assert fast.split() == ["fast", "1.50", "1.50", "7", "15.0", "(10.0-20.0)", "6.0", "(4.0-8.0)"]


def test_unknown_package_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == NOT_RUN
    assert "not pinned: nonsense" in capsys.readouterr().err
