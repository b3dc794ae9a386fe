"""Wheels of what is installed beside the tests, so that tests that install something need no network."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import canonicalize_name

from torchlint.settings import tomllib

ROOT = Path(__file__).parent.parent


def wheelhouse(folder: Path, *requirements: str) -> dict[str, str]:
    """Fill a folder with wheels of torchlint's dependencies, its build backend and more; return the settings of pip.

    The folder holds what these declare that they need and no more: a dependency that is not declared is missed.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*settings["project"]["dependencies"], *settings["build-system"]["requires"], *requirements]
    done: set[str] = set()
    for found in _closure(wanted, done):
        _pack(found, folder)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}


def _closure(requirements: list[str], done: set[str]) -> Iterator[Distribution]:
    """Yield what is installed for requirements, and for what that requires in turn."""
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        if name in done or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        done.add(name)
        found = distribution(name)
        yield found
        yield from _closure(found.requires or [], done)


def _pack(found: Distribution, folder: Path) -> None:
    """Write the wheel that a distribution was installed from, without the scripts, which pip makes itself."""
    tags = [line[5:] for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    tag = next(str(each) for each in sys_tags() if str(each) in tags)
    name = canonicalize_name(found.name).replace("-", "_")
    files = [file for file in found.files or () if file.parts[0] != ".." and file.suffix != ".pyc"]
    (record,) = (file for file in files if file.match("*.dist-info/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{found.version}-{tag}.whl", "w") as wheel:
        for file in files:
            if file != record and file.name != "INSTALLER":
                wheel.write(str(file.locate()), file.as_posix())
        wheel.writestr(record.as_posix(), "".join(f"{file.as_posix()},,\n" for file in files))
