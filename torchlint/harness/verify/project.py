"""The copy of a project: what is copied, and how a fixed variant of it is made for each run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint.harness.errors import HarnessError
from torchlint.project.gitignore import GitIgnore

_MARKERS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "torchlint.toml")
_NEVER = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        ".venv",
        "venv",
        "node_modules",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
        ".torchlint_cache",
    }
)


@dataclass(frozen=True, slots=True)
class Project:
    """The user's tree: read, and written only by ``--apply``."""

    root: Path
    workdir: Path
    """Where the command runs: the current folder, at or below the root."""

    included: tuple[Path, ...] = ()
    """Ignored paths to copy all the same."""

    linked: tuple[Path, ...] = ()
    """Paths to link to instead of copying: data that the program only reads."""

    def files(self) -> Iterator[Path]:
        """Yield the paths to copy, relative to the root: all that git would not ignore, and what was included."""
        links = {path.relative_to(self.root) for path in self.linked}
        yield from _walk(self.root, self.root, GitIgnore.around(str(self.root)), links, everything=False)
        for path in self.included:
            if path.is_dir() and not path.is_symlink():
                yield from _walk(self.root, path, GitIgnore.nothing(), links, everything=True)
            else:
                yield path.relative_to(self.root)

    def copy_to(self, folder: Path) -> None:
        """Copy the project into a new folder."""
        folder.mkdir(parents=True)
        for relative in self.files():
            destination = folder / relative
            destination.parent.mkdir(parents=True, exist_ok=True)
            if not destination.exists():
                shutil.copy2(self.root / relative, destination, follow_symlinks=False)
        for path in self.linked:
            destination = folder / path.relative_to(self.root)
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.symlink_to(path, target_is_directory=path.is_dir())


def find_project(paths: Sequence[str], include: Sequence[str], link: Sequence[str]) -> Project:
    """Return the project around the current folder.

    Raises:
        HarnessError: a path lies outside of the project, or does not exist.
    """
    workdir = Path.cwd().resolve()
    above = [workdir, *workdir.parents]
    root = next((folder for folder in above if any((folder / marker).exists() for marker in _MARKERS)), workdir)
    if root == Path(root.anchor) or root == Path.home().resolve():
        root = workdir
    for path in paths:
        _below(root, path)
    return Project(root, workdir, tuple(_below(root, p) for p in include), tuple(_below(root, p) for p in link))


def _below(root: Path, path: str) -> Path:
    """Return the absolute path, with links in its folders resolved and its own name kept."""
    absolute = Path(path).absolute()
    found = absolute.parent.resolve() / absolute.name if absolute.name else absolute.resolve()
    found = Path(os.path.normpath(found))
    if not found.exists():
        raise HarnessError(f"{path} does not exist")
    if found != root and root not in found.parents:
        raise HarnessError(f"{path} lies outside of the project {root}; run verify in the project that holds it")
    return found


def _walk(root: Path, folder: Path, ignore: GitIgnore, links: set[Path], *, everything: bool) -> Iterator[Path]:
    here = ignore.below(str(folder)) if not everything else ignore
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in _NEVER or path.relative_to(root) in links:
            continue
        if not everything and here.ignores(entry.path, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(root, path, here, links, everything=everything)
        elif entry.is_file() or entry.is_symlink():
            yield path.relative_to(root)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where runs happen: each in a fresh copy, and all at the same place, so that paths cannot matter."""

    project: Project
    pristine: Path
    place: Path

    @staticmethod
    def make(project: Project, folder: Path) -> Sandbox:
        """Return a sandbox in a folder, with its own copy of the project."""
        sandbox = Sandbox(project, folder / "pristine", folder / "run" / (project.root.name or "project"))
        project.copy_to(sandbox.pristine)
        return sandbox

    @property
    def workdir(self) -> Path:
        """Where the command runs in the copy."""
        return self.place / self.project.workdir.relative_to(self.project.root)

    def lay_out(self, texts: Mapping[Path, bytes]) -> None:
        """Make the place a fresh copy with these files replaced; paths are those in the user's tree."""
        shutil.rmtree(self.place.parent, ignore_errors=True)
        shutil.copytree(self.pristine, self.place, symlinks=True)
        self.workdir.mkdir(parents=True, exist_ok=True)
        for path, data in texts.items():
            destination = self.place / path.relative_to(self.project.root)
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(data)

    def inside(self, text: str) -> str:
        """Return a text in which paths of the user's tree are those of the copy."""
        root = str(self.project.root)
        return text.replace(root + os.sep, str(self.place) + os.sep) if text != root else str(self.place)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a run: the copy's modules win over an editable installation of the original."""
        found = {**os.environ, **extra}
        given = [self.inside(part) for part in found.get("PYTHONPATH", "").split(os.pathsep) if part]
        sources = [str(self.place / "src")] * (self.pristine / "src").is_dir()
        found["PYTHONPATH"] = os.pathsep.join([*given, *sources, str(self.place)])
        return found
