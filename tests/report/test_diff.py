"""Diffs are what `patch` takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from torchlint.report.diff import diff

TEXTS = st.text(alphabet="ab\n\r ", max_size=30)


def test_a_missing_final_newline_is_said() -> None:
    assert diff("a\nb", "a\nc", "x.py").splitlines() == [
        "--- x.py",
        "+++ x.py",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "\\ No newline at end of file",
        "+c",
        "\\ No newline at end of file",
    ]


def test_no_change_is_no_diff() -> None:
    assert diff("a\n", "a\n", "x.py") == ""


@given(TEXTS)
def test_the_lines_of_a_diff_against_nothing_give_the_text_back(text: str) -> None:
    lines = diff("", text, "x.py").split("\n")[3:]
    added = [line[1:] for line in lines if line.startswith("+")]
    ends = not any(line.startswith("\\") for line in lines)
    assert "\n".join(added) + ("\n" if ends and added else "") == text


def test_git_applies_it(tmp_path: Path) -> None:
    before, after = "a\r\nb\r\nc", "a\r\nB\r\nc\r\nd"
    (tmp_path / "x.py").write_bytes(before.encode())
    patch = diff(before, after, "x.py").encode()
    subprocess.run(["git", "apply", "-p0", "-"], input=patch, cwd=tmp_path, check=True)
    assert (tmp_path / "x.py").read_bytes() == after.encode()
