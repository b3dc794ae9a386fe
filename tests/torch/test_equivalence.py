"""Programs before and after the fix, side by side.

``fixtures/<rule-name>/equivalence.py`` holds ``cases``, a tuple of ``tests.torch.equivalence.Case``. A case is a
program that defines ``run(device, ...)``; its other side is what torchlint's own fixer makes of it. Both run

* on CPU tensors, where values, dtypes and the state of the random number generator must agree,
* on meta tensors with autograd, where shape, dtype, stride, leaf, ``requires_grad`` and shared storage must agree,
* under ``FakeTensorMode`` with CUDA devices, where the device and its index must agree too (programs that record a
  graph take a real one),
* and on a GPU where there is one.

A case without ``may_differ`` demands that all its fixes are safe. What a case says may differ must be seen to differ.
"""

from __future__ import annotations

import importlib.util
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tests.fixture_files import FIXTURES, parse_target
from tests.torch.compare import differences
from tests.torch.equivalence import Case, May
from tests.torch.runner import places, run
from tests.torch.stand_in import REAL_CUDA, VALUES
from torchlint.engine.file import check_file
from torchlint.engine.fix import fix_file
from torchlint.finding import Safety
from torchlint.registry import rules
from torchlint.rule import Rule
from torchlint.settings import Settings
from torchlint.source import source_from_text


@dataclass(frozen=True)
class Sides:
    """A case with the program that the fixer makes of it."""

    rule: Rule
    case: Case

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.case.name}"

    @property
    def before(self) -> str:
        return textwrap.dedent(self.case.source).strip() + "\n"

    @property
    def after(self) -> str:
        source, target = source_from_text(self.before, "case.py"), parse_target(self.case.target_torch)
        return fix_file(source, Settings(), [self.rule], target, unsafe=True).text

    @property
    def safeties(self) -> set[Safety]:
        source, target = source_from_text(self.before, "case.py"), parse_target(self.case.target_torch)
        return {d.fix.safety for d in check_file(source, Settings(), [self.rule], target).diagnostics if d.fix}


def torch_version() -> tuple[int, int]:
    """Return the major and minor version of the torch that is installed."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def load_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of one `equivalence.py`."""
    spec = importlib.util.spec_from_file_location(f"equivalence_{path.parent.name.replace('-', '_')}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tuple(module.cases)


def all_sides() -> list[Sides]:
    """Return the cases of all rules."""
    found = [(rule, FIXTURES / rule.name / "equivalence.py") for rule in rules()]
    return [Sides(rule, case) for rule, path in found if path.exists() for case in load_cases(path)]


@pytest.mark.parametrize("sides", all_sides(), ids=str)
def test_fix_changes_nothing_else(sides: Sides) -> None:
    case, before, after = sides.case, sides.before, sides.after
    assert before != after, "the fixer changes nothing"
    if case.removed_in and torch_version() >= case.removed_in:
        pytest.skip(f"torch {torch.__version__} has not got what the original calls")
    if not case.may_differ:
        assert sides.safeties == ({Safety.SAFE} if not case.unsafe_for else {Safety.UNSAFE})
    seen: set[May] = set()
    for number in range(len(case.inputs(torch.device("cpu")))):
        saw_gradients = False
        for place in [VALUES, *places(case, run(before, VALUES, case, number)[1])]:
            outcome, recorded = run(before, place, case, number)
            saw_gradients |= recorded
            found = differences(outcome, run(after, place, case, number)[0], case.tolerance)
            allowed = case.may_differ | (case.may_differ_on_gpu if place is REAL_CUDA else set())
            unexpected = [f"{what.value}: {text}" for what, text in found if what not in allowed]
            assert not unexpected, f"inputs {number} on {place.name}: " + "; ".join(unexpected)
            seen |= {what for what, _ in found}
    unseen = set(case.may_differ) - seen - ({May.VALUES} if case.tolerance else set())
    assert not unseen, f"never differs: {sorted(what.value for what in unseen)}"


@pytest.mark.parametrize(
    "rule", [rule for rule in rules() if set(rule.fixes) - {Safety.DISPLAY}], ids=lambda rule: rule.name
)
def test_each_safety_has_a_case(rule: Rule) -> None:
    found = set().union(*(sides.safeties for sides in all_sides() if sides.rule is rule))
    assert set(rule.fixes) - {Safety.DISPLAY} <= found
