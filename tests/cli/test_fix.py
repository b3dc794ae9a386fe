"""``torchlint fix``: the diff, applying it, the account of what was done."""

from __future__ import annotations

import io
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import CLEAN, FIXED, SAFE, Invoke

UNSAFE = "import torch\n\nloader = torch.utils.data.DataLoader(dataset)\n"


def test_the_diff_is_shown_and_nothing_is_written(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("fix", ".")
    assert outcome.code == 1
    assert outcome.out.startswith("--- a.py\n+++ a.py\n@@ ")
    assert "\n-torch.autograd.set_detect_anomaly(True)\n" in outcome.out
    assert "Would apply 1 fix in 1 file:" in outcome.err
    assert (project / "a.py").read_text() == SAFE


def test_what_comes_next_is_an_option_of_the_command(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert "the same command with --apply writes the files" in invoke("fix", ".").err
    assert "the same command with --fix in place of --diff writes the files" in invoke("check", "--diff", ".").err
    assert invoke("check", "--fix", ".").code == 0
    assert (project / "a.py").read_text() == FIXED


def test_the_diff_is_what_apply_writes(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_bytes(SAFE.replace("\n", "\r\n").rstrip().encode("utf-8-sig"))
    (project / "b").mkdir()
    (project / "b" / "a.py").write_bytes((project / "a.py").read_bytes())
    patch = invoke("fix", "b").out.replace("b/a.py", "a.py").encode()
    subprocess.run(["git", "apply", "-p0", "-"], input=patch, cwd=project, check=True)
    outcome = invoke("fix", "--apply", "b")
    assert outcome.code == 0
    assert (project / "b" / "a.py").read_bytes() == (project / "a.py").read_bytes()


def test_applying_keeps_the_mode_and_is_done_once(project: Path, invoke: Invoke) -> None:
    path = project / "a.py"
    path.write_text(SAFE)
    path.chmod(0o755)
    outcome = invoke("fix", "--apply", "a.py")
    assert outcome.code == 0
    assert outcome.out == ""
    assert "Applied 1 fix in 1 file:" in outcome.err
    assert path.read_text() == FIXED
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    again = invoke("fix", "--apply", "a.py")
    assert again.code == 0
    assert "Nothing was fixed." in again.err


@pytest.mark.parametrize(
    "arguments",
    [("--unfixable", "TL601"), ("--fixable", "TL2"), ("--extend-unsafe-fixes", "TL6")],
    ids=lambda arguments: arguments[0],
)
def test_options_that_say_what_is_fixed(project: Path, invoke: Invoke, arguments: tuple[str, ...]) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("fix", "--apply", "--exit-zero", *arguments, ".").code == 0
    assert (project / "a.py").read_text() == SAFE
    assert invoke("fix", "--apply", arguments[0], "TL101", "--fixable", "ALL", ".").code == 0
    assert (project / "a.py").read_text() == FIXED


def test_nothing_to_do_exits_with_0(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(CLEAN)
    assert invoke("fix", ".").code == 0


def test_what_is_not_fixed_is_said_with_the_reason(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(UNSAFE)
    outcome = invoke("fix", "--select", "TL101", "--apply", "a.py")
    assert outcome.code == 1
    assert "TL101 needs --unsafe-fixes" in outcome.err
    assert (project / "a.py").read_text() == UNSAFE
    outcome = invoke("fix", "--select", "TL101", "--apply", "--unsafe-fixes", "--num-workers", "6", "a.py")
    assert outcome.code == 0
    assert "num_workers=6" in (project / "a.py").read_text()


def test_a_rule_can_be_trusted(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(UNSAFE)
    assert invoke("fix", "--select", "TL101", "--extend-safe-fixes", "TL101", "--apply").code == 0
    assert "num_workers=4" in (project / "a.py").read_text()


def test_check_fix_is_fix_apply_with_a_report(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "b.py").write_text(UNSAFE)
    outcome = invoke("check", "--select", "TL101,TL601", "--fix", "--output-format", "concise")
    assert outcome.code == 1
    assert (project / "a.py").read_text() == FIXED
    assert outcome.out.startswith("b.py:3:10: TL101")
    assert "a.py:" not in outcome.out


def test_check_diff_writes_nothing(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", "--diff")
    assert outcome.code == 1
    assert outcome.out.startswith("--- a.py\n")
    assert (project / "a.py").read_text() == SAFE


def test_exit_codes_can_be_changed(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("fix", "--exit-zero").code == 0
    assert invoke("fix", "--apply", "--exit-non-zero-on-fix").code == 1
    assert invoke("fix", "--apply", "--exit-non-zero-on-fix").code == 0


def test_a_file_that_cannot_be_written_is_2_and_the_others_are(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(SAFE)
    real = os.replace

    def refuse(source: str, target: str) -> None:
        if str(target).endswith("a.py"):
            raise PermissionError(13, "Permission denied")
        real(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    outcome = invoke("fix", "--apply", ".")
    assert outcome.code == 2
    assert (project / "a.py").read_text() == SAFE
    assert (project / "b.py").read_text() == FIXED
    assert sorted(path.name for path in project.iterdir()) == ["a.py", "b.py"]
    errors = [line for line in outcome.err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert "a.py" in errors[0]


def test_a_read_only_file_is_left_alone(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "a.py").chmod(0o444)
    outcome = invoke("fix", "--apply", ".")
    assert outcome.code == 2
    assert (project / "a.py").read_text() == SAFE


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchlint.engine.fix as fix

    real = fix.fix_file

    def slow(source: object, *arguments: object, **options: object) -> object:
        (project / "a.py").write_text("# edited\n")
        return real(source, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fix, "fix_file", slow)
    (project / "a.py").write_text(SAFE)
    outcome = invoke("fix", "--apply", "a.py")
    assert outcome.code == 2
    assert (project / "a.py").read_text() == "# edited\n"


def test_standard_input(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    given(SAFE)
    outcome = invoke("check", "--output-format", "concise", "--quiet", "--stdin-filename", "src/a.py", "-")
    assert outcome.code == 1
    assert outcome.out.startswith("src/a.py:3:1: TL601")
    given(SAFE)
    assert invoke("fix", "--apply", "-").out == FIXED
    given(SAFE)
    assert invoke("fix", "-").out.startswith("--- -\n")


def test_the_settings_can_ask_for_unsafe_fixes(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(UNSAFE)
    (project / "torchlint.toml").write_text('unsafe-fixes = true\nselect = ["TL101"]\n')
    assert invoke("fix", "--apply").code == 0
    assert "num_workers=4" in (project / "a.py").read_text()
