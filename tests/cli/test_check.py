"""``torchlint check``: findings, options, exit codes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import CLEAN, SAFE, Invoke
from torchlint.cli.options import expanded


def test_no_finding_exits_with_0(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(CLEAN)
    outcome = invoke("check", ".")
    assert outcome.code == 0
    assert outcome.out.startswith("All checks passed.\n")
    assert outcome.err == ""


def test_a_finding_exits_with_1(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check")
    assert outcome.code == 1
    assert outcome.out.startswith("a.py:3:1: TL601 anomaly-detection-left-on\n")
    assert "3 | torch.autograd.set_detect_anomaly(True)\n  | ^^^^^^^^^^^^^^^^" in outcome.out
    assert "Next: torchlint fix ." in outcome.out
    assert "\x1b" not in outcome.out


def test_exit_zero(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("check", "--exit-zero").code == 0


def test_no_torch_is_said(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text("x = 1\n")
    outcome = invoke("check", ".")
    assert outcome.code == 0
    assert "No torch here" in outcome.out


def test_json_is_absolute_and_the_same_on_every_run(project: Path, invoke: Invoke) -> None:
    for name in ("b.py", "a.py"):
        (project / name).write_text(SAFE)
    first = invoke("check", "--output-format", "json", "b.py", "a.py")
    again = invoke("check", "--output-format", "json", "a.py", "b.py", "--jobs", "2")
    assert first.code == 1
    assert first.out == again.out
    assert [Path(entry["filename"]).name for entry in json.loads(first.out)] == ["a.py", "b.py"]
    assert all(Path(entry["filename"]).is_absolute() for entry in json.loads(first.out))


def test_a_file_named_twice_is_checked_once(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert len(json.loads(invoke("check", "--output-format", "json", "a.py", "./a.py", ".").out)) == 1


def test_selecting(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("check", "--select", "TL4").code == 0
    assert invoke("check", "--select", "TL4,anomaly-detection-left-on").code == 1
    assert invoke("check", "--ignore", "TL6").code == 0
    assert invoke("check", "--per-file-ignores", "a.py:TL601").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--select", "TL9999"), "unknown rule 'TL9999'"),
        (("--ignore", "anomaly-detection-left-in"), "did you mean `anomaly-detection-left-on`"),
        (("--per-file-ignores", "a.py"), "PATTERN:CODE"),
        (("--target-torch", "new"), "target-torch"),
        (("--num-workers", "0"), "num-workers"),
        (("--output-format", "yaml"), "yaml"),
        (("--slect", "ALL"), "--select"),
        (("--config", "missing.toml"), "missing.toml"),
    ],
)
def test_wrong_usage_is_one_line_and_2(project: Path, invoke: Invoke, arguments: tuple[str, ...], words: str) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        'ignore = ["TL299"]',
        '[per-file-ignores]\n"a.py" = ["TL299"]',
        'unfixable = ["TL299"]',
        '[severity]\nTL299 = "info"',
    ],
)
def test_an_unknown_rule_in_the_settings_names_the_file(project: Path, invoke: Invoke, text: str) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "torchlint.toml").write_text(f"{text}\n")
    outcome = invoke("check")
    assert (outcome.code, outcome.out) == (2, "")
    assert "torchlint.toml: unknown rule 'TL299'" in outcome.err
    (project / "torchlint.toml").write_text("")
    assert "error: unknown rule 'TL299'" in invoke("check", "--ignore", "TL299").err


def test_an_unknown_setting_is_one_line_and_2(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "torchlint.toml").write_text('igore = ["TL601"]\n')
    outcome = invoke("check")
    assert outcome.code == 2
    assert "ignore" in outcome.err
    assert outcome.err.count("\n") == 1


def test_settings_count_unless_isolated(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "pyproject.toml").write_text('[tool.torchlint]\nignore = ["TL601"]\n')
    assert invoke("check").code == 0
    assert invoke("check", "--isolated").code == 1


def test_statistics(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("check", "--statistics").out == "1  TL601  [*] anomaly-detection-left-on\n"
    counts = json.loads(invoke("check", "--statistics", "--output-format", "json").out)
    assert counts[0]["count"] == 1


def test_quiet_prints_findings_only(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", "--quiet", "--output-format", "concise")
    assert len(outcome.out.splitlines()) == 1


def test_an_output_file(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "json", "--output-file", "out.json")
    assert outcome.code == 1
    assert outcome.out == ""
    assert json.loads((project / "out.json").read_text())[0]["code"] == "TL601"
    outcome = invoke("check", "--output-file", "missing/out.txt")
    assert outcome.code == 2
    assert "missing/out.txt" in outcome.err


def test_show_files_and_settings(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("check", "--show-files").out == f"{project / 'a.py'}\n"
    outcome = invoke("check", "--show-settings", "--target-torch", "2.1")
    assert outcome.code == 0
    assert "2.1" in outcome.out
    assert "num-workers = 4" in outcome.out


def test_profile_rules(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", "--profile-rules")
    assert "TL601 anomaly-detection-left-on" in outcome.err
    assert "of a parse" in outcome.err
    own, whole = re.search(r"TL601 \S+ +(0\.\d+) +\d+\.\d% +(0\.\d+)\n", outcome.err).groups()
    assert float(own) <= float(whole)
    assert re.search(r"all of the model +0\.\d+", outcome.err)
    assert re.search(r"parse of all 1 files +0\.\d+ +100\.0%", outcome.err)


def test_colours(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(SAFE)
    assert "\x1b[" in invoke("check", "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in invoke("check").out
    assert "\x1b[" not in invoke("check", "--color", "never").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in invoke("check").out


def test_tests_are_left_alone_unless_asked_for(project: Path, invoke: Invoke) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "a.py").write_text("import torch\n\nimport torch.nn as nn\nt = torch.zeros(3).cuda()\n")
    assert invoke("check", "--select", "TL201").code == 0
    assert invoke("check", "--select", "TL201", "--lint-tests").code == 1


def test_suppressions_are_counted(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE.replace("(True)", "(True)  # torchlint: ignore[TL601] on purpose"))
    outcome = invoke("check")
    assert outcome.code == 0
    assert "Suppressed by comments: 1 finding." in outcome.out


def test_the_settings_can_choose_the_format(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "torchlint.toml").write_text('output-format = "json"\n')
    assert json.loads(invoke("check").out)[0]["code"] == "TL601"
    assert invoke("check", "--output-format", "concise").out.startswith("a.py:3:1: TL601")


def test_the_hint_names_a_few_paths(project: Path, invoke: Invoke) -> None:
    names = [f"{name}.py" for name in "abcde"]
    for name in names:
        (project / name).write_text(SAFE)
    assert "Next: torchlint fix a.py b.py c.py ...  shows" in invoke("check", *names).out
    assert "Next: torchlint fix a.py b.py c.py  shows" in invoke("check", *names[:3]).out


def test_patterns_are_expanded_where_no_shell_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("b.py", "a.py", "[c].py", "sub/d.py"):
        (tmp_path / name).touch()
    given = ("*.py", "[c].py", "sub", "none*.py", "**/d.py")
    assert expanded(given, by_shell=True) == given
    found = expanded(given, by_shell=False)
    assert found == ("[c].py", "a.py", "b.py", "[c].py", "sub", "none*.py", os.path.join("sub", "d.py"))
