"""What consoles ask of a program: colours where wanted, letters that the code page has, help that can be read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.conftest import FIXED, SAFE
from tests.faults.command import torchlint
from tests.terminal import environment, on_terminal
from torchlint.cli.app import COMMANDS, app

ESCAPE = "\x1b["
NAME = "模型_модель.py"
ESCAPED = "\\u6a21\\u578b_\\u043c\\u043e\\u0434\\u0435\\u043b\\u044c.py"


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run torchlint with its output in pipes."""
    command = [sys.executable, "-m", "torchlint", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment(), **variables},
        capture_output=True,
        encoding="cp1252",
        errors="replace",  # frames of boxes, which are UTF-8 where the terminal says so
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "--statistics"],
        ["check", "--show-settings"],
        ["fix"],
        ["rules"],
        ["rules", "TL601"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_no_colours_in_a_pipe_unless_forced(project: Path, arguments: list[str]) -> None:
    (project / "a.py").write_text(SAFE)
    plain = run(project, *arguments)
    assert ESCAPE not in plain.stdout + plain.stderr
    unwanted = run(project, *arguments, NO_COLOR="1", FORCE_COLOR="1")
    assert (unwanted.stdout, unwanted.stderr) == (plain.stdout, plain.stderr)
    if arguments != ["--help"]:
        assert ESCAPE in run(project, *arguments, FORCE_COLOR="1").stdout


def test_errors_have_colours_only_where_they_are_wanted(project: Path) -> None:
    (project / "a.py").write_bytes(b"\xff")
    assert ESCAPE not in run(project, "check").stderr
    assert ESCAPE in run(project, "check", FORCE_COLOR="1").stderr
    assert ESCAPE not in run(project, "check", "--color", "never", FORCE_COLOR="1").stderr


@pytest.mark.parametrize("form", ["json", "sarif", "concise", "github", "pylint", "junit"])
def test_formats_for_machines_have_no_colours_even_if_forced(project: Path, form: str) -> None:
    (project / "a.py").write_text(SAFE)
    shown = run(project, "check", "--output-format", form, FORCE_COLOR="1").stdout
    assert (ESCAPE in shown) is (form == "concise")


def test_colours_on_a_terminal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(SAFE)
    assert ESCAPE in on_terminal(["check"], project).text
    assert ESCAPE not in on_terminal(["check", "--color", "never"], project).text
    monkeypatch.setattr("tests.terminal.environment", lambda: {**environment(), "NO_COLOR": "1"})
    assert ESCAPE not in on_terminal(["check"], project).text


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "--output-format", "concise"],
        ["check", "--output-format", "grouped"],
        ["check", "--show-settings"],
        ["check", "--color", "always"],
    ],
    ids=" ".join,
)
def test_letters_that_the_console_lacks_are_escaped(project: Path, arguments: list[str]) -> None:
    (project / NAME).write_text(SAFE.replace("(3)", "(3)  # größe 大小"), encoding="utf-8")
    done = run(project, *arguments, PYTHONIOENCODING="cp1252")
    assert done.returncode in (0, 1), done.stderr
    assert ESCAPED in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--output-format", "github"],
        ["check", "--output-format", "pylint"],
        ["check", "--output-format", "junit"],
        ["check", "--show-files"],
        ["check", "--diff"],
        ["check", "--add-ignore"],
        ["fix"],
    ],
    ids=" ".join,
)
def test_what_programs_read_is_utf_8_on_any_console(project: Path, arguments: list[str]) -> None:
    (project / NAME).write_text(SAFE.replace("(3)", "(3)  # größe 大小"), encoding="utf-8")
    done = torchlint(*arguments, cwd=project, environment={"PYTHONIOENCODING": "cp1252"})
    assert done.returncode in (0, 1), done.stderr
    assert NAME in done.stdout.decode()


@pytest.mark.parametrize(
    "data",
    [
        f"\ufeff{SAFE}# größe 大小\r\n".encode(),
        f"# coding: latin-1\n{SAFE}# größe\n".encode("latin-1"),
        "# coding: latin-1\r\nx = 'größe'\r\n".encode("latin-1"),
    ],
    ids=["mark", "latin-1", "nothing to fix"],
)
def test_what_comes_in_by_a_pipe_goes_out_in_its_own_encoding(project: Path, data: bytes) -> None:
    (project / "a.py").write_bytes(data)
    with open(project / "a.py", "rb") as given:
        done = torchlint("fix", "--apply", "-", cwd=project, stdin=given, environment={"PYTHONIOENCODING": "cp1252"})
    assert done.stdout == data.replace(SAFE.encode(), FIXED.encode())


def test_errors_about_such_names_are_one_line(project: Path) -> None:
    done = run(project, "check", NAME, PYTHONIOENCODING="cp1252")
    assert done.returncode == 2
    assert done.stderr == f"error: {ESCAPED}: no such file or directory\n"
    for arguments in (["check", "--select", NAME], [NAME], ["check", "--config", NAME], ["rules", NAME]):
        done = run(project, *arguments, PYTHONIOENCODING="cp1252")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert ESCAPED in done.stderr


def test_json_and_files_hold_the_names_as_they_are(project: Path) -> None:
    (project / NAME).write_text(SAFE)
    done = torchlint("check", "--output-format", "json", cwd=project, environment={"PYTHONIOENCODING": "cp1252"})
    assert json.loads(done.stdout)[0]["filename"] == str(project / NAME)
    for form in ("json", "html", "full"):
        run(project, "check", "--output-format", form, "--output-file", f"report.{form}", PYTHONIOENCODING="cp1252")
    assert json.loads((project / "report.json").read_text(encoding="utf-8"))[0]["filename"] == str(project / NAME)
    assert ESCAPED in (project / "report.html").read_text(encoding="utf-8")
    assert (project / "report.full").read_text(encoding="utf-8").startswith(f"{NAME}:3:1: TL601")
    assert run(project, "fix", "--apply", PYTHONIOENCODING="cp1252").returncode == 0
    assert (project / NAME).read_text() == FIXED


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert not [option.opts for option in options if not option.help]
    assert command.help
    assert command.get_short_help_str(100).startswith(COMMANDS[name].partition(" ")[0])


@pytest.mark.parametrize("name", ["check", "fix"])
def test_help_groups_the_options_and_leaves_none_out(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command
    text = command.get_help(click.Context(command, info_name=name, max_content_width=100, terminal_width=100))
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Rules:", "Files:", "Findings that count:", "Fixes:", "Report:", "Run:", "Other:"]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert all(f"  {option.opts[0]}" in text or f", {option.opts[0]}" in text for option in options)
    # click keeps the names of the option for help from the first context of the command: other tests may be first
    assert re.search(r"\nOther:\n  (-h, )?--help  Show this message and exit\.$", text.rstrip())
    assert max(map(len, text.splitlines())) <= 100


def test_the_version_comes_before_anything_is_imported(project: Path) -> None:
    program = (
        "import sys; from torchlint.cli import run; run(['--version']); "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'click', 'rich', 'libcst'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0].startswith("torchlint ")
    assert done.stdout.splitlines()[1] == "[]"
