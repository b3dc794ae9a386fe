"""A file whose suspect statements are parsed a few at a time shows what it shows as a whole."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.fixture_files import every_file
from torchlint.engine import file, suspects
from torchlint.engine.suspects import Suspects
from torchlint.registry import rules
from torchlint.semantics.model import Options, build_model
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.settings import Settings
from torchlint.source import source_from_text

BLOCK = """

def step{number}(n, d):
    a = torch.zeros(n).to("cuda")
    return a + d
"""
TEXT = "import torch\n" + "".join(BLOCK.format(number=number) for number in range(40))


def sizes(statements) -> int:
    return len(statements)


def counted(monkeypatch: pytest.MonkeyPatch, *, most: int) -> list[int]:
    """Let batches have this many rows at most, and return how many statements each has as they come."""
    seen: list[int] = []
    grafted = file._Check._on_batch

    def on_batch(self, drafted, rules, statements, is_one_of_several):
        seen.append(len(statements))
        return grafted(self, drafted, rules, statements, is_one_of_several)

    monkeypatch.setattr(file, "_MOST_ROWS", most)
    monkeypatch.setattr(file._Check, "_on_batch", on_batch)
    return seen


def test_many_suspect_statements_are_parsed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = file.check_file(source_from_text(TEXT), Settings(), rules(), UNKNOWN_TARGET, screened=False)
    seen = counted(monkeypatch, most=9)
    found = file.check_file(source_from_text(TEXT), Settings(), rules(), UNKNOWN_TARGET)
    assert found.diagnostics == whole.diagnostics
    assert len(found.diagnostics) >= 40
    assert seen == [3] * 13 + [1]


def test_so_it_is_for_the_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = counted(monkeypatch, most=1)
    several = 0
    for fixture in every_file()[::8]:
        seen.clear()
        arguments = (fixture.source(), fixture.settings, rules(), fixture.target)
        found, whole = file.check_file(*arguments), file.check_file(*arguments, screened=False)
        assert found.diagnostics == whole.diagnostics, fixture
        several += len(seen) > 1
    assert several > 10


def test_a_draft_that_is_filled_in_shows_what_the_whole_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = []
    on_filled = file._Check._on_filled

    def counting(self, drafted, model, found):
        diagnostics = on_filled(self, drafted, model, found)
        filled.append(diagnostics is not None)
        return diagnostics

    monkeypatch.setattr(file._Check, "_on_filled", counting)
    for fixture in every_file()[1::8]:
        arguments = (fixture.source(), fixture.settings, rules(), fixture.target)
        found, whole = file.check_file(*arguments), file.check_file(*arguments, screened=False)
        assert found.diagnostics == whole.diagnostics, fixture
    assert sum(filled) > 50


def test_what_found_something_on_the_draft_is_all_that_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    run_rule = suspects.run_rule

    def counting(rule, model, only=None):
        asked.append(None if only is None else len(only))
        return run_rule(rule, model, only)

    monkeypatch.setattr(suspects, "run_rule", counting)
    create_then_move = [rule for rule in rules() if rule.code == "TL201"]
    for text in (TEXT, "import torch\n" + BLOCK.format(number=0)):  # the one in parts, the other as a whole
        asked.clear()
        found = file.check_file(source_from_text(text), Settings(), create_then_move, UNKNOWN_TARGET)
        assert asked == [None, len(found.diagnostics)]


def test_a_tree_of_another_size_is_asked_everywhere() -> None:
    found = Suspects((), (), are_apart=True, places={"TL201": frozenset({1})}, size=2)
    model = build_model(cst.parse_module(TEXT), UNKNOWN_TARGET, Options())
    (rule,) = (rule for rule in rules() if rule.code == "TL201")
    assert found.nodes(rule, model) is None
    assert found._replace(size=len(model.tree.ordered)).nodes(rule, model) == [model.tree.ordered[1]]


def test_parts_that_share_a_statement_are_one() -> None:
    assert suspects._merged([{1}, {2, 3}, {4}, {3, 4}, {1}]) == [frozenset({1}), frozenset({2, 3, 4})]


def test_a_batch_holds_whole_parts_in_their_order() -> None:
    parts = (frozenset({7}), frozenset({1, 9}), frozenset({2}), frozenset({3, 4, 5}))
    found = Suspects((), parts, are_apart=True, places={}, size=0)
    batches = [sorted(batch) for batch in suspects.batches(found, sizes, 3)]
    assert batches == [[1, 2, 9], [3, 4, 5], [7]]
    assert [sorted(batch) for batch in suspects.batches(found, sizes, 1)] == [[1, 9], [2], [3, 4, 5], [7]]
