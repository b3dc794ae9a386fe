"""Every module under ``torchlint/rules`` found once, duplicates refused; by an index, without importing it."""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple

import torchlint.rules
from torchlint.rule import Default, Family, Rule, RuleWords
from torchlint.syntax.lean_libcst import import_libcst

_CODE = re.compile(r"TL\d{3}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_QUOTES = '"""'
REQUIRED_SECTIONS = ("## Why it costs", "## What to write instead", "## When to ignore it")
FAMILY_DIGITS = {family: str(digit) for digit, family in enumerate(Family, start=1)}


INDEX = "index.json"
"""The file beside the rules that says what they are called: to import all of them takes as long as to check a file."""


class RuleError(Exception):
    """A rule is not well formed."""


class RuleCard(NamedTuple):
    """The words of a rule that need not be imported; ``path`` and ``size`` are those of its module."""

    path: str
    """Below the folder of the rules, with slashes."""

    size: int
    """In bytes: of a module that has changed the index says nothing."""

    code: str
    name: str
    summary: str
    default: Default
    in_tests: bool

    @property
    def rule(self) -> Rule:
        """Return the rule itself, for which its module is imported."""
        return _imported("torchlint.rules." + self.path.removesuffix(".py").replace("/", "."))

    @property
    def documentation(self) -> str:
        """Return the rule's page, the docstring with which its module begins."""
        with open(os.path.join(_folder(), self.path), encoding="utf-8") as file:
            text = file.read()
        return str(ast.literal_eval(text[: text.index(_QUOTES, len(_QUOTES)) + len(_QUOTES)]))


def validate(rule: Rule, module_name: str) -> None:
    """Raise RuleError unless the rule's words agree with its place."""
    package, _, stem = module_name.rpartition(".")
    problems = []
    if not _CODE.fullmatch(rule.code):
        problems.append(f"code {rule.code!r} is not TL followed by three digits")
    if not _NAME.fullmatch(rule.name) or rule.name.replace("-", "_") != stem:
        problems.append(f"name {rule.name!r} does not match the file {stem}.py")
    if package.rpartition(".")[2] != rule.family.value:
        problems.append(f"family {rule.family.value!r} does not match the folder")
    if rule.code[2:3] != FAMILY_DIGITS[rule.family]:
        problems.append(f"code {rule.code} is not in the hundreds of family {rule.family.value!r}")
    problems += [
        f"the docstring lacks {section!r}" for section in REQUIRED_SECTIONS if section not in rule.documentation
    ]
    if not rule.examples:
        problems.append("there is no example")
    if not rule.references:
        problems.append("there is no reference")
    if not rule.checks:
        problems.append("there is no check")
    if problems:
        raise RuleError(f"{module_name}: " + "; ".join(problems))


@cache
def rules() -> tuple[Rule, ...]:
    """Return all built-in rules, sorted by code.

    Raises:
        RuleError: a rule is malformed, or two share a code or a name.
    """
    found: dict[str, Rule] = {}
    names: set[str] = set()
    for module_info in pkgutil.walk_packages(torchlint.rules.__path__, "torchlint.rules."):
        if module_info.ispkg:
            continue
        rule = _imported(module_info.name)
        if rule.code in found or rule.name in names:
            raise RuleError(f"{module_info.name}: {rule.code} {rule.name} is taken")
        found[rule.code] = rule
        names.add(rule.name)
    return tuple(found[code] for code in sorted(found))


def _imported(module_name: str) -> Rule:
    import_libcst()
    rule = getattr(importlib.import_module(module_name), "rule", None)
    if not isinstance(rule, Rule):
        raise RuleError(f"{module_name} defines no `rule`")
    validate(rule, module_name)
    return rule


@cache
def words() -> Sequence[RuleWords]:
    """Return the words of all built-in rules, sorted by code.

    Raises:
        RuleError: as for the rules, if the index is not current.
    """
    return _cards() or rules()


@cache
def rules_of(codes: frozenset[str]) -> tuple[Rule, ...]:
    """Return the built-in rules with these codes, sorted by code; others are imported only if the index is not current.

    Raises:
        RuleError: as for the rules.
    """
    if cards := _cards():
        return tuple(card.rule for card in cards if card.code in codes)
    return tuple(rule for rule in rules() if rule.code in codes)


def index() -> str:
    """Return what the index should say, a line for each rule."""
    sizes = _sizes()
    rows = []
    for rule in rules():
        path = f"{rule.family.value}/{rule.name.replace('-', '_')}.py"
        card = RuleCard(path, sizes[path], rule.code, rule.name, rule.summary, rule.default, rule.in_tests)
        rows.append(json.dumps(card))
    return "[\n" + ",\n".join(rows) + "\n]\n"


@cache
def _cards() -> tuple[RuleCard, ...]:
    """Return what the index says, nothing if it is missing or not current."""
    try:
        with open(os.path.join(_folder(), INDEX), encoding="utf-8") as file:
            rows = json.load(file)
        cards = [
            RuleCard(path, size, code, name, summary, Default(default), in_tests)
            for path, size, code, name, summary, default, in_tests in rows
        ]
    except (OSError, ValueError, TypeError, RecursionError):
        return ()
    return tuple(cards) if {card.path: card.size for card in cards} == _sizes() else ()


def _sizes() -> dict[str, int]:
    """Return the size of every module of a rule by its path."""
    return {
        f"{family.value}/{entry.name}": entry.stat().st_size
        for family in Family
        for entry in _entries(os.path.join(_folder(), family.value))
        if entry.name.endswith(".py") and entry.name != "__init__.py"
    }


def _entries(folder: str) -> Collection[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # not on a disk: the modules are imported instead
        return ()


def _folder() -> str:
    return os.path.dirname(os.path.abspath(torchlint.rules.__file__))
