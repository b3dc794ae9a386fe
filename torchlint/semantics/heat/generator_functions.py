"""Loops that take what generator functions of the file yield."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import identifier

_WRAPPERS = ("enumerate", "tqdm")


def takes_batches(loop: cst.For, evaluator: Evaluator) -> bool:
    """Return whether a loop runs over a generator of the file that hands out batches, or parts of them."""
    return source(loop, evaluator) is not None and _is_of_batch(evaluator.iterated(loop))


def source(loop: cst.For | cst.While, evaluator: Evaluator) -> cst.FunctionDef | None:
    """Return the generator function of the file that a loop runs over."""
    if not isinstance(loop, cst.For) or not evaluator.tree.nodes(cst.Yield):
        return None
    given = loop.iter
    while isinstance(given, cst.Call) and given.args and identifier(given.func) in _WRAPPERS:
        given = given.args[0].value
    if isinstance(given, cst.Name):
        bindings = evaluator.flow.definitions(given)
        plain = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and not bindings[0].path
        given = (plain and bindings[0].value) or given
    if not isinstance(given, cst.Call) or not isinstance(given.func, (cst.Name, cst.Attribute)):
        return None
    function = evaluator.definitions.definition(given.func) or evaluator.value(given.func).definition
    return function if isinstance(function, cst.FunctionDef) and evaluator.definitions.yielded(function) else None


def _is_of_batch(value: Value) -> bool:
    held = value.elements or ((value.element,) if value.element is not None else ())
    taken = value.kind is Kind.BATCH or (value.is_tensor and value.origin is Origin.BATCH)
    return taken or any(map(_is_of_batch, held))


def consumers(loop: cst.For | cst.While, evaluator: Evaluator) -> Iterator[cst.For]:
    """Yield the loops that run over what a loop of a generator function yields: ``for x in batches(data)``."""
    tree = evaluator.tree
    yields = [each for each in tree.nodes(cst.Yield) if tree.enclosing(each, *LOOPS) is loop]
    function = evaluator.definitions.enclosing_function(loop) if yields else None
    for call in evaluator.callers(function) if function is not None else ():
        child: cst.CSTNode = call
        taken = tree.parent(call)
        while isinstance(taken, (cst.Call, cst.Arg)):
            child, taken = taken, tree.parent(taken)
        if isinstance(taken, cst.For) and taken.iter is child:
            yield taken
