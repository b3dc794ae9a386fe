"""Batches that an object keeps: one method puts them on a device, and others take a step with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.syntax.calls import is_none, method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

# What is done once, with a checkpoint or with settings.
_SETS_UP = re.compile(r"(^|_)(load|resume|restore|init|initialize|setup|build|create|reset|register)(_|$)")
_RUNS_BY_ROLE = frozenset(("forward", "backward", "call"))


def kept_batch(function: cst.FunctionDef, evaluator: Evaluator) -> str:
    """Return the parameter that is a batch because a method keeps parts of it for a step of its object; "" if none.

    ``self.x = batch["x"].to(device)``, where another method of a class that runs a backward pass computes with
    ``self.x``, nothing else assigns to it, and nobody in the file shows how often the method runs.
    """
    name = function.name.value
    if _SETS_UP.search(name) or name.strip("_") in _RUNS_BY_ROLE:
        return ""
    parts = list(_parts(function, evaluator))
    owner = evaluator.definitions.owner(function) if parts else None
    if owner is None or evaluator.callers(function) or not _is_given(function, {batch for batch, _ in parts}):
        return ""
    backward = (method_call(call, "backward") for call in evaluator.tree.below(owner.body, cst.Call))
    if not any(isinstance(method.value, (cst.Name, cst.Attribute)) for method in backward if method is not None):
        return ""
    kept = {attribute for _, attribute in parts}
    if not all(_is_set_only_in(function, owner, attribute, evaluator) for attribute in kept):
        return ""
    return parts[0][0] if _computes_with(kept, function, owner, evaluator) else ""


def _parts(function: cst.FunctionDef, evaluator: Evaluator) -> Iterator[tuple[str, str]]:
    """Yield ``batch`` and ``x`` of each ``self.x = batch["x"].to(device)``."""
    for statement in evaluator.tree.below(function.body, cst.Assign):
        target = statement.targets[0].target
        move = method_call(statement.value, "to", "cuda")
        part = move.value if move is not None else None
        if len(statement.targets) != 1 or not isinstance(target, cst.Attribute) or not isinstance(part, cst.Subscript):
            continue
        is_own = isinstance(target.value, cst.Name) and evaluator.definitions.receiver(target.value) is not None
        if is_own and isinstance(part.value, cst.Name):
            yield part.value.value, target.attr.value


def _is_given(function: cst.FunctionDef, names: set[str]) -> bool:
    """Whether the names are one parameter, without a default, of a method."""
    return len(names) == 1 and any(p.name.value in names and p.default is None for p in function.params.params[1:])


def _is_set_only_in(function: cst.FunctionDef, owner: cst.ClassDef, attribute: str, evaluator: Evaluator) -> bool:
    values = (binding.value for binding in evaluator.definitions.attribute(owner, attribute))
    return all(v is not None and (is_none(v) or evaluator.tree.within(v, function)) for v in values)


def _computes_with(kept: set[str], function: cst.FunctionDef, owner: cst.ClassDef, evaluator: Evaluator) -> bool:
    """Whether other methods pass what is kept on, and call none of it: a module that is kept is no batch."""
    tree = evaluator.tree
    reads = [node for node in tree.below(owner.body, cst.Attribute) if node.attr.value in kept]
    own = [n for n in reads if isinstance(n.value, cst.Name) and evaluator.definitions.receiver(n.value) is owner]
    if any(isinstance(call := tree.parent(node), cst.Call) and call.func is node for node in own):
        return False
    return any(isinstance(tree.parent(node), cst.Arg) and not tree.within(node, function) for node in own)
