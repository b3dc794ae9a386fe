"""Ruff leaves torchlint's codes alone once it is told that they are not its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPRESSED = "import torch\n\ntorch.autograd.set_detect_anomaly(True)  # noqa: TL601\n"


def fixed(folder: Path) -> str:
    """Return what Ruff makes of a suppressed line, with all its rules about suppressions."""
    (folder / "a.py").write_text(SUPPRESSED)
    command = [sys.executable, "-m", "ruff", "check", "--select", "RUF100,RUF102", "--fix", "--quiet", "a.py"]
    subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return (folder / "a.py").read_text()


def test_the_settings_on_the_page_keep_the_comment(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "beside-other-linters.md").read_text(encoding="utf-8")
    (settings,) = re.findall(r"```toml\n# pyproject.toml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert "noqa" not in fixed(tmp_path)
    (tmp_path / "pyproject.toml").write_text(settings)
    assert fixed(tmp_path) == SUPPRESSED
