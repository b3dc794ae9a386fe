"""Every command that the pages show works: it is run where it can be, and otherwise held against what there is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.fixture_files import FIXTURES
from tests.installed import pretend_installed
from tests.repository import commit, git
from torchlint.cli.app import app
from torchlint.dev.__main__ import app as dev
from torchlint.settings import tomllib

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "rules").glob("*.md"))]
FENCE = re.compile(r"^( *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^\1```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(
    r"(?<!`)`(?:(?:\.venv/bin/)?torchlint (?=[a-z])|(?=(?:check|fix|bench|verify|rules|server|clean) -))"
    r"(?P<words>[^`|\\]*)[^`]*`(?!`)"
)

RUN = {"check", "fix", "rules", "clean", "--help", "--version"}
PARSED = {"bench", "verify", "server"}
"""Commands that need torch, time, or somebody at the other end: their arguments are parsed; other tests run them."""

PARSED_WITH = {"--watch", "--interactive", "-i"}
"""Options that wait for somebody."""


def shown(page: Path) -> Iterator[str]:
    """Yield what follows the prompts in a page's console blocks, and the script lines of its configuration files."""
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        line = {"console": r"^ *\$ (.*)$", "yaml": r"^ *(?:- )?(torchlint [a-z].*)$"}.get(fence["language"])
        if line:
            yield from re.findall(line, fence["text"], flags=re.MULTILINE)


def is_run(command: str) -> bool:
    """Return whether the tests run the command as it stands."""
    words = shlex.split(command, comments=True)
    return words[0] == "flake8" or (words[0] == "torchlint" and words[1] in RUN and not PARSED_WITH & set(words))


def parse(group: click.Group, words: list[str]) -> None:
    """Parse a command's arguments as the program would.

    Raises:
        click.UsageError: it would complain.
    """
    context = click.Context(group)
    found = group.get_command(context, words[0])
    assert found, f"there is no command {words[0]}"
    found.make_context(words[0], words[1:], parent=context)


def targets() -> set[str]:
    """Return what make can be asked for."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def extras() -> set[str]:
    """Return the extras that pip can be asked for."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(settings["project"]["optional-dependencies"])


def hold(command: str) -> None:
    """Fail unless a command that is not run here could work; what no branch knows fails too."""
    match shlex.split(command, comments=True):
        case ["torchlint", name, *_] as words if name in PARSED or PARSED_WITH & set(words):
            parse(app, words[1:])
        case ["python" | ".venv/bin/python", "-m", "torchlint", name, *rest] if name in RUN | PARSED:
            parse(app, [name, *rest])
        case ["python" | ".venv/bin/python", "-m", "torchlint.dev", *words]:
            parse(dev, words)
        case ["make", target, *_]:
            assert target in targets()
        case ["pip" | "pipx", "install" | "wheel" | "download", *words]:
            assert {name for word in words for name in re.findall(r"\[(\w+)\]", word)} <= extras()
        case _:
            pytest.fail(f"no test knows how to try `{command}`: run it, or say in hold() what can be checked")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project under git, one commit ahead of its remote, with torchlint and flake8 on the PATH."""
    folder = Path(shutil.copytree(FIXTURES / "demo", tmp_path / "project"))
    for name in ("src", "path/to/project"):
        shutil.copytree(FIXTURES / "demo", folder / name)
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    with (folder / "train.py").open("a", encoding="utf-8") as file:
        file.write("\ntorch.autograd.set_detect_anomaly(True)\n")
    path = os.pathsep.join([str(ROOT), str(pretend_installed(tmp_path / "installed"))])
    (tmp_path / "bin").mkdir()
    for name in ("torchlint", "flake8"):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m {name} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if any(shown(page))], ids=lambda page: page.name)
def test_commands_of_a_page_work_in_their_order(page: Path, project: Path) -> None:
    for command in shown(page):
        if not is_run(command):
            hold(command)
            continue
        outcome = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert outcome.returncode in (0, 1), f"{command}\n{outcome.stderr}"
        assert "error:" not in outcome.stderr, f"{command}\n{outcome.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_that_a_page_mentions_exist(page: Path) -> None:
    context = click.Context(app)
    text = page.read_text(encoding="utf-8")
    for words in (match["words"].split() for match in INLINE.finditer(FENCE.sub("", text))):
        found = app.get_command(context, words[0])
        assert found, f"torchlint {words[0]}"
        known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-") and word not in ("-", "--")} <= known, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_hides_from_these_tests(page: Path) -> None:
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        if fence["language"] not in ("console", "yaml"):
            assert not re.search(r"^ *\$? ?torchlint [a-z]", fence["text"], flags=re.MULTILINE), fence[0]
            assert fence["language"] not in ("sh", "bash", "shell"), "write console, with a $ before each command"


def test_an_unknown_command_is_not_passed_over() -> None:
    with pytest.raises(pytest.fail.Exception, match="no test knows"):
        hold("frobnicate --all")
    with pytest.raises(click.UsageError):
        hold("torchlint verify --no-such-option")
