"""What the pages for people claim is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from torchlint.cli.app import app
from torchlint.finding import Safety
from torchlint.registry import rules
from torchlint.rule import Default, Rule
from torchlint.suppress import TORCHFIX_CODES
from torchlint.version import __version__

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PATH = re.compile(r"`((?:torchlint|tests|fixtures|rules|docs)/[\w./-]+)`")
ROW = re.compile(r"\| \[(?P<code>TL\d{3})\]\((?P<page>[^)]+)\) \| (?P<name>\S+) \|.*\| (?P<fix>[^|]+) \|")

EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@EVERY_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert not [path for path in PATH.findall(text) if not (ROOT / path).exists()]


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.default is Default.ON], ids=lambda rule: rule.name)
def test_readme_lists_the_rule(rule: Rule) -> None:
    rows = {row["code"]: row for row in ROW.finditer((ROOT / "README.md").read_text(encoding="utf-8"))}
    row = rows[rule.code]
    assert (row["page"], row["name"]) == (f"rules/{rule.name}.md", rule.name)
    stated = {Safety(word) for word in re.findall(r"\b(?:safe|unsafe|display)\b", row["fix"])}
    assert stated == set(rule.fixes)


def test_readme_names_no_other_rules() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"TL\d{3}", text)) <= {rule.code for rule in rules()}


def test_hooks_run_commands_that_exist() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = [shlex.split(entry) for entry in re.findall(r"^  entry: (.*)$", text, flags=re.MULTILINE)]
    assert [entry[:2] for entry in entries] == [["torchlint", "check"], ["torchlint", "fix"]]
    for _, command, *options in entries:
        found = app.get_command(click.Context(app), command)
        assert found
        known = {name for parameter in found.params for name in parameter.opts}
        assert set(options) <= known


def test_changelog_names_the_version() -> None:
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("item", "default"),
    [
        ("Rules on by default", Default.ON),
        ("Rules in preview", Default.PREVIEW),
        ("Rules as advice, off unless selected", Default.ADVICE),
    ],
)
def test_changelog_lists_the_rules_as_they_are(item: str, default: Default) -> None:
    """Those of 8xx have a line of their own."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    listed = re.search(rf"^- {item}: (.*?)^- ", text, flags=re.MULTILINE | re.DOTALL)
    assert listed
    codes = [rule.code for rule in rules() if rule.default is default and not rule.code.startswith("TL8")]
    assert re.findall(r"TL\d{3}", listed[1]) == codes


def test_the_table_for_torchfix_users_is_the_one_in_force() -> None:
    text = (ROOT / "docs" / "for-torchfix-users.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| (TOR\d{3}),[^|]*\| \[(TL\d{3}) ", text, flags=re.MULTILINE))
    codes = {rule.code for rule in rules()}
    assert told == {theirs: ours for theirs, ours in TORCHFIX_CODES.items() if ours in codes}
