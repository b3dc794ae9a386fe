"""How long an editor waits: from a change to the findings of it, over the wire, on a file of 500 lines."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from tests.lsp.conftest import Editor, editing
from torchlint.lsp.features import DELAY

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
PARTS = ("config", "data", "evaluate", "model", "train", "data", "model", "train")
LINES = 500


def program() -> str:
    """Return a file of 500 lines that is made of those of the demo."""
    text = "".join((DEMO / f"{name}.py").read_text(encoding="utf-8") for name in PARTS)
    return text + "# end\n" * (LINES - text.count("\n"))


async def waited(editor: Editor, uri: str, text: str, version: int) -> float:
    """Return the seconds until the findings of a change have come."""
    start = time.perf_counter()
    editor.type(uri, text + "x" * version, version)
    await editor.findings(uri, version)
    return time.perf_counter() - start


async def measure(rounds: int) -> None:
    """Print what one change after the other costs, once the server is warm."""
    text = program()
    with tempfile.TemporaryDirectory() as folder:
        async with editing(Path(folder).resolve()) as editor:
            uri = editor.open("train.py", text)
            found = await editor.findings(uri)
            seconds = [await waited(editor, uri, text, version) for version in range(2, rounds + 2)]
    print(f"{text.count(chr(10))} lines, {len(found)} findings, {rounds} changes")
    print(f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s, of which {DELAY} s is waiting")


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="how many changes")
    asyncio.run(measure(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
