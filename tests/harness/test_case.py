from __future__ import annotations

import ast

import pytest

from torchlint.harness.bench import select
from torchlint.harness.case import CaseError, Criterion, cases, control, parse_case

FIRST_TWELVE = "TL101 TL102 TL201 TL202 TL205 TL301 TL302 TL401 TL501 TL601 TL605 TL701".split()


def test_the_first_twelve_are_there() -> None:
    assert set(FIRST_TWELVE) <= {case.code for case in cases()}


def test_cases_have_the_names_of_their_rules() -> None:
    from torchlint.registry import rules

    names = {rule.code: rule.name for rule in rules()}
    assert [case.name for case in cases() if names.get(case.code, case.name) != case.name] == []


@pytest.mark.parametrize("case", [*cases(), control()], ids=lambda case: case.code)
def test_programs_have_setup_and_step(case) -> None:  # type: ignore[no-untyped-def]
    for text in filter(None, (case.source, case.by_hand)):
        functions = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert {"setup", "step"} <= functions
    assert case.by_hand != case.source


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


def test_select_takes_codes_beginnings_and_names() -> None:
    chosen, unknown = select(cases(), ["tl6", "zero-grad-to-zero", "TL999"])
    assert [case.code for case in chosen] == ["TL301", "TL601", "TL605"]
    assert unknown == ["TL999"]
