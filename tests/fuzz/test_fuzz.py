"""The fuzzing program itself: mutations give texts, and what is wrong is reported in its smallest form."""

from __future__ import annotations

import ast
import random

import pytest

from tests.corpus.judge import Verdict
from tests.fuzz import run
from tests.fuzz.mutations import MUTATIONS, Choice, Mutation, mutated
from torchlint.source import Source

TEXT = "import torch\n\nfor x, y in loader:\n    loss = model(x.cuda(), 1)\n    print(loss.item())\n"


def choices(seed: int) -> Choice:
    generator = random.Random(seed)
    return Choice(lambda strategy: generator.randint(0, 10**6) % 97)


@pytest.fixture
def few_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose without hypothesis, which gives no examples outside of a test of its own."""
    monkeypatch.setattr(Choice, "below", lambda self, count: int(str(self._draw(count))) % max(1, count))


@pytest.mark.usefixtures("few_choices")
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_changes_the_text_and_bears_any(mutation: Mutation) -> None:
    assert any(mutation(TEXT, choices(seed)) != TEXT for seed in range(9))
    for text in ("", "\n", "x", "(((", "'''", "\r\n\r\n", "ä = 1\n"):
        for seed in range(5):
            mutation(text, choices(seed))


@pytest.mark.usefixtures("few_choices")
def test_many_mutated_texts_are_still_python() -> None:
    parsed = 0
    for seed in range(100):
        try:
            ast.parse(mutated(TEXT, choices(seed)))
        except (SyntaxError, ValueError):
            continue
        parsed += 1
    assert parsed > 30


def test_nothing_is_wrong_with_a_few(capsys: pytest.CaptureFixture[str]) -> None:
    tally = run.run_chunk(0, bases=[("a.py", TEXT, True)], examples=10, start=0)
    assert tally.failures == []
    assert tally.inputs >= 10
    assert run.report([tally]) in {run.OK, run.INCOMPLETE}
    assert "10 inputs" in capsys.readouterr().out


def test_what_is_wrong_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrongs(source: Source) -> tuple[Verdict, list[str]]:
        return Verdict(str(source.path)), ["planted"] if "torch" in source.text else []

    monkeypatch.setattr(run, "wrongs", wrongs)
    tally = run.run_chunk(0, bases=[("a.py", TEXT, True)], examples=20, start=0)
    assert len(tally.failures) == 1
    assert tally.failures[0].startswith("a.py: planted\n")
    assert run.report([tally]) == run.WRONG
    assert "1 failures" in capsys.readouterr().out


def test_too_few_findings_are_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.report([run.Tally(inputs=100, before=80, after=5)]) == run.INCOMPLETE
    assert run.report([run.Tally(inputs=100, before=80, after=30)]) == run.OK
