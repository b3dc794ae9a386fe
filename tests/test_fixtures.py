"""Every rule against its fixtures, and every rule against everybody's fixtures.

``fixtures/<rule-name>/`` holds

* ``bad.py``: each line that is reported ends with ``# expect: TL201`` (several codes: ``# expect: TL201, TL202``; with
  the safety of the fix: ``# expect: TL201[unsafe]``, ``[safe]``, ``[display]``, ``[none]``). The mark stands on the row
  where the finding starts. The whole list of findings is compared: those of the default set and of the rule itself.
* ``fixed.py``: the exact text that all fixes, unsafe ones included, make of ``bad.py`` (without its marks).
* ``good.py``: near misses. Its own rule reports nothing; ``# silent: <id> - reason`` names the clause of each, and
  every clause of ``rule.silences`` has one. Marks of other rules' findings are allowed.
* ``edge_<what>.py``: more files like ``bad.py``, with ``fixed_<what>.py`` where the fix is of interest.
* ``equivalence.py``: see ``tests/torch/test_equivalence.py``.

Comments at the top of a file set options for it: ``# target-torch: 2.0``, ``# num-workers: 8``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

import libcst as cst
import pytest

from tests.fixture_files import (
    FixtureFile,
    every_file,
    fixture_files,
    folder,
    guarded_clauses,
    oldest_target,
    seen,
    switched_off,
    without_marks,
)
from torchlint.engine.file import check_file
from torchlint.engine.fix import fix_file
from torchlint.engine.suspects import run_rule
from torchlint.finding import Safety
from torchlint.registry import rules
from torchlint.rule import Example, Rule
from torchlint.semantics.model import Options, build_model
from torchlint.settings import Settings
from torchlint.source import source_from_text
from torchlint.syntax.draft import draft
from torchlint.syntax.draft.nodes import NoDraftError
from torchlint.syntax.parse import Parsed, parse

EVERY_RULE = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
EVERY_FILE = pytest.mark.parametrize("fixture", every_file(), ids=str)
MARKED = [file for file in fixture_files() if not file.path.name.startswith("fixed")]
FIXED = [file for file in fixture_files() if file.path.name.startswith("fixed")]
EXAMPLES = [(rule, example) for rule in rules() for example in rule.examples]


@EVERY_RULE
def test_folder_is_complete(rule: Rule) -> None:
    needed = {"bad.py", "good.py"} | ({"fixed.py", "equivalence.py"} if set(rule.fixes) - {Safety.DISPLAY} else set())
    assert needed <= {path.name for path in folder(rule).glob("*.py")}


@pytest.mark.parametrize("fixture", MARKED, ids=str)
def test_findings_are_those_marked(fixture: FixtureFile) -> None:
    result = fixture.check()
    assert not result.errors
    assert seen(result.diagnostics, fixture.expected) == fixture.expected


@pytest.mark.parametrize("fixture", fixture_files("bad.py"), ids=str)
def test_bad_fires(fixture: FixtureFile) -> None:
    assert fixture.rule
    assert fixture.rule.code in {mark.code for mark in fixture.expected}


@pytest.mark.parametrize("fixture", fixture_files("good.py"), ids=str)
def test_good_is_silent(fixture: FixtureFile) -> None:
    assert fixture.rule
    assert fixture.rule.code not in {mark.code for mark in fixture.expected}
    assert fixture.silent_ids == set(fixture.rule.silences)


@pytest.mark.parametrize("fixture", FIXED, ids=str)
def test_fix_gives_fixed(fixture: FixtureFile) -> None:
    before = fixture.path.with_name(re.sub("^fixed$", "bad", re.sub("^fixed_", "edge_", fixture.path.stem)) + ".py")
    assert FixtureFile(before, fixture.rule).fix() == fixture.text


@pytest.mark.parametrize(
    ("rule", "clause"),
    [(rule, clause) for rule in rules() for clause in sorted(guarded_clauses(rule))],
    ids=lambda value: getattr(value, "name", value),
)
def test_clause_is_needed(rule: Rule, clause: str) -> None:
    good = FixtureFile(folder(rule) / "good.py", rule)
    with switched_off(rule, clause):
        assert good.check(chosen=[rule]).diagnostics, f"good.py is silent without {clause!r} too"


@EVERY_FILE
def test_no_rule_fails_on_any_file(fixture: FixtureFile) -> None:
    assert not fixture.by_all_rules.errors


@EVERY_FILE
def test_fixing_is_idempotent_and_parses(fixture: FixtureFile) -> None:
    fixed = fixture.fixed_by_all_rules
    ast.parse(fixed)
    assert fixed == fixture.text or fixture.fix(fixed, chosen=rules()) == fixed


@EVERY_FILE
def test_neither_the_screen_nor_the_order_of_the_rules_changes_anything(fixture: FixtureFile) -> None:
    backwards = tuple(reversed(rules()))
    seen_by_all = check_file(fixture.source(), fixture.settings, backwards, fixture.target, screened=False)
    assert set(fixture.by_all_rules.diagnostics) == set(seen_by_all.diagnostics)


@EVERY_FILE
def test_a_draft_hides_nothing(fixture: FixtureFile) -> None:
    source = fixture.source()
    try:
        drafted = draft(source.text)
    except NoDraftError:
        return
    whole = parse(source)
    assert isinstance(whole, Parsed)
    on_draft, on_tree = (asked(module, fixture) for module in (drafted.module, whole.module))
    for code, places in on_tree.items():
        suspected = on_draft[code]
        assert suspected is None or places is None or not places - suspected, code


def asked(module: cst.Module, fixture: FixtureFile) -> dict[str, Counter[int] | None]:
    """Return in which top-level statements the nodes are that each rule finds something on; None where it fails."""
    model = build_model(module, fixture.target, Options(num_workers=fixture.settings.num_workers))
    indices = {id(statement): index for index, statement in enumerate(module.body)}
    found: dict[str, Counter[int] | None] = {}
    for rule in rules():
        try:
            nodes = [[node, *model.ancestors(node)] for node, _ in run_rule(rule, model)]
            found[rule.code] = Counter(indices.get(id(around[-2]), -1) if around[1:] else -1 for around in nodes)
        except Exception:  # a draft does not show enough, so that the whole tree is made
            found[rule.code] = None
    return found


@pytest.mark.parametrize("fixture", [file for file in MARKED if file.expected], ids=str)
def test_newlines_are_kept(fixture: FixtureFile) -> None:
    dos = fixture.text.replace("\n", "\r\n")
    here = [(d.code, d.start, d.end) for d in fixture.by_all_rules.diagnostics]
    assert [(d.code, d.start, d.end) for d in fixture.check(dos, chosen=rules()).diagnostics] == here
    if fixture.fixed_by_all_rules != fixture.text:
        assert fixture.fix(dos, chosen=rules()) == fixture.fixed_by_all_rules.replace("\n", "\r\n")


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda value: getattr(value, "name", "example"))
def test_example_does_what_it_says(rule: Rule, example: Example) -> None:
    source = source_from_text(example.bad, "example.py")
    result = check_file(source, Settings(), [rule], oldest_target(rule))
    assert [diagnostic.code for diagnostic in result.diagnostics] == [rule.code]
    fixed = fix_file(source, Settings(), [rule], oldest_target(rule), unsafe=True).text
    assert fixed == (example.good if example.good is not None else example.bad)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda value: getattr(value, "name", "example"))
def test_triggers_occur_in_example(rule: Rule, example: Example) -> None:
    words = set(re.findall(r"\w+", example.bad))
    assert all(group & words for group in rule.triggers.groups)


@pytest.mark.parametrize("fixture", MARKED, ids=str)
def test_fixes_say_why_in_sentences(fixture: FixtureFile) -> None:
    chosen = [fixture.rule] if fixture.rule else rules()
    fixes = [diagnostic.fix for diagnostic in fixture.check(chosen=chosen).diagnostics if diagnostic.fix]
    whys = {fix.why for fix in fixes if fix.why}
    assert [why for why in whys if why[0].islower() or not why.endswith(".")] == []
    assert [fix.message for fix in fixes if fix.message[0].islower() or fix.message.endswith(".")] == []


@EVERY_RULE
def test_fix_safeties_are_declared(rule: Rule) -> None:
    fixtures = [file for file in MARKED if file.rule is rule]
    found = {d.fix.safety for file in fixtures for d in file.check(chosen=[rule]).diagnostics if d.fix}
    declared = set(rule.fixes)
    assert declared <= found <= declared | {Safety.UNSAFE}, "a comment in the way can make any fix unsafe, nothing else"


def test_marks_are_taken_out() -> None:
    assert without_marks("x = 1  # expect: TL201[safe], TL202\r\ny\n") == "x = 1\r\ny\n"
