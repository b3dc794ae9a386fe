"""The comparison counts what it runs, in pairs, and says when it cannot run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.speed.compare import NOT_RUN, main, table
from tests.speed.growth import Row, growth, program, tree, with_counts, with_sizes
from tests.speed.tools import Cost, Tool, alternated, timed, tools
from torchlint.api import check_source


def tool(name: str, program: str, *, warm: bool = False) -> Tool:
    """Return a tool that runs a Python program."""
    return Tool(name, (sys.executable, "-c", program), {"ODD": "1"}, warm)


def test_run_is_timed_with_its_output(tmp_path: Path) -> None:
    cost = timed(tool("one", "import os; print(os.environ['ODD']); print(sum(range(3_000_000)))"), tmp_path)
    assert cost.lines == 2
    assert cost.wall > 0
    assert cost.cpu > 0


def test_memory_is_that_of_the_run_and_its_children(tmp_path: Path) -> None:
    small, large = "pass", "b = b'x' * 800_000_000"
    assert timed(tool("small", small), tmp_path).peak < 700  # that of the tests themselves, from which it is started
    assert 800 < timed(tool("large", large), tmp_path).peak < 900
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {large!r}])"
    assert 800 < timed(tool("child", child), tmp_path).peak < 900


def test_failing_tool_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken ends with 3: it fails"):
        timed(tool("broken", "import sys; print('it fails', file=sys.stderr); sys.exit(3)"), tmp_path)


def test_findings_are_no_failure(tmp_path: Path) -> None:
    assert timed(tool("finds", "raise SystemExit(1)"), tmp_path).lines == 0


def test_tools_take_turns_and_warm_ones_have_run_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    chosen = [tool(name, f"print('{name}', file=open({str(log)!r}, 'a'))", warm=name == "b") for name in "ab"]
    costs = alternated(chosen, tmp_path, 2)
    assert log.read_text(encoding="utf-8").split() == ["b", "a", "b", "a", "b"]
    assert [len(own) for own in costs.values()] == [2, 2]


def test_every_tool_is_cold_unless_it_says_that_it_is_warm(tmp_path: Path) -> None:
    known = tools(tmp_path, tmp_path)
    assert known[0].name.startswith("torchfix")
    for each in known:
        caches = "torchlint" in each.name or "ruff" in each.name
        assert each.warm == (caches and "--no-cache" not in each.command)


def test_ratios_are_those_of_one_round() -> None:
    costs = {"slow": [Cost(10, 8, 5, 90), Cost(40, 8, 5, 110)], "fast": [Cost(1, 1, 7), Cost(2, 2, 7)]}
    _, slow, fast = table(costs, 50, 3.0).splitlines()
    assert slow.split() == ["slow", "25.00", "8.00", "100", "2", "0.12", "5", "1.0", "(1.0-1.0)", "1.0", "(1.0-1.0)"]
    assert fast.split() == ["fast", "1.50", "1.50", "0", "33", "2.00", "7", "15.0", "(10.0-20.0)", "6.0", "(4.0-8.0)"]


def test_growth_is_measured_by_what_was_added() -> None:
    rows = [Row("one", 10, [Cost(1, 2, 1)]), Row("two", 100, [Cost(1, 20, 1)]), Row("three", 200, [Cost(1, 80, 1)])]
    _, one, two, three = growth(rows)
    assert [line.split()[-1] for line in (one, two, three)] == ["1", "1.00", "2.00"]


def test_grown_programs_have_the_size_and_the_findings(tmp_path: Path) -> None:
    text = program(300)
    assert 290 <= len(text.splitlines()) <= 303
    assert len(check_source(text)) == text.count("def ")
    assert len(list(tree(tmp_path / "tree", 205).rglob("*.py"))) == 205
    counting = tool("count", "import pathlib, sys; print(len(list(pathlib.Path(sys.argv[1]).rglob('*.py'))) * 'x\\n')")
    assert [row.costs[0].lines for row in with_counts(counting, tmp_path / "files", 1, (3, 7))] == [4, 8]
    reading = tool("read", "import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text(), end='')")
    assert [row.costs[0].lines for row in with_sizes(reading, tmp_path / "sizes", 1, (9, 15))] == [9, 15]


def test_unknown_package_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == NOT_RUN
    assert "not pinned: nonsense" in capsys.readouterr().err
