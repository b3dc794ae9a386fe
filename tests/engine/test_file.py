"""One file: what the screen leaves out is never a finding, and no rule takes the others down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import libcst as cst
import pytest

from torchlint.diagnostic import Diagnostic
from torchlint.engine.file import check_file
from torchlint.engine.result import FileResult, Status
from torchlint.finding import Finding
from torchlint.registry import rules
from torchlint.rule import Default, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.settings import Settings
from torchlint.source import read_source, source_from_text

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.py"))


def check(text: str, *enabled: Rule, settings: Settings | None = None) -> FileResult:
    return check_file(source_from_text(text, "a.py"), settings or Settings(), enabled, UNKNOWN_TARGET)


def rule_for_names(code: str = "TL901", error: BaseException | None = None, torch: str = "") -> Rule:
    rule = Rule(
        code=code,
        name=code.lower(),
        family=Family.HYGIENE,
        since="0",
        default=Default.ON,
        summary="",
        triggers=Triggers.all_of("wanted"),
        examples=(),
        references=(),
        documentation="",
        silences={},
        torch=torch,
    )

    @rule.check(cst.Name)
    def found(node: cst.CSTNode, model: Model) -> Iterator[Finding]:
        if isinstance(node, cst.Name) and node.value == "wanted":
            if error is not None:
                raise error
            yield Finding(node, "It is there.")

    return rule


def codes(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    return [diagnostic.code for diagnostic in diagnostics]


def test_where_nothing_is_found_the_draft_is_enough() -> None:
    results = [check_file(read_source(str(path)), Settings(), rules(), UNKNOWN_TARGET) for path in FIXTURES[::3]]
    silent = [result for result in results if not result.diagnostics and "draft" in result.timings]
    assert sum("parse" not in result.timings for result in silent) > 0.8 * len(silent) > 20


def test_a_draft_that_shows_too_little_hides_nothing() -> None:
    text = "import torch\nmatch torch:\n    case wanted: pass\n"
    assert codes(check(text, rule_for_names()).diagnostics) == ["TL901"]


def test_wide_letters_hide_nothing() -> None:
    wanted = "".join(chr(ord(letter) + 0xFEE0) for letter in "wanted")
    assert check(f"import torch\n{wanted}\n", rule_for_names()).status is Status.CHECKED


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError(), MemoryError(), AssertionError("a\nb")])
def test_an_error_in_a_rule_costs_its_findings_only(error: Exception) -> None:
    result = check("import torch\nwanted\n", rule_for_names("TL901", error), rule_for_names("TL902"))
    assert codes(result.diagnostics) == ["TL902"]
    (problem,) = result.errors
    assert str(problem).startswith("a.py: internal error in rule TL901 tl901: ")
    assert "\n" not in str(problem)
    assert "Traceback" in problem.details


def test_a_finding_that_has_no_place_costs_its_rule_only() -> None:
    lost = rule_for_names("TL901")
    lost = replace(lost, checks={cst.Name: [lambda node, model: iter([Finding(cst.Name("elsewhere"), "Lost.")])]})
    result = check("import torch\nwanted\n", lost, rule_for_names("TL902"))
    assert codes(result.diagnostics) == ["TL902"]
    assert [problem.message.partition(":")[0] for problem in result.errors] == ["no place for what TL901 finds"]


def test_a_rule_that_holds_for_other_versions_is_not_asked() -> None:
    assert check("import torch\nwanted\n", rule_for_names(torch=">=1.9")).diagnostics == ()
    assert codes(check("import torch\nwanted\n", rule_for_names(torch="<1.9")).diagnostics) == ["TL901"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", Status.NO_TORCH),
        ("wanted = 1\n", Status.NO_TORCH),
        ("import torch\n", Status.SCREENED),
        ("import torch\nwanted\n", Status.CHECKED),
        ("import torch\nwanted  # torchlint: skip-file\n", Status.SKIPPED),
    ],
)
def test_how_far_a_file_comes(text: str, status: Status) -> None:
    assert check(text, rule_for_names()).status is status


def test_a_syntax_error_is_found_even_where_nothing_else_could_be() -> None:
    for text in ("import torch\nx = (\n", "x = (\n"):
        result = check(text, rule_for_names())
        assert codes(result.diagnostics) == ["TL000"]
        assert result.excerpts.lines


def test_findings_are_sorted_by_place() -> None:
    result = check("import torch\nwanted\nwanted\n", rule_for_names("TL902"), rule_for_names("TL901"))
    places = [(diagnostic.start.row, diagnostic.code) for diagnostic in result.diagnostics]
    assert places == [(2, "TL901"), (2, "TL902"), (3, "TL901"), (3, "TL902")]


def test_unused_suppressions_are_found_where_their_rule_was_asked() -> None:
    text = "import torch\nx = 1  # torchlint: ignore[TL601]\n"
    anomaly = next(rule for rule in rules() if rule.code == "TL601")
    assert codes(check(text, anomaly).diagnostics) == ["TL001"]
    assert codes(check(text, rule_for_names()).diagnostics) == []
    assert codes(check(text, anomaly, settings=Settings(ignore=("TL001",))).diagnostics) == []
    assert codes(check(text, anomaly, settings=Settings(select=("TL601",))).diagnostics) == []


OLD = """\
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(2, 2).cuda()
for x, y in DataLoader(data, num_workers=2, pin_memory=True):
    y = y.cuda(async=True)
    x = x.cuda()
    loss = model(x, async=False).sum()
    print(loss.item())
    loss.backward()
"""


def test_a_file_of_old_python_is_looked_at_and_not_fixed() -> None:
    found = check_file(source_from_text(OLD), Settings(), rules(), UNKNOWN_TARGET).diagnostics
    rows = [(d.code, d.start.row) for d in found]
    assert ("TL000", 5) in rows
    assert ("TL205", 6) in rows
    assert ("TL205", 5) not in rows  # it does not block
    assert ("TL202", 8) in rows
    assert all(d.fix is None for d in found)
    assert not any("Async" in d.message for d in found)
    assert "non_blocking" in next(d.message for d in found if d.code == "TL000")


def test_old_python_beside_another_mistake_is_only_a_mistake() -> None:
    found = check_file(source_from_text(OLD + "print 'done'\n"), Settings(), rules(), UNKNOWN_TARGET).diagnostics
    assert [d.code for d in found] == ["TL000"]
    assert found[0].message.endswith("nothing else was looked for in this file.")
