"""Which rules may find something in a file, at which nodes and in which statements of it, to judge by a draft."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.finding import Finding
    from torchlint.rule import Check, Rule
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

    places: Mapping[str, frozenset[int]]
    """By the code of a rule, the places in document order of the nodes on which it finds something."""

    size: int
    """How many nodes the draft has, as the tree of the source text should."""

    @property
    def statements(self) -> frozenset[int]:
        """All statements of all parts."""
        return frozenset().union(*self.parts or ())

    def nodes(
        self, rule: Rule, model: Model, among: Callable[[cst.CSTNode], bool] | None = None
    ) -> list[cst.CSTNode] | None:
        """Return the nodes on which this rule finds something, in this model of the text; None: it may be any.

        ``among`` tells which of them are to be asked for.
        """
        places = self.places.get(rule.code)
        ordered = model.tree.ordered
        if places is None or len(ordered) != self.size:
            return None
        nodes = [ordered[place] for place in sorted(places)]
        return nodes if among is None else list(filter(among, nodes))


def find(
    active: Sequence[Rule], model: Model, ask: Callable[[str, Callable[[], Groups | None]], Groups | None]
) -> Suspects:
    """Return the rules that find something on a draft and those to which it does not show enough, and where.

    ``ask`` is given the code of a rule and a function that returns what it finds.
    """
    found: list[Rule] = []
    places: dict[str, frozenset[int]] = {}
    touched: Groups = []
    for rule in active:
        groups = ask(rule.code, partial(_touched, rule, model))
        if groups is None:
            found.append(rule)
            touched.append([model.tree.module] * 2)
        elif groups:
            found.append(rule)
            touched += groups
            places[rule.code] = frozenset(model.order(asked) for asked, *_ in groups)
    parts, are_apart = _parts(touched, model)
    return Suspects(tuple(found), parts, are_apart, places, len(model.tree.ordered))


def run_rule(
    rule: Rule, model: Model, only: Sequence[cst.CSTNode] | None = None
) -> Iterator[tuple[cst.CSTNode, Finding]]:
    """Yield what the rule's checks find on the nodes that they ask for, each with that node.

    ``only`` holds all nodes on which they find something, where that is known.
    """
    for node_type, checks in rule.checks.items():
        for check in checks:
            if only is None:
                nodes = _asked(rule, check, node_type, model)
            else:
                nodes = _among(only, rule, check, node_type, model)
            for node in nodes:
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


def _asked(rule: Rule, check: Check, node_type: type[cst.CSTNode], model: Model) -> Sequence[cst.CSTNode]:
    """Return the nodes that a check asks for."""
    condition = rule.conditions.get(check)
    if condition is not None and not condition(model):
        return ()
    called = rule.called.get(check) if node_type.__name__ == "Call" else None
    return model.nodes(node_type) if called is None else model.calls_by_name.named(called)


def _among(
    only: Sequence[cst.CSTNode], rule: Rule, check: Check, node_type: type[cst.CSTNode], model: Model
) -> list[cst.CSTNode]:
    """Return those of some nodes that a check asks for, in a file in which its rule finds something."""
    nodes = [node for node in only if node.__class__ is node_type]
    called = rule.called.get(check) if node_type.__name__ == "Call" else None
    if called is None:
        return nodes
    return [node for node in nodes if model.calls_by_name.may_be(cast("cst.Call", node), called)]


def _touched(rule: Rule, model: Model) -> Groups | None:
    """Return for each finding the node that was asked for and those that it reports or rewrites.

    None stands for a rule to which a draft does not show enough.
    """
    try:
        return [
            [asked, finding.owner or finding.node, *_rewritten(finding)] for asked, finding in run_rule(rule, model)
        ]
    except Exception:
        return None


def _parts(touched: Groups, model: Model) -> tuple[tuple[frozenset[int], ...] | None, bool]:
    """Return the parts in which these nodes stand, None for the whole file, and whether they are apart."""
    indices = {id(statement): index for index, statement in enumerate(model.tree.module.body)}
    parts: list[set[int]] = []
    are_apart = True
    for asked, *nodes in touched:
        places = [indices.get(id(_outermost(node, model))) for node in nodes]
        known = {place for place in places if place is not None}
        if len(known) < len(set(places)):
            return None, False
        asked_at = indices.get(id(_outermost(asked, model)))
        are_apart &= asked_at is not None
        parts.append(known if asked_at is None else known | {asked_at})
    return tuple(_merged(parts)), are_apart


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
