"""The index says what the rules say, and nothing once they say something else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchlint.registry import INDEX, index, rules, rules_of, words

ROOT = Path(__file__).parent.parent
CODE = "TL101"
LOADED = f"""
import sys
from torchlint.registry import rules_of, words
known = [(w.code, w.name, w.summary, w.documentation, w.default.value, w.in_tests) for w in words()]
before = "libcst" in sys.modules
(rule,) = rules_of(frozenset({{"{CODE}"}}))
modules = [name for name in sys.modules if name.startswith("torchlint.rules.") and name.count(".") == 3]
import json
print(json.dumps([known, before, rule.code, modules]))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return the folder of the rules of a copy of the package."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "torchlint", tmp_path / "torchlint", ignore=ignored)
    return tmp_path / "torchlint" / "rules"


def loaded(package: Path) -> tuple[list[list[object]], bool, str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=package.parent.parent, capture_output=True, text=True, check=True
    )
    known, before, code, modules = json.loads(done.stdout)
    return known, before, code, modules


def described() -> list[list[object]]:
    return [[r.code, r.name, r.summary, r.documentation, r.default.value, r.in_tests] for r in rules()]


def test_the_words_come_from_the_index_and_only_the_rules_asked_for_are_imported(package: Path) -> None:
    known, imported, code, modules = loaded(package)
    assert known == described()
    assert not imported
    assert code == CODE
    assert len(modules) == 1


def test_an_index_that_is_not_current_is_not_believed(package: Path) -> None:
    module = next(path for path in package.glob("*/*.py") if f'code="{CODE}"' in path.read_text(encoding="utf-8"))
    summary = next(rule.summary for rule in rules() if rule.code == CODE)
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace(f'summary="{summary}', f'summary="Now {summary}'), encoding="utf-8")
    known, imported, _, modules = loaded(package)
    assert next(row for row in known if row[0] == CODE)[2] == f"Now {summary}"
    assert imported
    assert len(modules) == len(rules())


def test_a_rule_that_the_index_does_not_know_is_found(package: Path) -> None:
    path = package / INDEX
    rows = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(rows[1:]), encoding="utf-8")
    assert loaded(package)[0] == described()


@pytest.mark.parametrize("text", ["", "{}", "[[]]", "[1]", '[["a", 1, 2]]', "[" * 100_000, None])
def test_a_broken_or_missing_index_costs_time_only(package: Path, text: str | None) -> None:
    if text is None:
        (package / INDEX).unlink()
    else:
        (package / INDEX).write_text(text, encoding="utf-8")
    assert loaded(package)[0] == described()


def test_rules_of_some_codes_are_those_of_all() -> None:
    codes = frozenset(rule.code for rule in rules()[::3])
    assert rules_of(codes) == rules()[::3]
    assert rules_of(frozenset()) == ()
    assert [word.code for word in words()] == [rule.code for rule in rules()]


def test_the_index_has_a_line_for_each_rule() -> None:
    assert len(index().splitlines()) == len(rules()) + 2
