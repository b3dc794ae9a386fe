"""Which rules may find something in a file, and in which of its top-level statements, to judge by a draft."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.finding import Finding
    from torchlint.rule import Rule
    from torchlint.semantics.model import Model

Groups = list[list["cst.CSTNode"]]


class Suspects(NamedTuple):
    """What has to be looked at again where the source text is known."""

    rules: tuple[Rule, ...]
    parts: tuple[frozenset[int], ...] | None
    """The top-level statements, by index, in which findings and what they rewrite stand: one that is found with
    another is in its part. None stands for the whole file."""

    are_apart: bool
    """Whether each finding is found by looking at the statements of its part, not at the module."""

    @property
    def statements(self) -> frozenset[int]:
        """All statements of all parts."""
        return frozenset().union(*self.parts or ())


def find(active: Sequence[Rule], model: Model, ask: Callable[[str, Callable[[], Groups]], Groups]) -> Suspects:
    """Return the rules that find something on a draft and those to which it does not show enough, and where.

    ``ask`` is given the code of a rule and a function that returns what it finds.
    """
    found: list[Rule] = []
    touched: Groups = []
    for rule in active:
        groups = ask(rule.code, partial(_touched, rule, model))
        if groups:
            found.append(rule)
            touched += groups
    indices = {id(statement): index for index, statement in enumerate(model.tree.module.body)}
    parts: list[set[int]] = []
    are_apart = True
    for asked, *nodes in touched:
        places = [indices.get(id(_outermost(node, model))) for node in nodes]
        known = {place for place in places if place is not None}
        if len(known) < len(set(places)):
            return Suspects(tuple(found), None, are_apart=False)
        asked_at = indices.get(id(_outermost(asked, model)))
        are_apart &= asked_at is not None
        parts.append(known if asked_at is None else known | {asked_at})
    return Suspects(tuple(found), tuple(_merged(parts)), are_apart)


def run_rule(
    rule: Rule, model: Model, among: Callable[[cst.CSTNode], bool] | None = None
) -> Iterator[tuple[cst.CSTNode, Finding]]:
    """Yield what the rule's checks find on the nodes that they ask for, ``among`` some or all, each with that node."""
    for node_type, checks in rule.checks.items():
        for check in checks:
            condition = rule.conditions.get(check)
            if condition is not None and not condition(model):
                continue
            called = rule.called.get(check) if node_type.__name__ == "Call" else None
            for node in model.nodes(node_type) if called is None else model.calls_by_name.named(called):
                if among is None or among(node):
                    for finding in check(node, model):
                        yield node, finding


def within(statements: Collection[int], model: Model) -> Callable[[cst.CSTNode], bool]:
    """Return what tells whether a node is in one of these top-level statements."""
    wanted = {id(model.tree.module.body[index]) for index in statements}
    return lambda node: id(_outermost(node, model)) in wanted


def batches(found: Suspects, sizes: Callable[[Collection[int]], int], most: int) -> Iterator[frozenset[int]]:
    """Yield the statements in groups of parts of at most this size together, or of one part."""
    batch: frozenset[int] = frozenset()
    for part in sorted(found.parts or (), key=min):
        if batch and sizes(batch) + sizes(part) > most:
            yield batch
            batch = frozenset()
        batch |= part
    if batch:
        yield batch


def _touched(rule: Rule, model: Model) -> Groups:
    """Return for each finding the node that was asked for and those that it reports or rewrites.

    The module stands for them where a draft does not show enough.
    """
    found: Groups = []
    try:
        for asked, finding in run_rule(rule, model):
            found.append([asked, finding.owner or finding.node, *_rewritten(finding)])
    except Exception:
        found.append([model.tree.module] * 2)
    return found


def _rewritten(finding: Finding) -> Iterator[cst.CSTNode]:
    import libcst as cst  # only now: most files need no tree

    for edit in finding.fix.edits if finding.fix else ():
        values = (getattr(edit, field.name) for field in fields(edit))
        yield from (value for value in values if isinstance(value, cst.CSTNode))


def _outermost(node: cst.CSTNode, model: Model) -> cst.CSTNode | None:
    """Return the top-level statement around a node, None for the module."""
    around = [node, *model.ancestors(node)]
    return around[-2] if len(around) > 1 else None


def _merged(parts: Iterable[set[int]]) -> list[frozenset[int]]:
    """Return the parts, those that share a statement as one."""
    by_statement: dict[int, set[int]] = {}
    for part in parts:
        whole = set(part).union(*(by_statement[index] for index in part if index in by_statement))
        by_statement.update(dict.fromkeys(whole, whole))
    return [frozenset(part) for part in {id(part): part for part in by_statement.values()}.values()]
