"""Where a file tells parameters of a module apart by their place among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal, method_call

_LISTS = ("builtins.list", "builtins.tuple")
_OF_VECTORS = "vector_to_parameters"


class Taken(NamedTuple):
    """A module of which some parameters are taken by their place."""

    owner: cst.BaseExpression
    place: int | None
    """The only one that is taken, None for several."""


def taken_by_position(evaluator: Evaluator) -> Iterator[Taken]:
    """Yield the modules: ``w, b = m.parameters()``, ``list(m.parameters())[3]``, parts of a flat vector."""
    for call in evaluator.tree.nodes(cst.Call):
        method = method_call(call, "parameters", "named_parameters")
        if method is not None:
            yield from (Taken(method.value, index) for index in _places(call, evaluator))


def _places(call: cst.BaseExpression, evaluator: Evaluator, depth: int = 2) -> Iterator[int | None]:
    """The places at which something takes one out of an iterable."""
    parent = evaluator.tree.parent(call)
    if isinstance(parent, cst.Assign):
        target = parent.targets[0].target
        if isinstance(target, (cst.Tuple, cst.List)):
            yield None
        elif isinstance(target, cst.Name) and depth:
            for use in evaluator.tree.named(target.value):
                if any(binding.value is call and not binding.path for binding in evaluator.flow.definitions(use)):
                    yield from _places(use, evaluator, depth - 1)
    elif isinstance(parent, cst.Subscript) and parent.value is call:
        yield from _chosen(parent)
    elif isinstance(parent, cst.Arg):
        yield from _places_of_argument(parent, evaluator, depth)
    elif isinstance(parent, cst.StarredElement):
        display = evaluator.tree.parent(parent)
        if isinstance(display, (cst.List, cst.Tuple)) and len(display.elements) == 1:
            yield from _places(display, evaluator, depth)
    elif isinstance(parent, cst.For) and parent.iter is call and _cuts_pieces(parent, evaluator):
        yield None


def _places_of_argument(argument: cst.Arg, evaluator: Evaluator, depth: int) -> Iterator[int | None]:
    taker = evaluator.tree.parent(argument)
    name = evaluator.names.qualified(taker.func) if isinstance(taker, cst.Call) else None
    if not isinstance(taker, cst.Call):
        return
    if name in _LISTS:
        yield from _places(taker, evaluator, depth)
    elif identifier(taker.func) == _OF_VECTORS or _sets_apart(taker, name, evaluator):
        yield None


def _sets_apart(call: cst.Call, name: str | None, evaluator: Evaluator) -> bool:
    """Whether a call pairs parameters with what is written out, or with numbers that a loop asks for."""
    if name == "builtins.zip":
        return any(_is_written_out(each.value, evaluator) for each in call.args)
    return name == "builtins.enumerate" and _asks_for_number(evaluator.tree.parent(call), evaluator)


def _is_written_out(values: cst.BaseExpression, evaluator: Evaluator) -> bool:
    if isinstance(values, cst.Name):
        bound = [binding.part for binding in evaluator.flow.definitions(values)]
        return any(isinstance(part, (cst.List, cst.Tuple)) and bool(part.elements) for part in bound)
    return isinstance(values, (cst.List, cst.Tuple))


def _asks_for_number(loop: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    """Whether a loop over ``enumerate(...)`` compares the number: ``if i < 10``."""
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Tuple):
        return False
    number, below = identifier(loop.target.elements[0].value), evaluator.tree.below
    asked = below(loop.body, cst.Comparison)
    return any(name.value == number for test in asked for name in below(test, cst.Name))


def _chosen(subscript: cst.Subscript) -> Iterator[int | None]:
    part = subscript.slice[0].slice
    if isinstance(part, cst.Index):
        index = literal(part.value)
        if isinstance(index, int):
            yield index
    elif isinstance(part, cst.Slice) and (part.lower is not None or part.upper is not None):
        bounds = [literal(bound) for bound in (part.lower, part.upper) if bound is not None]
        yield bounds[0] if len(bounds) == 1 and isinstance(bounds[0], int) and bounds[0] < 0 else None


def _cuts_pieces(loop: cst.For, evaluator: Evaluator) -> bool:
    """Whether each pass of a loop takes the next piece of something: ``flat[i:i + n]``, ``i += n``."""
    below = evaluator.tree.below
    counters = {identifier(step.target) for step in below(loop.body, cst.AugAssign)}
    bounds = (piece.lower for piece in below(loop.body, cst.Slice) if piece.lower is not None)
    return any(name.value in counters for bound in bounds for name in below(bound, cst.Name))
