"""``python -m tests.versions.run``: the tests with each Python that is here, or with the oldest dependencies."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

OK, WRONG, INCOMPLETE = 0, 1, 2
ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "ci.txt"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
_LEFT_OUT = ("torch", "browser", "neovim", "versions")
# Tools that need newer versions than the oldest ones of what torchlint needs, with the tests that use them.
_NEWER = {
    "hatchling": ("test_packaging.py", "test_plugins.py", "integrations/test_pre_commit.py"),
    "check-jsonschema": ("test_ci_files.py",),
}
_SUMMARY = re.compile(r"^=*\s*(\d+ (?:passed|failed|error).*?)\s*=*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one run."""

    name: str
    words: str
    code: int


def lowest(dependencies: Sequence[str]) -> list[str]:
    """Return the constraints that hold each dependency at the lowest version that it may have.

    Raises:
        ValueError: a dependency has no lower bound.
    """
    found = []
    for text in dependencies:
        requirement = Requirement(text)
        bounds = [part.version for part in requirement.specifier if part.operator == ">="]
        if len(bounds) != 1:
            raise ValueError(f"{text} has no lower bound")
        marker = f" ; {requirement.marker}" if requirement.marker else ""
        found.append(f"{requirement.name}=={bounds[0]}{marker}")
    return found


def interpreter(version: str) -> str | None:
    """Return the path of a Python that starts and is of this version, None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (f"python{version}", *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True)):
        path = shutil.which(candidate)
        if path and _version(path) == version:
            return path
    return None


def _version(path: str) -> str:
    told = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(told, capture_output=True, text=True, check=False).stdout.strip()


def run_tests(
    name: str, python: str, constraints: Path, arguments: Sequence[str], *, without: Sequence[str] = ()
) -> Row:
    """Run the tests in a new environment, without some tools and what tests them, and return what came of them."""
    wanted = [text for text in _project()["optional-dependencies"]["dev"] if Requirement(text).name not in without]
    tests = [test for tool in without for test in _NEWER[tool]]
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        own = str(Path(folder) / "bin" / "python")
        pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", str(constraints)]
        installed = subprocess.run(
            [*pip, "--editable", ".", *wanted], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if installed.returncode:
            return Row(name, f"cannot be installed: {(installed.stderr.strip().splitlines() or [''])[-1]}", WRONG)
        left_out = [f"--ignore=tests/{part}" for part in (*_LEFT_OUT, *tests)]
        command = [own, "-m", "pytest", "-p", "no:cacheprovider", *left_out, *(arguments or ["-q", "-n", "auto"])]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    summary = _SUMMARY.findall(done.stdout)
    words = summary[-1] if summary else f"exit code {done.returncode}"
    words += f", NOT RUN: {', '.join(tests)}" if tests else ""
    return Row(name, f"{words} ({time.monotonic() - start:.0f} s in all)", OK if done.returncode == 0 else WRONG)


def with_pythons(versions: Sequence[str], arguments: Sequence[str]) -> Iterator[Row]:
    """Yield what comes of the tests with each version of Python."""
    for version in versions:
        python = interpreter(version)
        if python is None:
            yield Row(f"Python {version}", "NOT RUN: there is none on this machine", INCOMPLETE)
        else:
            yield run_tests(f"Python {version}", python, LOCK, arguments)


def with_lowest(arguments: Sequence[str]) -> Iterator[Row]:
    """Yield what comes of the tests with the oldest versions of what torchlint needs."""
    constraints = lowest(_project()["dependencies"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lowest.txt"
        path.write_text("\n".join(constraints) + "\n", encoding="utf-8")
        yield run_tests(", ".join(constraints), sys.executable, path, arguments, without=tuple(_NEWER))


def _project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0, 1 after a failure, 2 if a version is not here."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.run", description=__doc__)
    parser.add_argument("what", choices=("pythons", "lowest"))
    parser.add_argument("--versions", default=",".join(PYTHONS), help="of Python, with commas")
    parser.epilog = "What follows -- goes to pytest."
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    choice, pytest = parser.parse_args(given[:end]), given[end + 1 :]
    rows = with_lowest(pytest) if choice.what == "lowest" else with_pythons(choice.versions.split(","), pytest)
    codes = set()
    for row in rows:
        print(f"{row.name}: {row.words}", flush=True)
        codes.add(row.code)
    return WRONG if WRONG in codes else INCOMPLETE if INCOMPLETE in codes else OK


if __name__ == "__main__":
    sys.exit(main())
