from __future__ import annotations

import ast

import pytest

import torchlint
from torchlint.harness.bench import select
from torchlint.harness.case import CaseError, Criterion, cases, control, parse_case
from torchlint.harness.program import fixed_program, torchlint_fixer
from torchlint.registry import rules


def test_every_rule_about_speed_has_its_case() -> None:
    claiming = [rule.code for rule in rules() if rule.code < "TL8" and rule.about_speed]
    assert claiming == [case.code for case in cases()]


def test_cases_have_the_names_of_their_rules() -> None:
    names = {rule.code: rule.name for rule in rules()}
    assert [case.name for case in cases() if names.get(case.code, case.name) != case.name] == []


@pytest.mark.parametrize("case", [*cases(), control()], ids=lambda case: case.code)
def test_programs_have_setup_and_step(case) -> None:  # type: ignore[no-untyped-def]
    for text in filter(None, (case.source, case.by_hand)):
        functions = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert {"setup", "step"} <= functions
    assert case.by_hand != case.source


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.code)
def test_programs_say_that_they_take_numpy(case) -> None:  # type: ignore[no-untyped-def]
    texts = filter(None, (case.source, case.by_hand))
    assert any("import numpy" in text for text in texts) == ("numpy" in case.needs)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.code)
def test_the_rule_finds_its_own_case_and_is_content_with_the_fixed_one(case) -> None:  # type: ignore[no-untyped-def]
    assert found(case.source, case.code)
    fixed = fixed_program(case, torchlint_fixer)
    assert fixed is not None
    assert not found(fixed.text, case.code)


def found(source: str, code: str) -> bool:
    return any(finding.code == code for finding in torchlint.check_source(source, select=[code]))


PROGRAM = '"""A program."""\n\nCASE = {}\n'


@pytest.mark.parametrize(
    ("declaration", "problem"),
    [
        ("{'code': 'TL999'}", "equal"),
        ("{'code': 'TL999', 'equal': 'roughly'}", "roughly"),
        ("{'code': 'TL999', 'equal': 'tolerance', 'why': 'rounding'}", "needs a tolerance"),
        ("{'code': 'TL999', 'equal': 'tolerance', 'tolerance': 0.1}", "must say why"),
        ("{'code': 'TL999', 'equal': 'bitwise', 'needs': 'luck'}", "unknown need 'luck'"),
        ("{'code': 'TL999', 'equal': 'bitwise', 'speed': 1}", "unknown entry 'speed'"),
    ],
)
def test_impossible_declarations_are_refused(declaration: str, problem: str) -> None:
    with pytest.raises(CaseError, match=problem):
        parse_case("some_rule", PROGRAM.replace("{}", declaration), None)


def test_a_program_without_declaration_is_refused() -> None:
    with pytest.raises(CaseError, match="no literal CASE"):
        parse_case("some_rule", "x = 1\n", None)


def test_a_declaration_is_read() -> None:
    case = parse_case("some_rule", PROGRAM.replace("{}", "{'code': 'TL999', 'equal': 'bitwise'}"), None)
    assert (case.code, case.name, case.title, case.criterion) == ("TL999", "some-rule", "A program.", Criterion.BITWISE)


def test_a_program_may_need_several_things() -> None:
    case = parse_case(
        "some_rule", PROGRAM.replace("{}", "{'code': 'TL9', 'equal': 'bitwise', 'needs': 'cuda numpy'}"), None
    )
    assert case.needs == ("cuda", "numpy")


def test_select_takes_codes_beginnings_and_names() -> None:
    chosen, unknown = select(cases(), ["tl4", "zero-grad-to-zero", "TL999"])
    assert [case.code for case in chosen] == ["TL301", *(c.code for c in cases() if c.code.startswith("TL4"))]
    assert "TL401" in [case.code for case in chosen]
    assert unknown == ["TL999"]
