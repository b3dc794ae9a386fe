"""Comments that silence findings: where they go, what they merge with, and that they do what they are for."""

from __future__ import annotations

import ast
from functools import partial
from itertools import cycle

import pytest

from tests.fixture_files import FixtureFile, every_file
from torchlint.engine.file import check_file
from torchlint.engine.ignores import Ignored, add_ignores, open_rows
from torchlint.registry import rules
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.settings import Settings
from torchlint.source import source_from_text
from torchlint.suppress import BUILT_IN

CODES = ("TL101", "TL202", "TL601")
CHOSEN = [rule for rule in rules() if rule.code in CODES]
KNOWN = {**{rule.code: rule.name for rule in rules()}, **BUILT_IN}
HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"


def ignored(text: str) -> Ignored:
    """Return the text with its comments, by some rules."""
    check = partial(check_file, settings=Settings(), rules=CHOSEN, target=UNKNOWN_TARGET)
    return add_ignores(source_from_text(text), check, KNOWN)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = DataLoader(d)\n", "x = DataLoader(d)  # torchlint: ignore[TL101]\n"),
        ("x = DataLoader(d)", "x = DataLoader(d)  # torchlint: ignore[TL101]"),
        ("x = DataLoader(d)\r\ny = 1\r\n", "x = DataLoader(d)  # torchlint: ignore[TL101]\r\ny = 1\r\n"),
        ("x = DataLoader(d)   \n", "x = DataLoader(d)  # torchlint: ignore[TL101]\n"),
        ("x = DataLoader(d)  # mine\n", "x = DataLoader(d)  # mine  # torchlint: ignore[TL101]\n"),
        ("x = DataLoader(d)  # noqa: E501\n", "x = DataLoader(d)  # noqa: E501  # torchlint: ignore[TL101]\n"),
        ("x = DataLoader(\n    d\n)\n", "x = DataLoader(\n    d\n)  # torchlint: ignore[TL101]\n"),
        (
            "x = DataLoader(d, \\\n    batch_size=1)\n",
            "x = DataLoader(d, \\\n    batch_size=1)  # torchlint: ignore[TL101]\n",
        ),
        ('x = f(DataLoader(d), """\n""")\n', 'x = f(DataLoader(d), """\n""")  # torchlint: ignore[TL101]\n'),
        (
            "DataLoader(DataLoader(a)); torch.autograd.set_detect_anomaly(True)\n",
            "DataLoader(DataLoader(a)); torch.autograd.set_detect_anomaly(True)  # torchlint: ignore[TL101, TL601]\n",
        ),
        (
            "@f(DataLoader(d))\n@g\ndef h(\n    a\n):\n    pass\n",
            "@f(DataLoader(d))\n@g\ndef h(\n    a\n):  # torchlint: ignore[TL101]\n    pass\n",
        ),
        (
            "if DataLoader(d) and \\\n        d:\n    pass\n",
            "if DataLoader(d) and \\\n        d:  # torchlint: ignore[TL101]\n    pass\n",
        ),
        (
            "x = 1; y = DataLoader(d); z = \\\n    2\n",
            "x = 1; y = DataLoader(d); z = \\\n    2\n",
        ),
    ],
)
def test_the_comment_goes_where_it_counts(before: str, after: str) -> None:
    result = ignored(HEAD + before)
    assert result.text == HEAD + after
    ast.parse(result.text)
    again = ignored(result.text)
    assert again.text == result.text
    assert bool(again.result.diagnostics) == (before == after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[TL601] why", "[TL601, TL101] why"),
        ("[anomaly-detection-left-on]", "[anomaly-detection-left-on, TL101]"),
        ("[ TL601 , ]", "[TL601, TL101]"),
        ("[]", "[TL101, TL601]"),
        ("[TL601]  # noqa: E501", "[TL601, TL101]  # noqa: E501"),
    ],
)
def test_a_list_of_ours_grows(before: str, after: str) -> None:
    line = "x = f(DataLoader(d), torch.autograd.set_detect_anomaly(True))  # torchlint: ignore"
    grown = ignored(f"{HEAD}{line}{before}\n")
    assert grown.text == f"{HEAD}{line}{after}\n"
    assert not grown.result.diagnostics


def test_a_list_on_the_first_row_of_a_statement_grows() -> None:
    text = (
        HEAD
        + "x = f(  # torchlint: ignore[TL601]\n    torch.autograd.set_detect_anomaly(True),\n    DataLoader(d),\n)\n"
    )
    assert ignored(text).text == text.replace("TL601]", "TL601, TL101]")


def test_unused_suppressions_go_with_their_reason() -> None:
    text = HEAD + "x = DataLoader(d)  # torchlint: ignore[TL601] why\ny = 1  # torchlint: ignore[TL101]\n"
    result = ignored(text)
    assert result.text == HEAD + "x = DataLoader(d)  # torchlint: ignore[TL101]\ny = 1\n"
    assert [len(result.silenced), len(result.removed), len(result.left)] == [1, 2, 0]


def test_what_no_comment_can_silence_is_left_with_the_reason() -> None:
    text = HEAD + 'x = DataLoader(a); y = """\n"""\nz = DataLoader(b)\n'
    result = ignored(text)
    assert result.text == text.replace("(b)", "(b)  # torchlint: ignore[TL101]")
    assert [(finding.start.row, reason.split(" ")[0]) for finding, reason in result.left] == [(3, "has")]
    broken = ignored(HEAD + "x = (\n")
    assert broken.text == HEAD + "x = (\n"
    assert [finding.code for finding, _ in broken.left] == ["TL000"]


@pytest.mark.parametrize(("fixture", "newline"), list(zip(every_file(), cycle(("\n", "\r\n")), strict=False)), ids=str)
def test_whatever_is_found_can_be_silenced(fixture: FixtureFile, newline: str) -> None:
    text = fixture.text.replace("\n", newline)
    check = partial(check_file, settings=fixture.settings, rules=rules(), target=fixture.target)
    result = add_ignores(fixture.source(text), check, KNOWN)
    again = fixture.check(result.text, chosen=rules())
    assert result.result.diagnostics == again.diagnostics == ()
    assert again.suppressed == len(fixture.by_all_rules.diagnostics)
    assert ast.dump(ast.parse(result.text)) == ast.dump(ast.parse(text))


def test_rows_that_can_end_with_a_comment() -> None:
    text = 'a = 1\nb = """\n"""\nc = \\\n  2\nd = (\n  3,\n)\nf"""{\n  a\n}"""\n'
    assert open_rows(text) == {1, 3, 5, 6, 7, 8, 11}
    assert open_rows("x = (") == set()
