"""Every module under ``torchlint/rules`` found once; duplicates refused."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache

import torchlint.rules
from torchlint.rule import Family, Rule

_CODE = re.compile(r"TL\d{3}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
REQUIRED_SECTIONS = ("## Why it costs", "## What to write instead", "## When to ignore it")
FAMILY_DIGITS = {family: str(digit) for digit, family in enumerate(Family, start=1)}


class RuleError(Exception):
    """A rule is not well formed."""


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
        rule = getattr(importlib.import_module(module_info.name), "rule", None)
        if not isinstance(rule, Rule):
            raise RuleError(f"{module_info.name} defines no `rule`")
        validate(rule, module_info.name)
        if rule.code in found or rule.name in names:
            raise RuleError(f"{module_info.name}: {rule.code} {rule.name} is taken")
        found[rule.code] = rule
        names.add(rule.name)
    return tuple(found[code] for code in sorted(found))
