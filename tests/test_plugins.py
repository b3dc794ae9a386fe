"""Rules of other packages, in a real environment of their own: the example, and packages with something wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import SAFE
from tests.wheelhouse import wheelhouse
from torchlint.settings import tomllib

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "fixtures" / "plugin-example"
LOOP = "import torch\n\nfor batch in loader:\n    step(torch.relu(batch))\n    print(torch.cuda.memory_summary())\n"
FIXED = "import torch\n\nfor batch in loader:\n    step(torch.relu(batch))\n"
RULE = """
import libcst as cst
from torchlint import Default, Example, Family, Rule, Triggers
from pathlib import Path

def make(code="OT101", name="other-rule", **words):
    given = dict(
        code=code, name=name, family=Family.DEBUG, since="1", default=Default.ON, summary="s",
        triggers=Triggers.all_of("torch"), examples=(), references=(), documentation="d", silences={}, torch="",
    )
    made = Rule(**{**given, **words})
    made.check(cst.Call)(lambda node, model: iter(()))
    return made
"""


@dataclass(frozen=True)
class Environment:
    """An installation of Python with torchlint, and a project to check with it."""

    python: Path
    packages: Path
    project: Path

    def install(
        self, name: str, code: str, *, version: str = "1.0", entry: str = "", folder: Path | None = None
    ) -> None:
        """Put a module and what an installer writes about it into the packages, or into another folder."""
        folder = folder or self.packages
        (folder / f"{name}.py").write_text(RULE + code, encoding="utf-8")
        about = folder / f"{name}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (about / "entry_points.txt").write_text(f"[torchlint.rules]\n{entry or name} = {name}:RULES\n")

    def use(self, *plugins: str) -> None:
        """Name the plugins in the settings of the project."""
        (self.project / "torchlint.toml").write_text(f"plugins = {json.dumps(plugins)}\n")

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run torchlint in the project."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        command = [str(self.python), "-m", "torchlint", *arguments]
        return subprocess.run(
            command, cwd=self.project, env={**kept, **variables}, capture_output=True, text=True, check=False
        )

    def complaint(self, *arguments: str, **variables: str) -> str:
        """Return the one line with which torchlint refuses to check."""
        done = self.run(*(arguments or ("check",)), **variables)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        return line


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the example."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = {**os.environ, **wheelhouse(tmp_path_factory.mktemp("wheels"))}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(EXAMPLE)]
    subprocess.run(command, env=pip, check=True, capture_output=True, text=True)
    (built,) = folder.glob("torchlint_example-*.whl")
    return built


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Environment:
    """Return an environment with torchlint from the checkout and the example, and a project in which it finds one."""
    return made(wheel, tmp_path, tmp_path / "environment")


def made(wheel: Path, tmp_path: Path, folder: Path) -> Environment:
    """Return an environment in this folder."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "checkout.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "train.py").write_text(LOOP)
    environment = Environment(python, packages, project)
    environment.use("example")
    return environment


def test_the_rules_of_a_plugin_are_checked_and_fixed(environment: Environment) -> None:
    checked = environment.run("check", "--output-format", "concise")
    assert checked.returncode == 1
    assert checked.stdout.startswith("train.py:5:11: EX101 [unsafe fix] `torch.cuda.memory_summary` formats a table")
    fixed = environment.run("fix", "--apply", "--unsafe-fixes")
    assert (fixed.returncode, fixed.stdout) == (0, "")
    assert (environment.project / "train.py").read_text() == FIXED


def test_they_are_selected_ignored_and_silenced_like_others(environment: Environment) -> None:
    assert environment.run("check", "--ignore", "memory-summary-left-on").returncode == 0
    assert environment.run("check", "--select", "EX").returncode == 1
    assert environment.run("check", "--add-ignore", "--apply").returncode == 0
    assert "# torchlint: ignore[EX101]" in (environment.project / "train.py").read_text()
    checked = environment.run("check")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_they_are_listed_and_explained(environment: Environment) -> None:
    listed = environment.run("rules").stdout
    assert listed.splitlines()[-1].split()[:2] == ["EX101", "memory-summary-left-on"]
    assert environment.run("rules", "memory-summary-left-on").stdout.startswith("# EX101 memory-summary-left-on\n")
    assert "EX101" not in environment.run("rules", "--isolated").stdout


@pytest.mark.parametrize("form", ["json", "sarif", "html", "junit", "gitlab", "github", "rdjson", "pylint", "azure"])
def test_every_format_knows_them(environment: Environment, form: str) -> None:
    done = environment.run("check", "--output-format", form)
    assert done.returncode == 1
    assert "EX101" in done.stdout


def test_results_are_kept_until_the_plugin_changes(environment: Environment) -> None:
    first = environment.run("check", "--output-format", "json")
    assert environment.run("check", "--output-format", "json").stdout == first.stdout
    module = environment.packages / "torchlint_example" / "memory_summary_left_on.py"
    module.write_text(module.read_text().replace("formats a table", "draws up a table"))
    assert "draws up a table" in environment.run("check", "--output-format", "json").stdout


def test_every_process_has_them(environment: Environment) -> None:
    for index in range(6):
        (environment.project / f"more{index}.py").write_text(LOOP)
    script = environment.project.parent / "script.py"
    script.write_text(
        "import threading, torchlint\n"
        "if __name__ == '__main__':\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()  # from now on nothing is forked\n"
        "    print(sum(len(result.diagnostics) for result in torchlint.check_paths(['.'], jobs=2)))\n"
    )
    assert "Found 7 findings" in environment.run("check", "--jobs", "2", "--no-cache").stdout
    done = subprocess.run(
        [environment.python, script], cwd=environment.project, capture_output=True, text=True, check=True
    )
    assert done.stdout == "7\n"


def test_nothing_is_loaded_that_is_not_named(environment: Environment) -> None:
    environment.install("noisy", "raise SystemExit('loaded')\n")
    assert environment.run("check").returncode == 1
    (environment.project / "torchlint.toml").write_text("")
    assert environment.run("check").returncode == 0


@pytest.mark.parametrize("path", [None, ".", "{project}", "{parent}"])
def test_nothing_of_the_tree_is_loaded(environment: Environment, path: str | None) -> None:
    mark = environment.project.parent / "mark"
    wrong = f"Path({str(mark)!r}).touch()\nRULES = [make()]\n"
    variables = {"PYTHONPATH": path.format(project=environment.project, parent=mark.parent)} if path else {}
    environment.install("trap", wrong, folder=environment.project)
    environment.install("trap", wrong, folder=mark.parent)
    (environment.project / "torchlint_example.py").write_text(RULE + wrong)
    (mark.parent / "torchlint_example.py").write_text(RULE + wrong)
    assert environment.run("check", "train.py", **variables).returncode == 1
    environment.use("trap")
    assert "plugin 'trap' is not installed beside torchlint; there are: example" in environment.complaint(**variables)
    assert not mark.exists()


def test_what_is_installed_into_an_environment_within_the_tree_is_loaded(wheel: Path, tmp_path: Path) -> None:
    environment = made(wheel, tmp_path, tmp_path / "project" / ".venv")
    assert "EX101" in environment.run("check").stdout


def test_what_is_installed_in_place_in_the_tree_is_not_run(environment: Environment) -> None:
    mark = environment.project.parent / "mark"
    environment.install("linked", "")
    (environment.packages / "linked.py").rename(environment.project / "linked.py")
    (environment.project / "linked.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (environment.packages / "linked.pth").write_text(f"{environment.project}\n")
    environment.use("linked")
    assert "plugin 'linked': there is no module linked" in environment.complaint()
    assert not mark.exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('broken\\nbadly')", "cannot be imported: RuntimeError: broken"),
        ("import missing_thing", "cannot be imported: ModuleNotFoundError: No module named 'missing_thing'"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("", "cannot be imported: AttributeError"),
        ("RULES = 3", "other:RULES is neither a Rule nor a list of Rules"),
        ("RULES = []", "other:RULES is neither a Rule nor a list of Rules"),
        ("RULES = make(code='TL999')", "rule TL999 other-rule: its code must be two to eight capital letters, not"),
        ("RULES = make(name='create-then-move')", "create-then-move is torchlint's own"),
        ("RULES = make(code='TOR101')", "TOR101 is torchlint's own"),
        ("RULES = make(family='debug', torch='new')", "'debug' is no Family; 'new' is no specifier of versions"),
        ("RULES = make(); RULES.checks.clear()", "it has no check"),
        ("RULES = make(), make(name='third-rule')", "two plugins have a rule OT101"),
        ("RULES = make(code='EX101')", "two plugins have a rule EX101"),
        ("RULES = make(name='memory-summary-left-on')", "two plugins have a rule memory-summary-left-on"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_told_in_one_line(environment: Environment, code: str, words: str) -> None:
    environment.install("other", code)
    environment.use("example", "other")
    complaint = environment.complaint()
    assert complaint.startswith("error: ")
    assert "torchlint.toml: " in complaint
    assert words in complaint
    assert words in environment.complaint("rules")


def test_two_packages_with_one_name(environment: Environment) -> None:
    environment.install("other", "RULES = make()", entry="example")
    assert "plugin 'example' is in other 1.0 and torchlint-example 1.0" in environment.complaint() or (
        "plugin 'example' is in torchlint-example 1.0 and other 1.0" in environment.complaint()
    )


def test_plugins_of_two_folders_that_do_not_go_together(environment: Environment) -> None:
    environment.install("other", "RULES = make(code='EX101')")
    (environment.project / "inner").mkdir()
    (environment.project / "inner" / "torchlint.toml").write_text('plugins = ["other"]\n')
    (environment.project / "inner" / "a.py").write_text(SAFE)
    assert "two plugins have a rule EX101" in environment.complaint()


def test_a_rule_that_fails_costs_its_findings_only(environment: Environment) -> None:
    environment.install(
        "other", "RULES = make()\nRULES.checks.clear()\nRULES.check(cst.Call)(lambda node, model: 1 / 0)"
    )
    environment.use("example", "other")
    done = environment.run("check", "--output-format", "concise", "--quiet")
    assert done.returncode == 2
    assert "EX101" in done.stdout
    assert "internal error in rule OT101 other-rule: ZeroDivisionError" in done.stderr


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    sources = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLE.rglob("*.*") if path.suffix != ".pyc"}
    everything = "\n".join(sources.values())
    toml, python, settings, rule, test = re.findall(r"```(?:toml|python)\n(.*?)```", page, re.DOTALL)
    assert all(line in everything for line in toml.splitlines())
    assert python in sources["__init__.py"]
    assert rule.strip() in sources["memory_summary_left_on.py"]
    assert tomllib.loads(settings) == {"tool": {"torchlint": {"plugins": ["example"]}}}
    assert "torchlint_example.RULES" in test


def test_the_test_on_the_page_passes(environment: Environment) -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    test = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    subprocess.run([environment.python, "-c", test], cwd=environment.project, check=True)
