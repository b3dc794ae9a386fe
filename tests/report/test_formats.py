"""Every output format over the same small report."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest

from torchlint.diagnostic import Diagnostic, Position, Range, Severity, TextEdit, TextFix
from torchlint.engine.result import Excerpts, FileResult, Problem, Status
from torchlint.report import summary
from torchlint.report.data import Report, RuleInfo
from torchlint.report.formats import FORMATS, MACHINE_FORMATS, machine_format, text_format
from torchlint.report.styled import plain, show
from torchlint.safety import Safety

LINE = "x = torch.zeros(3).cuda()"
FIX = TextFix("Pass `device=`", (TextEdit(Range(16, 25), ', device="cuda")'),), Safety.SAFE)
UNSAFE = TextFix(
    "Pass `num_workers=4`", (TextEdit(Range(16, 16), ", num_workers=4"),), Safety.UNSAFE, "Workers pickle."
)


def diagnostic(
    path: str = "a b/train.py", *, fix: TextFix | None = FIX, message: str = "Made on the CPU."
) -> Diagnostic:
    return Diagnostic(
        "TL201",
        "create-then-move",
        Severity.WARNING,
        message,
        path,
        Range(4, 25),
        Position(1, 5),
        Position(1, 26),
        1,
        fix,
    )


def report(*diagnostics: Diagnostic, status: Status = Status.CHECKED, line: str = LINE) -> Report:
    excerpts = Excerpts({1: line}, {16: Position(1, 17), 25: Position(1, 26)})
    path = diagnostics[0].path if diagnostics else "train.py"
    result = FileResult(path, status, diagnostics, excerpts=excerpts)
    rules = {"TL201": RuleInfo("TL201", "create-then-move", "A tensor is made and moved", "Page.")}
    return Report((result,), "1.2.3", "/project", rules, {"1.8 (assumed)": 1}, "train.py")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_an_empty_and_a_full_report(name: str) -> None:
    for each in (report(), report(diagnostic(), diagnostic(fix=UNSAFE), diagnostic(fix=None))):
        if name in MACHINE_FORMATS:
            assert isinstance(machine_format(name)(each), str)
        else:
            assert isinstance(plain(text_format(name)(each)), str)


def test_full_underlines_the_spot() -> None:
    text = plain(text_format("full")(report(diagnostic())))
    assert text.splitlines() == [
        "a b/train.py:1:5: TL201 create-then-move",
        "  |",
        "1 | x = torch.zeros(3).cuda()",
        "  |     ^^^^^^^^^^^^^^^^^^^^^",
        "  = Made on the CPU.",
        "  = safe fix: Pass `device=`",
        "",
    ]


def test_full_says_why_a_fix_is_unsafe() -> None:
    assert "  = unsafe fix: Pass `num_workers=4` (Workers pickle)" in plain(
        text_format("full")(report(diagnostic(fix=UNSAFE)))
    )


def test_tabs_wide_and_control_characters_keep_the_underline_in_place() -> None:
    text = plain(text_format("full")(report(diagnostic(), line="\t漢\x1b= torch.zeros(3).cuda()")))
    _, marks = text.splitlines()[2:4]
    assert "\x1b" not in text
    assert marks.index("^") == len("1 |     ") + 3 + 1 + 0  # the tab, the wide character and the escape come before


def test_concise_is_one_line_per_finding() -> None:
    text = plain(text_format("concise")(report(diagnostic(), diagnostic(fix=UNSAFE), diagnostic(fix=None))))
    assert text.splitlines() == [
        "a b/train.py:1:5: TL201 [*] Made on the CPU.",
        "a b/train.py:1:5: TL201 [unsafe fix] Made on the CPU.",
        "a b/train.py:1:5: TL201 Made on the CPU.",
    ]


def test_grouped_puts_findings_under_their_file() -> None:
    assert plain(text_format("grouped")(report(diagnostic()))) == (
        "a b/train.py:\n  1:5  TL201 [*] Made on the CPU.\n\n"
    )


def test_json_has_the_shape_of_ruff() -> None:
    (entry,) = json.loads(machine_format("json")(report(diagnostic())))
    assert entry == {
        "code": "TL201",
        "name": "create-then-move",
        "severity": "warning",
        "message": "Made on the CPU.",
        "filename": "/project/a b/train.py",
        "location": {"row": 1, "column": 5},
        "end_location": {"row": 1, "column": 26},
        "noqa_row": 1,
        "fix": {
            "applicability": "safe",
            "message": "Pass `device=`",
            "why": None,
            "edits": [
                {
                    "content": ', device="cuda")',
                    "location": {"row": 1, "column": 17},
                    "end_location": {"row": 1, "column": 26},
                }
            ],
        },
        "url": None,
        "cell": None,
    }
    assert json.loads(machine_format("json")(report())) == []


def test_json_lines_holds_one_object_per_line() -> None:
    lines = machine_format("json-lines")(report(diagnostic(), diagnostic(fix=None))).splitlines()
    assert [json.loads(line)["code"] for line in lines] == ["TL201", "TL201"]


def test_sarif_has_relative_encoded_paths_fixes_and_rules() -> None:
    run = json.loads(machine_format("sarif")(report(diagnostic())))["runs"][0]
    (result,) = run["results"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "TL201"
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "a%20b/train.py"
    assert location["region"] == {"startLine": 1, "startColumn": 5, "endLine": 1, "endColumn": 26}
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == ', device="cuda")'


def test_github_escapes_what_would_end_the_command() -> None:
    text = machine_format("github")(report(diagnostic("a,b:c.py", message="100% a\nb::c")))
    assert text == (
        "::warning file=a%2Cb%3Ac.py,line=1,col=5,endColumn=26,endLine=1,title=torchlint TL201 create-then-move"
        "::a,b:c.py:1:5: TL201 100%25 a%0Ab::c\n"
    )


def test_gitlab_fingerprints_differ_for_equal_findings() -> None:
    entries = json.loads(machine_format("gitlab")(report(diagnostic(), diagnostic())))
    assert len({entry["fingerprint"] for entry in entries}) == 2
    assert entries[0]["location"]["path"] == "a b/train.py"


def test_junit_is_xml_whatever_the_names() -> None:
    text = machine_format("junit")(report(diagnostic('<script>"&.py', message="a < b & \x00")))
    suites = ElementTree.fromstring(text)
    (suite,) = suites
    assert suite.get("name") == '<script>"&.py'
    assert suites.get("failures") == "1"
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "a < b & \N{REPLACEMENT CHARACTER}" in (failure.get("message") or "")


def test_services_hear_of_files_that_could_not_be_checked() -> None:
    bad = FileResult("b,c.py", Status.FAILED, errors=(Problem("b,c.py", "it is not UTF-8"),))
    each = report(diagnostic())
    each = Report((*each.results, bad), each.version, each.root, each.rules, each.targets, each.command)
    suites = ElementTree.fromstring(machine_format("junit")(each))
    assert [suites.get(name) for name in ("tests", "failures", "errors")] == ["2", "1", "1"]
    assert [error.text for error in suites.iter("error")] == ["b,c.py: it is not UTF-8"]
    github = machine_format("github")(each).splitlines()[-1]
    assert github == "::error file=b%2Cc.py,title=torchlint::b,c.py: it is not UTF-8"
    azure = machine_format("azure")(each).splitlines()[-1]
    assert azure == "##vso[task.logissue type=error;sourcepath=b,c.py;]it is not UTF-8"
    reported = json.loads(machine_format("rdjson")(each))["diagnostics"][-1]
    assert reported == {"message": "it is not UTF-8", "severity": "ERROR", "location": {"path": "b,c.py"}}


def test_pylint_and_azure_name_path_and_code() -> None:
    each = report(diagnostic())
    assert machine_format("pylint")(each) == "a b/train.py:1: [TL201(create-then-move)] Made on the CPU.\n"
    assert machine_format("azure")(each) == (
        "##vso[task.logissue type=warning;sourcepath=a b/train.py;linenumber=1;columnnumber=5;code=TL201;]"
        "Made on the CPU.\n"
    )


def test_rdjson_counts_columns_in_bytes() -> None:
    data = json.loads(machine_format("rdjson")(report(diagnostic(), line="é = torch.zeros(3).cuda()")))
    place = data["diagnostics"][0]["location"]["range"]["start"]
    assert place == {"line": 1, "column": 6}
    assert data["diagnostics"][0]["suggestions"][0]["text"] == ', device="cuda")'


def lines_of(each: Report) -> list[str]:
    return plain(summary.lines(each)).splitlines()


def test_the_summary_says_what_to_do_next() -> None:
    assert lines_of(report(diagnostic(), diagnostic(fix=UNSAFE))) == [
        "Found 2 findings in 1 file.",
        "Checked 1 file, 1 of which uses torch; target torch 1.8 (assumed).",
        "  2  TL201 create-then-move",
        "Fixable: 1 safely, 1 more with --unsafe-fixes.",
        "Next: torchlint fix train.py  shows the safe fixes as a diff",
    ]
    assert lines_of(report(diagnostic(fix=UNSAFE)))[-1].startswith("Next: torchlint fix --unsafe-fixes train.py")
    assert lines_of(report(diagnostic(fix=None)))[-1].startswith("Next: torchlint rules TL201")


def test_the_summary_of_nothing() -> None:
    assert lines_of(report())[0] == "All checks passed."
    assert lines_of(report(status=Status.NO_TORCH))[0] == "No torch here: nothing to check."


def test_the_summary_does_not_praise_a_run_with_problems() -> None:
    broken = FileResult("a.py", Status.FAILED, errors=(Problem("a.py", "cannot be read"),))
    text = lines_of(Report((broken,), "1", "/"))
    assert "All checks passed." not in text


def test_statistics_count_by_rule() -> None:
    each = report(diagnostic(), diagnostic())
    assert plain(summary.statistics(each)) == "2  TL201  [*] create-then-move\n"
    assert json.loads(summary.statistics_json(each)) == [
        {"code": "TL201", "name": "create-then-move", "count": 2, "fixable": True}
    ]


def shown(each: Report) -> Iterator[str]:
    from rich.console import Console

    console = Console(force_terminal=True, width=60, record=True, file=io.StringIO())
    show(text_format("full")(each), console)
    return iter(console.export_text().splitlines())


def test_colours_change_no_text() -> None:
    each = report(diagnostic(message="word " * 40))
    assert " ".join(" ".join(shown(each)).split()) == " ".join(plain(text_format("full")(each)).split())
    assert all(len(line.rstrip()) <= 60 for line in shown(each))
