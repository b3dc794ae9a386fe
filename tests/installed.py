"""An installation of torchlint as far as other programs can tell, without pip."""

from __future__ import annotations

from pathlib import Path

from torchlint.settings import tomllib

ROOT = Path(__file__).parent.parent


def pretend_installed(folder: Path) -> Path:
    """Return the folder, with the metadata that says which plugins torchlint is, for ``PYTHONPATH``."""
    installed = folder / "torchlint-0.dist-info"
    installed.mkdir(parents=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    entries = settings["project"]["entry-points"]["flake8.extension"]
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (installed / "entry_points.txt").write_text("\n".join(["[flake8.extension]", *lines, ""]))
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: torchlint\nVersion: 0\n")
    return folder
