"""Neovim itself, headless, set up with what docs/editors.md tells its users to write.

`make test-neovim` runs this; it needs a Neovim and fails without.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from torchlint import fix_source

ROOT = Path(__file__).parents[2]
DRIVE = Path(__file__).with_name("drive.lua")
CODE = """\
import torch

torch.autograd.set_detect_anomaly(True)


def train(model, loader, optimizer):
    model.to(torch.device("cuda"))
    total = 0.0
    for batch in loader:
        s = "\N{FIRE}"; optimizer.zero_grad(set_to_none=False)
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def snippet() -> str:
    """Return the Lua that the page gives for this version of Neovim."""
    page = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```lua\n(-- init\.lua, Neovim 0\.7 .*?)```", page, flags=re.DOTALL)
    return str(found)


def test_what_the_page_says_works(tmp_path: Path) -> None:
    start = tmp_path / "bin" / "torchlint"
    start.parent.mkdir()
    start.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchlint "$@"\n')
    start.chmod(0o755)
    settings = tmp_path / "init.lua"
    settings.write_text(snippet(), encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(CODE, encoding="utf-8")
    answers = tmp_path / "answers.json"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": os.pathsep.join([str(start.parent), os.environ["PATH"]]),
        "DRIVE_FILE": "train.py",
        "DRIVE_ANSWERS": str(answers),
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    neovim = os.environ.get("NEOVIM") or "nvim"
    command = [neovim, "--headless", "--clean", "-n", "-u", str(settings), "-c", f"luafile {DRIVE}"]
    subprocess.run(command, cwd=project, env=environment, check=True, timeout=300, stdin=subprocess.DEVNULL)
    seen = json.loads(answers.read_text(encoding="utf-8"))
    assert "problem" not in seen, seen["problem"]
    assert "gave_up" not in seen, seen
    assert seen["server"] == "torchlint"
    assert seen["opened"] == seen["undone"] == ["3 TL601", "10 TL301", "14 TL202"]
    assert seen["columns"][1] == len('        s = "\N{FIRE}"; '.encode()), "Neovim counts columns in bytes"
    assert "TL601 anomaly-detection-left-on" in seen["hover"]
    assert "What it is worth" in seen["hover"]
    assert seen["typed"] == ["2 TL601", "5 TL601", "12 TL301", "16 TL202"]
    assert seen["fixed"] == "Fix TL301 (unsafe): Pass `set_to_none=True`"
    assert seen["after_the_quick_fix"] == ["3 TL601", "14 TL202"]
    assert seen["fixed_all"] == "torchlint: Apply all safe fixes"
    assert len(seen["after_fix_all"]) == 1
    assert seen["text"] == fix_source(CODE.replace("=False", "=True")).text
    assert seen["is_modified"], "the server writes no file"
    assert (project / "train.py").read_text(encoding="utf-8") == CODE
