"""Which rules may find something in a file, and in which of its top-level statements, to judge by a draft."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.finding import Finding
    from torchlint.rule import Rule
    from torchlint.semantics.model import Model

Timer = Callable[[str], AbstractContextManager[None]]


class Suspects(NamedTuple):
    """What has to be looked at again where the source text is known."""

    rules: tuple[Rule, ...]
    statements: frozenset[int] | None
    """The top-level statements, by index, in which findings and what they rewrite stand; None for the whole file."""


def find(active: Sequence[Rule], model: Model, time: Timer) -> Suspects:
    """Return the rules that find something on a draft and those to which it does not show enough, and where."""
    found: list[Rule] = []
    touched: list[cst.CSTNode] = []
    for rule in active:
        with time(rule.code):
            nodes = list(_touched(rule, model))
        if nodes:
            found.append(rule)
            touched += nodes
    return Suspects(tuple(found), _statements(touched, model))


def run_rule(rule: Rule, model: Model) -> Iterator[Finding]:
    """Yield what the rule's checks find on the nodes they asked for."""
    for node_type, checks in rule.checks.items():
        for check in checks:
            called = rule.called.get(check)
            for node in model.nodes(node_type) if called is None else model.called.named(called):
                yield from check(node, model)


def _touched(rule: Rule, model: Model) -> Iterator[cst.CSTNode]:
    """Yield the nodes that a rule reports or rewrites; the module where a draft does not show it enough."""
    import libcst as cst  # only now: most files need no tree

    try:
        for finding in run_rule(rule, model):
            yield finding.owner or finding.node
            for edit in finding.fix.edits if finding.fix else ():
                values = (getattr(edit, field.name) for field in fields(edit))
                yield from (value for value in values if isinstance(value, cst.CSTNode))
    except Exception:
        yield model.tree.module


def _statements(touched: Sequence[cst.CSTNode], model: Model) -> frozenset[int] | None:
    indices = {id(statement): index for index, statement in enumerate(model.tree.module.body)}
    found: set[int] = set()
    for node in touched:
        around = [node, *model.ancestors(node)]
        index = indices.get(id(around[-2])) if len(around) > 1 else None
        if index is None:
            return None
        found.add(index)
    return frozenset(found)
