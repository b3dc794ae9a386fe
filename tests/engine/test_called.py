"""Checks that ask for the calls by certain names, or in certain files only, miss none that they would report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst
import pytest

from tests.fixture_files import FixtureFile, every_file
from torchlint.engine.suspects import run_rule
from torchlint.finding import Finding
from torchlint.registry import rules
from torchlint.rule import Rule
from torchlint.semantics.model import Model, Options, build_model
from torchlint.semantics.process.target import UNKNOWN_TARGET

ASKING = [rule for rule in rules() if rule.called or rule.conditions]
ALIASED = """
import functools
import torch
import torch as t
import torch.nn.functional as F
from torch import load as read, tensor
from torch.nn.functional import softmax as normalise
from torch.optim import *

other = torch.load
late = functools.partial(torch.load, "a.pt")
Numbers = torch.Tensor


def all_of_them(model, x: torch.Tensor):
    found = [read("a.pt"), other("b.pt"), t.load("c.pt"), late()]
    found += [normalise(x), F.softmax(x), Adam(model.parameters()), Numbers(3), tensor(x), x.relu().log()]
    return found
"""


def place(rule: Rule, model: Model) -> list[int]:
    """Return where the rule fires, in document order."""
    return sorted(model.order(finding.owner or finding.node) for _, finding in run_rule(rule, model))


def compare(text: str) -> int:
    """Demand that each rule fires where it fires without its names and conditions, and return how often it does."""
    model = build_model(cst.parse_module(text), UNKNOWN_TARGET, Options())
    total = 0
    for rule in ASKING:
        asked = place(rule, model)
        assert asked == place(replace(rule, called={}, conditions={}), model), rule.code
        total += len(asked)
    return total


@pytest.mark.parametrize("file", every_file(), ids=str)
def test_names_and_conditions_hide_nothing_in_the_fixtures(file: FixtureFile) -> None:
    try:
        compare(file.path.read_text(encoding="utf-8"))
    except cst.ParserSyntaxError:
        pytest.fail("a fixture does not parse")


def test_other_names_for_a_function_hide_nothing() -> None:
    assert compare(ALIASED) >= 8


def test_a_check_is_spared_the_files_that_do_not_meet_its_condition() -> None:
    rule = replace(rules()[0], checks={}, called={}, conditions={})
    asked: list[str] = []

    @rule.check(cst.Name, condition=lambda model: model.mentions("wanted"))
    def check(node: cst.Name, model: Model) -> Iterator[Finding]:
        asked.append(node.value)
        yield from ()

    for text in ("x = other\n", "y = wanted\n"):
        list(run_rule(rule, build_model(cst.parse_module(text), UNKNOWN_TARGET, Options())))
    assert asked == ["y", "wanted"]
