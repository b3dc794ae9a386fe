"""Datasets of which every worker would yield all items."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier

_ITERABLE = re.compile(r"iter|stream|pipe", re.IGNORECASE)
_SHARES = ("get_worker_info", "split_by_worker")


def is_unsharded(dataset: cst.BaseExpression, class_def: cst.ClassDef | None, evaluator: Evaluator) -> bool:
    """Return whether a dataset is an ``IterableDataset`` that does not share its items out among workers.

    So may be what a lambda is given that is mapped over several, where the file has such a class.

    Args:
        dataset: what a loader is given.
        class_def: the class of the file that it is an instance of, None if that is not known.
        evaluator: of the file.
    """
    if class_def is not None:
        return _yields_all(class_def, evaluator)
    made_in = evaluator.scopes.scope(dataset).node
    bound = evaluator.scopes.bindings(dataset) if isinstance(dataset, cst.Name) else []
    is_given = bool(bound) and all(binding.kind is BindingKind.PARAMETER for binding in bound)
    if is_given and isinstance(made_in, cst.Lambda) and _is_handed_over(made_in, evaluator):
        return any(_yields_all(each, evaluator) for each in evaluator.tree.nodes(cst.ClassDef))
    named = evaluator.value(dataset).name or identifier(dataset.func if isinstance(dataset, cst.Call) else dataset)
    return _ITERABLE.search(named.rpartition(".")[2]) is not None


def _is_handed_over(function: cst.Lambda, evaluator: Evaluator) -> bool:
    return isinstance(evaluator.tree.parent(function), cst.Arg)


def _yields_all(class_def: cst.ClassDef, evaluator: Evaluator) -> bool:
    ancestry = evaluator.definitions.ancestry(class_def)
    if not any(_ITERABLE.search(name.rpartition(".")[2]) for name in ancestry):
        return False
    family = (class_def, *evaluator.definitions.bases(class_def))
    calls = (call for base in family for call in evaluator.tree.below(base, cst.Call))
    return not any(identifier(call.func) in _SHARES for call in calls)
