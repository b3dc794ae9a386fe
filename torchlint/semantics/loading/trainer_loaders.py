"""Loaders that a trainer of Lightning asks for once, and iterates over in each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal

_ASKED = ("train_dataloader", "val_dataloader")
_ASKING = ("LightningDataModule", "LightningModule")
_RELOADS = ("reload_dataloaders_every_n_epochs", "reload_dataloaders_every_epoch")
_COUNTS = ("current_epoch", "global_step")
_SETS_UP = frozenset(("__init__", "setup", "prepare_data", *_ASKED))
# What the trainer runs between epochs, and by what it gets at a dataset there.
_BETWEEN = re.compile(r"^on_(train_|val_|validation_)?epoch_(start|end)$")
_WAYS = frozenset(("dataset", "datamodule", "train_dataloader", "val_dataloaders", "dataloaders", "sampler"))


def is_asked_once(made: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a method that the trainer asks once returns the loader that a call makes."""
    function = evaluator.definitions.enclosing_function(made)
    owner = evaluator.definitions.owner(function) if function is not None else None
    if function is None or owner is None or function.name.value not in _ASKED:
        return False
    if not any(name.endswith(_ASKING) for name in evaluator.definitions.ancestry(owner)):
        return False
    if any(map(_limits, evaluator.tree.nodes(cst.Arg))):
        return False
    if any(part.attr.value in _COUNTS for part in evaluator.tree.below(function.body, cst.Attribute)):
        return False  # it is meant to be asked in each epoch
    results = evaluator.definitions.results(function)
    held = (value for result in results for value in evaluator.held_by(result))
    return any(made is each or evaluator.tree.within(made, each) for each in (*results, *filter(None, held)))


def _limits(argument: cst.Arg) -> bool:
    """Return whether an argument tells the trainer to ask anew, or to go over the data once."""
    name = argument.keyword.value if argument.keyword is not None else ""
    once = name in ("max_epochs", "fast_dev_run") and literal(argument.value) == 1
    return once or name in _RELOADS


def is_changed_between(datasets: Iterable[cst.BaseExpression], evaluator: Evaluator) -> bool:
    """Return whether something outside of the methods that set a module up may change what a loader holds."""
    names = {identifier(each) for each in datasets if isinstance(each, cst.Attribute)}
    tree = evaluator.tree
    for function in tree.nodes(cst.FunctionDef):
        if function.name.value in _SETS_UP:
            continue
        ways = names | _WAYS if _BETWEEN.match(function.name.value) else names
        for part in tree.below(function.body, cst.Attribute):
            if part.attr.value in ways and _is_changed(part, evaluator):
                return True
    return False


def _is_changed(part: cst.Attribute, evaluator: Evaluator) -> bool:
    """Return whether an attribute or a part of it is stored to, or a method of it is called."""
    node: cst.CSTNode = part
    parent = evaluator.tree.parent(part)
    while isinstance(parent, (cst.Attribute, cst.Subscript)) and parent.value is node:
        node, parent = parent, evaluator.tree.parent(parent)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
        return parent.target is node
    return isinstance(parent, cst.Call) and parent.func is node and node is not part
