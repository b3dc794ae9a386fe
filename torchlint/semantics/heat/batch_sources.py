"""What hands out a batch: a loader, also as one of several values, also to a comprehension."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.handfuls import takes_first
from torchlint.semantics.roles import takes_one_step
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import identifier

_FIRST = frozenset(("builtins.next", "itertools.islice"))
_BATCH = re.compile(r"^((data|mini)_?)?batch(_data)?$")


def batch_evidence(value: Value) -> Evidence | None:
    """Return how certain it is that a value is a batch, or has one among its elements; None if it is none."""
    if value.kind is Kind.BATCH:
        return value.evidence
    for element in value.elements or ():
        found = batch_evidence(element)
        if found is not None:
            return found
    return None


def names_batch(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop calls what it takes a batch, and nothing else is known of it: ``for batch in source``."""
    if not isinstance(loop, cst.For):
        return False
    taken, several = evaluator.iterated(loop), loop.target.elements if isinstance(loop.target, cst.Tuple) else ()
    last = several[-1].value if several else loop.target
    if several:
        taken = taken.item(len(several) - 1)
    return isinstance(last, cst.Name) and _BATCH.match(last.value) is not None and not taken.known


def steps_fed(loop: cst.For, calls: Iterable[cst.Call], evaluator: Evaluator) -> Iterator[cst.FunctionDef]:
    """Yield the steps of the file to which a loop gives what it takes, by these calls: ``self.valid_step(sample)``."""
    taken = evaluator.iterated(loop)
    if taken.known or not isinstance(loop.target, cst.Name):
        return
    for call in calls:
        step = evaluator.definitions.definition(call.func) if takes_one_step(identifier(call.func)) else None
        is_fed = any(identifier(argument.value) == loop.target.value for argument in call.args)
        if isinstance(step, cst.FunctionDef) and is_fed:
            yield step


def takes_few(comprehension: cst.BaseComp, evaluator: Evaluator) -> bool:
    """Return whether only a few things are asked for: ``next(x for x in loader)``, ``for x in islice(loader, 3)``."""
    if takes_first(comprehension.for_in.iter, evaluator):
        return True
    argument = evaluator.tree.parent(comprehension)
    call = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and evaluator.names.qualified(call.func) in _FIRST


def in_comprehension(call: cst.Call, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a call runs for each batch that a comprehension in a loop takes: ``[step(x) for x in loader]``."""
    child: cst.CSTNode = call
    for ancestor in evaluator.tree.ancestors(call):
        if ancestor is loop:
            return False
        # By its type first, since an `isinstance` that does not hold is slow.
        if type(ancestor) in COMPREHENSIONS and isinstance(ancestor, COMPREHENSIONS) and child is not ancestor.for_in:
            targets = evaluator.tree.below(ancestor.for_in.target, cst.Name)
            given = {identifier(argument.value) for argument in call.args}
            is_given = any(target.value in given for target in targets)
            return is_given or batch_evidence(evaluator.iterated(ancestor.for_in)) is not None
        child = ancestor
    return False
