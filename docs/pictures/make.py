"""Export the pictures of the README as SVG: real runs on ``fixtures/demo``, and the evidence that is shipped."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from torchlint.harness import plot

ROOT = Path(__file__).parent.parent.parent
WIDTH = 110
RUNS = {
    "check.svg": ("check", "--select", "TL201,TL202", "evaluate.py"),
    "fix.svg": ("fix", "--unsafe-fixes", "model.py"),
}


def terminal(arguments: tuple[str, ...]) -> Text:
    """Return what the command prints on a coloured terminal."""
    command = [sys.executable, "-m", "torchlint", arguments[0], "--color", "always", *arguments[1:]]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    folder = ROOT / "fixtures" / "demo"
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    if run.returncode not in (0, 1):
        raise SystemExit(run.stderr)
    return Text.from_ansi(f"$ torchlint {' '.join(arguments)}\n{run.stdout.rstrip()}")


def picture(arguments: tuple[str, ...]) -> str:
    """Return the SVG of a run; the fonts are those of the reader, nothing is loaded from elsewhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(terminal(arguments), soft_wrap=True)
    svg = console.export_svg(title="fixtures/demo", unique_id="torchlint")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def evidence() -> dict[str, str]:
    """Return the forest plot of what could be measured on each device, by the name of its picture."""
    files = sorted((ROOT / "torchlint" / "evidence").glob("*.json"))
    return {
        f"evidence-{file.stem}.svg": plot.svg(_measured(json.loads(file.read_text(encoding="utf-8"))))
        for file in files
        if file.name != "schema.json"
    }


def _measured(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "cases": [case for case in document["cases"] if case["ratio"] is not None]}


def main() -> None:
    """Write all pictures."""
    for name, svg in ({name: picture(arguments) for name, arguments in RUNS.items()} | evidence()).items():
        path = Path(__file__).parent / name
        path.write_text(svg, encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
