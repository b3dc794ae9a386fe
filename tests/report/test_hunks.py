"""Hunks are the fixes: over all fixtures, patching the text with them gives what the edits give."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.diagnostic import TextFix
from torchlint.engine.file import check_file
from torchlint.registry import rules, rules_of
from torchlint.report.hunks import Hunk, hunks
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.settings import Settings
from torchlint.source import source_from_text

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = sorted(path for path in FIXTURES.iterdir() if path.is_dir())
EVERYTHING = frozenset(rule.code for rule in rules())


def patched(text: str, changes: tuple[Hunk, ...]) -> str:
    """Return the text with the hunks applied, each of which must say what there is."""
    lines = text.split("\n")
    for hunk in reversed(changes):
        old = [line for sign, line in hunk.lines if sign != "+"]
        first = hunk.row - 1
        assert lines[first : first + len(old)] == old
        lines[first : first + len(old)] = [line for sign, line in hunk.lines if sign != "-"]
    return "\n".join(lines)


def edited(text: str, fix: TextFix) -> str:
    """Return the text with the edits made."""
    for edit in reversed(fix.edits):
        text = text[: edit.range.start] + edit.content + text[edit.range.end :]
    return text


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_patching_with_the_hunks_is_fixing(folder: Path, newline: str) -> None:
    for path in sorted(folder.glob("*.py" if newline == "\n" else "bad.py")):
        text = path.read_text(encoding="utf-8").replace("\n", newline)
        result = check_file(source_from_text(text), Settings(), rules_of(EVERYTHING), UNKNOWN_TARGET)
        for fix in (diagnostic.fix for diagnostic in result.diagnostics):
            if fix is not None:
                expected = edited(text, fix).replace("\r\n", "\n")
                assert patched(text.replace("\r\n", "\n"), hunks(fix, result.excerpts)) == expected
