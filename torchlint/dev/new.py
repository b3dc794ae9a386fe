"""The stubs of a new rule."""

from __future__ import annotations

import re
from pathlib import Path

from torchlint.dropped import COVERED, DROPPED
from torchlint.registry import FAMILY_DIGITS, rules
from torchlint.rule import Family
from torchlint.version import __version__

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

RULE = '''"""One sentence: what the code does that wastes time.

## Why it costs

Which work is done, and why it need not be.

## What to write instead

The better form, and what it changes.

## When to ignore it

Where the pattern is right.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

NAME = "torch.the_name_without_which_it_cannot_fire"

rule = Rule(
    code="{code}",
    name="{name}",
    family=Family.{family},
    since="{version}",
    default=Default.PREVIEW,
    summary="What is wrong, for the list of rules",
    triggers=Triggers.all_of("the_name_without_which_it_cannot_fire"),
    examples=(Example(bad="import torch\\n\\ntorch.the_name_without_which_it_cannot_fire()\\n"),),
    references=("https://docs.pytorch.org/docs/stable/",),
    documentation=__doc__,
    silences={{"asked-for": "The code runs only if a flag or its caller asks for it."}},
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Yield a finding for each call that wastes time."""
    if model.callee(call) != NAME:
        return
    if rule.silent("asked-for", model.chosen(call)):
        return
    yield Finding(call, "What is wrong, why it costs, what to write instead.")
'''

BAD = """import torch

torch.the_name_without_which_it_cannot_fire()  # expect: {code}
"""

GOOD = """import argparse

import torch

args = argparse.ArgumentParser().parse_args()
if args.debug:
    torch.the_name_without_which_it_cannot_fire()  # silent: asked-for - the flag decides
"""


class NewRuleError(Exception):
    """The rule cannot be made."""


def next_code(family: Family, taken: set[str]) -> str:
    """Return the first free code of the family."""
    return next(code for number in range(1, 100) if (code := f"TL{FAMILY_DIGITS[family]}{number:02}") not in taken)


def write_stubs(root: Path, family: Family, name: str) -> list[Path]:
    """Write module and fixtures of a new rule below the root and return their paths.

    Raises:
        NewRuleError: the name is malformed or taken, or the root is not a checkout.
    """
    if not _NAME.fullmatch(name):
        raise NewRuleError(
            f"{name!r} is no rule name: use lower-case words joined by hyphens, such as `create-then-move`"
        )
    module = root / "torchlint" / "rules" / family.value / f"{name.replace('-', '_')}.py"
    fixtures = root / "fixtures" / name
    if not module.parent.parent.is_dir():
        raise NewRuleError("run this in the root of a checkout of torchlint")
    if module.exists() or fixtures.exists() or any(rule.name == name for rule in rules()):
        raise NewRuleError(f"there is a rule {name!r} already")
    code = next_code(family, {r.code for r in rules()} | {r.code for r in DROPPED} | {r.code for r in COVERED})
    contents = {
        module: RULE.format(code=code, name=name, family=family.name, version=__version__),
        fixtures / "bad.py": BAD.format(code=code),
        fixtures / "good.py": GOOD,
    }
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    init = module.parent / "__init__.py"
    if not init.exists():
        init.write_text(f'"""Rules of the family {family.value}."""\n', encoding="utf-8")
        contents[init] = ""
    return sorted(contents)
