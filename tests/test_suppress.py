"""Comments that silence findings: which are comments, what they name, which findings they silence."""

from __future__ import annotations

import pytest

from torchlint import suppress
from torchlint.diagnostic import Diagnostic, Position, Range, Severity
from torchlint.source import source_from_text
from torchlint.suppress import Outcome, apply

KNOWN = {"TL101": "dataloader-no-workers", "TL202": "item-in-loop", "TL301": "zero-grad-to-zero"}


def finding(row: int, code: str = "TL202", rows: tuple[int, ...] = ()) -> Diagnostic:
    place = Position(row, 1)
    return Diagnostic(code, "name", Severity.WARNING, "why", "a.py", Range(0, 0), place, place, row, None, rows)


def outcome(text: str, *findings: Diagnostic) -> Outcome:
    return apply(source_from_text(text, "a.py"), findings, set(KNOWN), KNOWN)


@pytest.mark.parametrize(
    "comment",
    [
        "# torchlint: ignore[TL202]",
        "# torchlint: ignore[TL202] it is read by the scheduler",
        "#torchlint:ignore[tl202]",
        "# torchlint: ignore[TL101, TL202]",
        "# torchlint: ignore[item-in-loop]",
        "# torchlint: ignore",
        "# type: ignore[x]  # torchlint: ignore[TL202]",
        "# noqa",
        "#NOQA",
        "# noqa: TL202",
        "# noqa:TL202",
        "# noqa: F401, TL202",
        "# noqa: F401 TL202 why",
        "# noqa: F401,tl202",
        "# pragma: no cover # noqa: TL202",
        "# noqa: F401  # noqa: TL202",
    ],
)
def test_a_comment_silences_the_finding_of_its_row(comment: str) -> None:
    result = outcome(f"x = 1\ny.item()  {comment}\n", finding(2), finding(1))
    assert result.kept == (finding(1),)
    assert result.suppressed == (finding(2),)
    assert result.warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        "y.item()  # noqa: F401",
        "y.item()  # torchlint: ignore[TL101]",
        "y.item()  # noqa: because",
        "y.item()  # noqable",
        "y.item('# noqa')",
        'y.item("""# torchlint: ignore[TL202]""")',
        "y.item('\\'# noqa')",
        "y.item(f'# noqa {x}')",
        "y.item(r'\\')  # ' # nothing",
        "y.item()  # say noqa to silence",
    ],
)
def test_what_is_no_suppression_of_it_silences_nothing(line: str) -> None:
    assert outcome(f"{line}\n", finding(1)).kept == (finding(1),)


def test_only_the_rows_of_a_finding_count() -> None:
    text = "f(\n  a,  # noqa\n  b.item(),\n)  # torchlint: ignore[TL202]\n"
    assert outcome(text, finding(3, rows=(1, 4))).suppressed
    assert outcome(text, finding(3, rows=(1, 3))).kept


def test_rows_are_those_of_python() -> None:
    assert outcome("a\rb\r\nc\x0cd\u2028  # noqa\n", finding(3)).suppressed


def test_torchfix_codes_mean_ours() -> None:
    assert outcome("DataLoader(d)  # noqa: TOR401\n", finding(1, "TL101")).suppressed
    assert outcome("o.zero_grad()  # noqa: TOR402\n", finding(1, "TL301")).suppressed
    assert outcome("o.zero_grad()  # noqa: TOR402\n", finding(1, "TL101")).kept


def test_a_file_can_be_skipped() -> None:
    result = outcome("# torchlint: skip-file\nx.item()\n", finding(2), finding(2, "TL000"))
    assert result.skip_file
    assert result.kept == ()
    assert len(result.suppressed) == 2


def test_a_syntax_error_is_not_silenced_by_a_row() -> None:
    assert outcome("x = (  # noqa\n", finding(1, "TL000")).kept


def test_our_unused_comments_are_told_with_their_range() -> None:
    text = "a  # torchlint: ignore[TL101, TL202] why\nb  # torchlint: ignore\nc  # noqa: TL101\n"
    unused = outcome(text, finding(1)).unused
    assert [(item.suppression.row, item.codes) for item in unused] == [(1, ("TL101",)), (2, ())]
    place = unused[0].suppression.range
    assert text[place.start : place.end] == "# torchlint: ignore[TL101, TL202]"


def test_comments_for_rules_that_did_not_run_are_not_called_unused() -> None:
    source = source_from_text("a  # torchlint: ignore[TL101]\n")
    assert apply(source, [], {"TL202"}, KNOWN).unused == ()


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# torchlint: ignore[TL999]", "unknown rule `TL999`"),
        ("# torchlint: ignore[item-in-lop]", "did you mean `item-in-loop`?"),
        ("# torchlint: ignored[TL101]", "did you mean `ignore`?"),
        ("# torchlint: skip_file", "did you mean `skip-file`?"),
        ("# torchlint: disable=TL101", "did you mean `ignore`?"),
        ("# torchlint: ignore[]", "names no rule"),
    ],
)
def test_mistakes_in_our_comments_are_warnings(comment: str, words: str) -> None:
    result = outcome(f"\nx.item()  {comment}\n", finding(2))
    assert result.kept == (finding(2),)
    (warning,) = result.warnings
    assert warning.startswith("a.py:2: ")
    assert words in warning


def test_foreign_comments_are_nobodys_business() -> None:
    result = outcome("a  # noqa: XYZ123\nb  # noqa: TL999\n")
    assert (result.unused, result.warnings) == ((), ())


def test_known_codes_are_those_of_the_rules_by_default() -> None:
    source = source_from_text("a  # torchlint: ignore[TL001]\nb  # torchlint: ignore[syntax-error]\n")
    assert apply(source, [], set()).warnings == ()


def test_a_text_without_comments_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(suppress, "find_suppressions")
    assert outcome("x = 'torchlint'\n", finding(1)).kept == (finding(1),)


@pytest.mark.parametrize("quotes", ["'''", '"""'])
@pytest.mark.parametrize("end", ["", "\\", "'", '"', "''"])
def test_strings_that_are_not_closed_are_read_once(quotes: str, end: str) -> None:
    body = "it's \\' \"so\" # torchlint: ignore\n" * 1000
    found = outcome(f"x = 1  # torchlint: ignore[TL202]\ny = {quotes}{body}{end}", finding(1), finding(3))
    assert [diagnostic.start.row for diagnostic in found.kept] == [3]
