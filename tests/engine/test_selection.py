"""Selectors: codes, prefixes, names, ALL."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.engine.selection import SelectionError, check_selector, holds_for, select
from torchlint.registry import rules
from torchlint.rule import Default, Family, Rule, Triggers
from torchlint.semantics.process.target import Target


def rule(code: str, name: str, default: Default = Default.ON) -> Rule:
    return Rule(
        code=code,
        name=name,
        family=Family.DATA,
        since="0",
        default=default,
        summary="",
        triggers=Triggers(()),
        examples=(),
        references=(),
        documentation="",
        silences={},
        checks={cst.Call: []},
    )


RULES = (
    rule("TL101", "one-worker"),
    rule("TL102", "unpinned", Default.ADVICE),
    rule("TL201", "create-then-move"),
    rule("TL203", "host-copy", Default.PREVIEW),
)
META = {"TL000", "TL001"}


def selected(
    chosen: str | None = None, extended: str = "", ignored: str = "", rules: tuple[Rule, ...] = RULES
) -> set[str]:
    words = None if chosen is None else tuple(chosen.split())
    return set(select(rules, chosen=words, extended=tuple(extended.split()), ignored=tuple(ignored.split())))


def test_the_default_set_is_what_is_on() -> None:
    assert selected() == META | {"TL101", "TL201"}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("ALL", {"TL101", "TL102", "TL201", "TL203"} | META),
        ("TL1", {"TL101", "TL102"}),
        ("TL102", {"TL102"}),
        ("host-copy", {"TL203"}),
        ("TL2 one-worker", {"TL101", "TL201", "TL203"}),
        ("TL", {"TL101", "TL102", "TL201", "TL203"} | META),
    ],
)
def test_selectors(chosen: str, expected: set[str]) -> None:
    assert selected(chosen) == expected


def test_extending_keeps_the_default_set() -> None:
    assert selected(extended="TL102") == META | {"TL101", "TL102", "TL201"}


def test_the_narrower_selector_wins() -> None:
    assert selected("ALL", ignored="TL1") == META | {"TL201", "TL203"}
    assert selected("TL101", ignored="TL1") == {"TL101"}
    assert selected("TL1", ignored="TL101") == {"TL102"}


def test_ignoring_wins_among_equals() -> None:
    assert selected("TL101", ignored="TL101") == set()
    assert selected("ALL", ignored="ALL") == set()


@pytest.mark.parametrize(
    ("selector", "hint"),
    [("TL999", "TL"), ("create-then-mve", "did you mean `create-then-move`?"), ("E501", "torchlint rules"), ("", "")],
)
def test_an_unknown_selector_is_an_error_with_a_hint(selector: str, hint: str) -> None:
    with pytest.raises(SelectionError, match="unknown rule") as error:
        select(RULES, chosen=(selector,), extended=(), ignored=())
    assert hint in str(error.value)


def test_a_rule_can_hold_for_some_versions_only() -> None:
    assert holds_for("", Target((1, 8), ""))
    assert holds_for(">=1.9", Target((2, 0), ""))
    assert holds_for("<2.10", Target((2, 9), ""))
    assert not holds_for(">=1.9", Target((1, 8), ""))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("TOR102", "unknown rule 'TOR102': TOR102 is of TorchFix; `TL805` finds what it does"),
        ("tor901", "unknown rule 'tor901': TOR901 is of TorchFix; no rule stands for it"),
        ("B614", "unknown rule 'B614': B614 is of Bandit; `TL805` finds what it does"),
        ("modern", "unknown rule 'modern'; `torchlint rules` lists them"),
    ],
)
def test_words_of_others_are_told(word: str, said: str) -> None:
    with pytest.raises(SelectionError) as error:
        check_selector(word, rules())
    assert str(error.value) == said
