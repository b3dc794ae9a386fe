"""What SECURITY.md promises: nothing of the linted tree is run, written through or taken for markup."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAFE = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\nx = torch.zeros(3)\n"
TRAP = "open({marker!r}, 'a').write(__name__ + '\\n')\n"
MODULES = """
ast click conftest csv decimal fractions hashlib html json libcst multiprocessing numpy packaging pathspec pickle rich
setup shlex sitecustomize statistics symtable tempfile tokenize tomli tomllib torch typing_extensions unittest
usercustomize xml
""".split()

WATCHED = """
import os, sys
tree, record = {tree!r}, open({record!r}, "a", buffering=1)
def watch(event, arguments):
    if event == "exec" and getattr(arguments[0], "co_filename", "").startswith(tree):
        record.write(f"runs {{arguments[0].co_filename}}\\n")
    elif event.startswith(("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile")):
        record.write(f"starts {{arguments!r}}\\n")
    elif event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.", "ftplib.", "smtplib.")):
        record.write(f"connects {{arguments!r}}\\n")
    elif event == "open" and isinstance(arguments[0], str) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        path = os.path.abspath(arguments[0])
        if not path.startswith((tree, os.devnull)):
            record.write(f"writes {{path}}\\n")
sys.addaudithook(watch)
from torchlint.cli import main
main()
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder in which every module that a linter could import is a trap."""
    folder = tmp_path / "tree"
    folder.mkdir()
    trap = TRAP.format(marker=str(tmp_path / "run"))
    for name in MODULES:
        (folder / f"{name}.py").write_text(trap)
    (folder / "torchlint").mkdir()
    for name in ("__init__", "cli", "settings"):
        (folder / "torchlint" / f"{name}.py").write_text(trap)
    for name in ("a.py", "b.py"):
        (folder / name).write_text(SAFE + trap)
    (folder / "setup.cfg").write_text("[options]\ninstall_requires = torch\n[flake8]\nextend-select = TL\n")
    (folder / "pyproject.toml").write_text(
        '[tool.torchlint]\nlint-tests = true\nunsafe-fixes = true\nselect = ["ALL"]\n'
    )
    return folder


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


COMMANDS = {
    "check": ("check", "."),
    "check with processes": ("check", "--jobs", "2", "--no-cache", "."),
    "fix": ("fix", "--apply", "--jobs", "2", "."),
    "ignores": ("check", "--add-ignore", "--apply", "."),
    "rules": ("rules",),
    "settings": ("check", "--show-settings", "."),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_nothing_of_the_tree_is_run_and_nothing_else_is_started(tree: Path, arguments: tuple[str, ...]) -> None:
    program, record = tree.parent / "torchlint-command", tree.parent / "record"
    program.write_text(WATCHED.format(tree=str(tree), record=str(record)))
    done = run([sys.executable, str(program), *arguments], tree)
    assert done.returncode in (0, 1), done.stderr
    assert record.read_text() == ""
    assert not (tree.parent / "run").exists()


def test_verify_runs_what_it_is_told_to_run_and_nothing_else(tree: Path) -> None:
    program, record = tree.parent / "torchlint-command", tree.parent / "record"
    program.write_text(WATCHED.format(tree=str(tree), record=str(record)))
    done = run([sys.executable, str(program), "verify", "a.py", "--runs", "2", "--", "true"], tree)
    assert done.returncode in (0, 1), done.stderr
    started = [line for line in record.read_text().splitlines() if line.startswith("starts")]
    assert len([line for line in started if "'true'" in line]) >= 4
    watches = [line for line in started if "'-I', '-S', '-c'" in line and "torchlint-verify-" in line]
    assert not {line for line in started if "'true'" not in line} - set(watches)
    assert len(watches) == 1, "what removes the copies if the command is killed"
    assert not [line for line in record.read_text().splitlines() if line.startswith(("runs", "connects"))]
    assert not (tree.parent / "run").exists()


def test_the_record_sees_what_is_run_and_started(tree: Path) -> None:
    program, record = tree.parent / "torchlint-command", tree.parent / "record"
    words = WATCHED.format(tree=str(tree), record=str(record)).partition("from torchlint.cli")[0]
    actions = "import subprocess, socket\nsys.path.insert(0, tree)\nimport conftest\n"
    actions += "subprocess.run(['true'])\nsocket.socket().bind(('127.0.0.1', 0))\nopen(tree + '/../out', 'w')\n"
    program.write_text(words + actions)
    run([sys.executable, str(program)], tree)
    seen = {line.partition(" ")[0] for line in record.read_text().splitlines()}
    assert seen >= {"runs", "starts", "connects", "writes"}
    assert (tree.parent / "run").exists()


def test_a_module_of_the_current_folder_is_not_taken_for_what_is_installed(tree: Path) -> None:
    shutil.rmtree(tree / "torchlint")
    for arguments in (("check", "."), ("fix", "--apply", "--jobs", "2", ".")):
        done = run([sys.executable, "-m", "torchlint", *arguments], tree)
        assert done.returncode in (0, 1), done.stderr
        assert not (tree.parent / "run").exists()


def test_fix_writes_through_no_link_that_leads_out(tree: Path) -> None:
    shutil.rmtree(tree / "torchlint")
    outside = tree.parent / "outside"
    outside.mkdir()
    for name in ("file.py", "folder.py", "named.py"):
        (outside / name).write_text(SAFE)
    (tree / "link.py").symlink_to(outside / "file.py")
    (tree / "folder").symlink_to(outside, target_is_directory=True)
    (tree / "named.py").symlink_to(Path("..") / "outside" / "named.py")
    done = run([sys.executable, "-m", "torchlint", "fix", "--apply", ".", "named.py"], tree)
    assert done.returncode == 2
    assert "named.py: not written: it is a link to" in done.stderr
    assert {path.read_text() for path in outside.iterdir()} == {SAFE}
    assert (tree / "link.py").is_symlink()
    assert (tree / "a.py").read_text().startswith("import torch\n\nx =")


class Tags(HTMLParser):
    """Counts the elements and event handlers of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag, *(name for name, _ in attrs if name.startswith("on"))]


NAMES = ("<script>alert(1)<b>", "'\"><img src=x onerror=alert(1)>", "${alert(1)}`{{x}}")


def test_no_name_and_no_code_becomes_markup(tmp_path: Path) -> None:
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    for folder, names in ((plain, ("one", "two", "three")), (odd, NAMES)):
        (folder / names[0]).mkdir(parents=True)
        for name in names:
            code = SAFE + f"y = torch.zeros(3).cuda()  # {name}\n"
            (folder / names[0] / f"{name}.py").write_text(code)
    pages = {}
    for folder in (plain, odd):
        for form in ("html", "sarif"):
            options = ["--isolated", "--no-cache", "--output-format", form, "-o", str(tmp_path / form)]
            done = run([sys.executable, "-m", "torchlint", "check", *options, "."], folder)
            assert (done.returncode, done.stderr) == (1, "")
            pages[folder, form] = (tmp_path / form).read_text()
    assert Tags(pages[odd, "html"]).found == Tags(pages[plain, "html"]).found
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in json.loads(pages[odd, "sarif"])["runs"][0]["results"]
    ]
    assert len(places) >= 3
    assert not [place for place in places if set(place) & set("<>\"'`{} ")]


ALLOWED = {
    "torchlint/cli/app.py": {"import_module"},
    "torchlint/dev/sample.py": {"run"},
    "torchlint/edits/verify.py": {"compile"},
    "torchlint/harness/devices.py": {"import_module"},
    "torchlint/harness/guardian.py": {"Popen"},
    "torchlint/harness/processes.py": {"Process"},
    "torchlint/harness/verify/run.py": {"Popen"},
    "torchlint/harness/worker.py": {"exec_module", "spec_from_file_location"},
    "torchlint/__init__.py": {"import_module"},
    "torchlint/engine/many.py": {"Process"},
    "torchlint/magics.py": {"compile"},
    "torchlint/project/git.py": {"run"},
    "torchlint/project/target.py": {"import_module"},
    "torchlint/registry.py": {"import_module"},
    "torchlint/report/formats.py": {"import_module"},
    "torchlint/settings.py": {"import_module"},
}
"""Where code can be run or a process started; ``compile`` there makes no code that is run."""

DANGEROUS = frozenset(
    """
    __import__ compile eval exec exec_module execv execve execvp execvpe fork forkpty import_module load_module popen
    posix_spawn posix_spawnp Popen Process run_module run_path spawnl spawnv spec_from_file_location startfile system
    create_subprocess_exec create_subprocess_shell check_call check_output urlopen create_connection
    """.split()
)
READERS = frozenset(("pickle", "marshal", "shelve", "dbm", "socket", "http", "ftplib", "code"))
"""Modules that make code of data, or connections."""


def calls(path: Path) -> Iterator[str]:
    """Yield what a module of the package calls or imports that could run code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            if (name in DANGEROUS and owner not in ("re", "torch", "platform")) or (owner, name) == (
                "subprocess",
                "run",
            ):
                yield name
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in READERS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in READERS:
            yield node.module or ""


def test_code_is_run_where_it_is_said_to_be_and_nowhere_else() -> None:
    modules = [path for path in (ROOT / "torchlint").rglob("*.py") if "cases" not in path.parts]
    found = {path.relative_to(ROOT).as_posix(): set(calls(path)) for path in modules}
    more = {path: names - ALLOWED.get(path, set()) for path, names in found.items()}
    assert {path: names for path, names in more.items() if names} == {}
    assert {path: names - found[path] for path, names in ALLOWED.items() if names - found[path]} == {}
