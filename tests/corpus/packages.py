"""The pinned packages: downloaded once, unpacked, never installed and never imported."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PINS = (
    "timm==1.0.31",
    "diffusers==0.42.1",
    "lightning==2.6.6",
    "monai==1.6.1",
    "kornia==0.9.0",
    "torch-geometric==2.8.1",
    "segmentation-models-pytorch==0.6.0",
    "ultralytics==8.4.190",
)
_WHEEL, _SDIST = ".whl", ".tar.gz"


class NotAvailable(Exception):
    """A package could not be downloaded."""


def downloaded(pin: str, cache: Path, *, sdist: bool = False) -> Path:
    """Return the archive of a pinned package, downloaded unless the cache holds it.

    A wheel by default: pip runs nothing to download one, but runs the build program of an sdist.

    Raises:
        NotAvailable: pip could not download it.
    """
    found = _cached(pin, cache, sdist=sdist)
    if found is None:
        cache.mkdir(parents=True, exist_ok=True)
        form = ["--no-binary", ":all:"] if sdist else ["--only-binary", ":all:"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*pip, *form, "--dest", str(cache), pin], capture_output=True, text=True, check=False)
        found = _cached(pin, cache, sdist=sdist)
        if done.returncode or found is None:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip says nothing"]
            raise NotAvailable(f"{pin} could not be downloaded: {said[-1]}")
    return found


def _cached(pin: str, cache: Path, *, sdist: bool) -> Path | None:
    name, _, version = pin.partition("==")
    wanted = f"{_plain(name)}-{version}"
    for path in sorted(cache.glob("*")):
        stem = path.name.removesuffix(_SDIST) if sdist else "-".join(path.name.split("-")[:2])
        if path.name.endswith(_SDIST if sdist else _WHEEL) and _plain(stem) == _plain(wanted):
            return path
    return None


def _plain(name: str) -> str:
    return name.replace("-", "_").replace(".", "_").lower()


def unpacked(archive: Path, folder: Path) -> list[Path]:
    """Return the Python files of an archive, written below a folder; members that point out of it are left out."""
    written = []
    for name, data in _members(archive):
        parts = PurePosixPath(name).parts
        if not name.endswith(".py") or ".." in parts or PurePosixPath(name).is_absolute():
            continue
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)
    return sorted(written)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.name.endswith(_SDIST):
        with tarfile.open(archive) as sdist:
            for member in sdist:
                content = sdist.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member.name, content.read()
        return
    with zipfile.ZipFile(archive) as wheel:
        for name in wheel.namelist():
            yield name, wheel.read(name)
