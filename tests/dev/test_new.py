"""Stubs of a new rule are a rule that passes the checks on rules."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from torchlint.dev.new import NewRuleError, next_code, write_stubs
from torchlint.registry import rules, validate
from torchlint.rule import Family


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "torchlint" / "rules" / "data").mkdir(parents=True)
    return tmp_path


def test_the_stub_is_a_valid_rule_that_fires_where_its_fixture_says(checkout: Path) -> None:
    written = write_stubs(checkout, Family.DATA, "slow-thing")
    module = checkout / "torchlint" / "rules" / "data" / "slow_thing.py"
    assert module in written
    spec = importlib.util.spec_from_file_location("slow_thing", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    validate(loaded.rule, "torchlint.rules.data.slow_thing")

    from torchlint.engine.file import check_file
    from torchlint.semantics.process.target import UNKNOWN_TARGET
    from torchlint.settings import Settings
    from torchlint.source import source_from_text

    bad = (checkout / "fixtures" / "slow-thing" / "bad.py").read_text()
    good = (checkout / "fixtures" / "slow-thing" / "good.py").read_text()
    found = [check_file(source_from_text(text), Settings(), [loaded.rule], UNKNOWN_TARGET) for text in (bad, good)]
    assert [len(result.diagnostics) for result in found] == [1, 0]
    assert f"# expect: {loaded.rule.code}" in bad.splitlines()[found[0].diagnostics[0].start.row - 1]


def test_codes_are_the_first_free_of_the_family() -> None:
    taken = {rule.code for rule in rules()}
    assert next_code(Family.DATA, taken | {"TL101"}) not in taken
    assert next_code(Family.MODERN, {"TL801"}) == "TL802"


@pytest.mark.parametrize("name", ["Slow", "slow_thing", "slow--thing", "", "../slow"])
def test_a_malformed_name_is_refused(checkout: Path, name: str) -> None:
    with pytest.raises(NewRuleError, match="no rule name"):
        write_stubs(checkout, Family.DATA, name)


def test_nothing_is_overwritten(checkout: Path) -> None:
    write_stubs(checkout, Family.DATA, "slow-thing")
    with pytest.raises(NewRuleError, match="already"):
        write_stubs(checkout, Family.DATA, "slow-thing")


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NewRuleError, match="checkout"):
        write_stubs(tmp_path, Family.DATA, "slow-thing")
