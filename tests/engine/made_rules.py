"""Rules made for a test, and the fixing of a text by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import libcst as cst

from torchlint.edits import operations as op
from torchlint.edits.diagnose import diagnose, without_broken_fixes
from torchlint.engine.fix import FixResult, fix_file
from torchlint.engine.result import FileResult, Status
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Family, Rule, Triggers
from torchlint.source import Source, source_from_text
from torchlint.syntax.parse import Parsed, parse
from torchlint.syntax.walk import Tree, walk

SETTINGS: Any = SimpleNamespace(
    fixable=None,
    unfixable=(),
    extend_safe_fixes=(),
    extend_unsafe_fixes=(),
    severity={},
    num_workers=4,
    file_timeout=60,
)
Check = Callable[[Any, Tree], Iterator[Finding]]


def make_rule(code: str, node_type: type[cst.CSTNode], check: Check) -> Rule:
    rule = Rule(
        code,
        code.lower(),
        Family.DATA,
        "1",
        Default.ON,
        "s",
        Triggers(()),
        (),
        (),
        "",
        {},
        checks={},
        switched_off=set(),
    )
    rule.check(node_type)(check)  # type: ignore[arg-type]
    return rule


def check_file(source: Source, settings: Any, rules: Sequence[Rule], target: object) -> FileResult:
    parsed = parse(source)
    assert isinstance(parsed, Parsed), source.text
    tree = walk(parsed.module)
    found = [
        (rule, finding)
        for rule in rules
        for node_type, checks in rule.checks.items()
        for node in tree.nodes(node_type)
        for check in checks
        for finding in check(node, tree)  # type: ignore[arg-type]
    ]
    diagnostics = without_broken_fixes(diagnose(parsed, tree.parent, found, settings), source.text)
    diagnostics.sort(key=lambda d: d.range)
    return FileResult(source.path, Status.CHECKED, tuple(diagnostics))


def fixed(text: str, *rules: Rule, unsafe: bool = False, settings: Any = SETTINGS) -> FixResult:
    target: Any = None
    return fix_file(source_from_text(text), settings, rules, target, unsafe=unsafe, check=check_file)


def name_of(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else getattr(call.func, "value", "")


def unwrap_m(call: cst.Call, tree: Tree) -> Iterator[Finding]:
    """``f(x).m()`` -> ``f(x, k=1)``."""
    if name_of(call) == "m" and isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        inner = call.func.value
        fix = Fix("Drop m", (op.Unwrap(call, inner), op.AddKeyword(inner, "k", "1")), Safety.SAFE)
        yield Finding(call, "m is slow", fix)


UNWRAP = make_rule("TL201", cst.Call, unwrap_m)  # type: ignore[arg-type]
