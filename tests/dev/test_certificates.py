"""Certificates say what a search found, and that it is old when rule or search changed since."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint.dev.certificates import Certificate, digest, has_safe_fix, read, search_path, section, write
from torchlint.registry import rules
from torchlint.rule import Rule

ROOT = Path(__file__).parents[2]
SAFE = [rule for rule in rules() if has_safe_fix(rule)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder that holds the rules and their searches."""
    for folder in ("torchlint/rules", "tests/refute"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def certificate(root: Path, rule: Rule) -> Certificate:
    """Return a certificate that is current."""
    return Certificate(rule.code, 1200, 2000, {"values": 1200, "meta": 7}, 3, "2.13.0", digest(root, rule))


def test_certificates_are_of_rules_with_safe_fixes_and_of_enough_programs() -> None:
    found = read(ROOT)
    assert set(found) <= {rule.code for rule in SAFE}
    assert all(each.programs >= 1000 for each in found.values())


def test_every_rule_with_a_safe_fix_has_a_search() -> None:
    assert [rule.code for rule in SAFE if not (ROOT / search_path(rule)).exists()] == []


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "tests/refute").mkdir(parents=True)
    assert read(tmp_path) == {}
    found = {rule.code: certificate(ROOT, rule) for rule in SAFE}
    write(tmp_path, found)
    assert read(tmp_path) == found


def test_a_page_says_how_many_programs_there_were() -> None:
    rule = SAFE[0]
    text = section(ROOT, rule, certificate(ROOT, rule))
    assert "Safe fixes: 1,200 programs, 0 differences, seed 3, torch 2.13.0." in text
    assert "changed since" not in text
    assert f"make refute ARGS='--rule {rule.code}'" in text


def test_a_page_says_that_there_is_no_certificate(tmp_path: Path) -> None:
    text = section(ROOT, SAFE[0], None)
    assert "no search stands behind the word safe. `make refute" in text
    assert "nor is there one yet" in section(tmp_path, SAFE[0], None)


def test_a_rule_without_a_safe_fix_needs_none() -> None:
    others = [rule for rule in rules() if not has_safe_fix(rule)]
    assert {section(ROOT, rule, None) for rule in others} == {""}


def test_another_rule_or_search_makes_it_old(checkout: Path) -> None:
    rule = SAFE[0]
    old = certificate(checkout, rule)
    module = checkout / "torchlint/rules" / rule.family.value / f"{rule.name.replace('-', '_')}.py"
    for path in (module, checkout / search_path(rule)):
        text = path.read_text(encoding="utf-8")
        path.write_text(f"{text}\nMORE = 1\n", encoding="utf-8")
        assert "changed since" in section(checkout, rule, old)
        path.write_text(text, encoding="utf-8")
    assert "changed since" not in section(checkout, rule, old)


def test_other_words_do_not(checkout: Path) -> None:
    rule = SAFE[0]
    old = certificate(checkout, rule)
    path = checkout / search_path(rule)
    words, _, code = path.read_text(encoding="utf-8").partition("from __future__")
    path.write_text(f'"""Something else."""\n# a comment\nfrom __future__{code}', encoding="utf-8")
    assert words
    assert "changed since" not in section(checkout, rule, replace(old))


def test_a_helper_that_moves_to_another_module_leaves_it_current(checkout: Path) -> None:
    rule = SAFE[0]
    old = certificate(checkout, rule)
    module = checkout / "torchlint/rules" / rule.family.value / f"{rule.name.replace('-', '_')}.py"
    text = module.read_text(encoding="utf-8")
    assert "from torchlint.semantics." in text
    module.write_text(text.replace("from torchlint.semantics.", "from torchlint.elsewhere."), encoding="utf-8")
    assert digest(checkout, rule) == old.digest
