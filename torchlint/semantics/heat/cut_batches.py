"""Loops that cut their batches out of a tensor or dataset by their counter."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.hints import brought_to_device
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier

_BY_STEPS = 3
"""The arguments of `range` where it takes more than one at a time."""


def takes_slices(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether each iteration cuts its batch out of a tensor: ``for i in range(0, n, size): x[i : i + size]``."""
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
        return False
    made = loop.iter if isinstance(loop.iter, cst.Call) else None
    if made is None or evaluator.names.qualified(made.func) != "builtins.range":
        return False
    cuts = evaluator.tree.below(loop.body, cst.Subscript)
    windows = (cut for cut in cuts if _is_window(cut, loop.target.value))
    if any(len(cut.slice) > 1 or evaluator.value(cut.value).is_tensor for cut in windows):
        return True
    if len(made.args) != len(("start", "stop", "step")):
        return False
    starts = (cut for cut in cuts if _starts_at(cut, loop.target.value))
    if any(len(cut.slice) > 1 or evaluator.value(cut.value).is_tensor for cut in starts):
        return True
    sources = {name.value for name in evaluator.tree.below(made.args[1], cst.Name)}
    return any(
        _cuts_batch(call, loop.target.value, evaluator) or _is_given_both(call, loop.target.value, sources, evaluator)
        for call in evaluator.tree.below(loop.body, cst.Call)
    )


def moves_slices(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether each iteration brings a batch of its own to the device: ``x[start : start + size].to(device)``."""
    if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call) or len(loop.iter.args) != _BY_STEPS:
        return False
    if evaluator.names.qualified(loop.iter.func) != "builtins.range":
        return False
    moved = (brought_to_device(call, evaluator) for call in evaluator.tree.below(loop.body, cst.Call))
    return any(isinstance(cut, cst.Subscript) and _starts_at(cut, identifier(loop.target)) for cut in moved)


def _starts_at(cut: cst.Subscript, counter: str) -> bool:
    """Whether a slice begins at a variable, in any dimension: ``x[i : i + size]``, ``x[:, i:end]``."""
    parts = (part.slice for part in cut.slice)
    starts = (part.lower for part in parts if isinstance(part, cst.Slice))
    return any(isinstance(start, cst.Name) and start.value == counter for start in starts)


def _is_window(cut: cst.Subscript, counter: str) -> bool:
    """Whether a slice is one of equal windows, in any dimension: ``x[:, i * size : (i + 1) * size]``."""
    for part in cut.slice:
        if not isinstance(part.slice, cst.Slice) or part.slice.lower is None or part.slice.upper is None:
            continue
        start, end = part.slice.lower, part.slice.upper
        if all(isinstance(s, cst.BinaryOperation) and isinstance(s.operator, cst.Multiply) for s in (start, end)):
            sides = (start.left, start.right) if isinstance(start, cst.BinaryOperation) else ()
            return any(isinstance(side, cst.Name) and side.value == counter for side in sides)
    return False


def _cuts_batch(call: cst.Call, counter: str, evaluator: Evaluator) -> bool:
    """Whether a function of the file that is named for it cuts a batch where the counter says: ``get_batch(x, i)``."""
    function = evaluator.definitions.definition(call.func) if "batch" in identifier(call.func) else None
    if not isinstance(function, cst.FunctionDef):
        return False
    names = [parameter.name.value for parameter in parameters(function)]
    given = bind(call.args, names)
    places = [name for name in names if (value := given.get(name)) is not None and identifier(value) == counter]
    cuts = evaluator.tree.below(function.body, cst.Subscript) if places else ()
    return any(_starts_at(cut, place) for cut in cuts for place in places)


def _is_given_both(call: cst.Call, counter: str, sources: set[str], evaluator: Evaluator) -> bool:
    """Whether a function of another file that is named for it is given what the range is of: ``get_batch(x, i)``."""
    if not isinstance(call.func, cst.Name) or "batch" not in call.func.value or not call.args:
        return False
    if evaluator.definitions.definition(call.func) is not None or evaluator.names.qualified(call.func) is None:
        return False
    given = {argument.value.value for argument in call.args if isinstance(argument.value, cst.Name)}
    return counter in given and not sources.isdisjoint(given - {counter})


def takes_items(loop: cst.For, evaluator: Evaluator) -> Evidence | None:
    """Return how certain it is that each iteration takes an item of a dataset by the loop's counter."""
    if not isinstance(loop.target, cst.Name) or _is_of_dataset(loop, evaluator):
        return None
    for node in evaluator.tree.below(loop.body, cst.Subscript):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            continue
        index = node.slice[0].slice.value
        if isinstance(index, cst.Name) and index.value == loop.target.value:
            owner = evaluator.value(node.value)
            if owner.kind is Kind.DATASET:
                return min(owner.evidence, Evidence.INFERRED)
    return None


def _is_of_dataset(loop: cst.For, evaluator: Evaluator) -> bool:
    """Whether a loop stands in a dataset, which goes through its items to make or to change them."""
    function = evaluator.definitions.enclosing_function(loop)
    owner = evaluator.definitions.owner(function) if function is not None else None
    return owner is not None and evaluator.definitions.class_kind(owner) is Kind.DATASET
