"""What an attribute holds that a method has just stored: ``self.test()``, and then ``self.output``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evaluate.names import unpack
from torchlint.semantics.values import Graph, Value
from torchlint.syntax.calls import identifier

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def stored(found: Value, read: cst.Attribute, evaluator: Evaluator) -> Value:
    """Return what is read, without a graph if the method that the function has just called stores it without one.

    ``found`` is what all methods of the class may store: those that train store it with its graph.
    """
    function = evaluator.definitions.enclosing_function(read)
    if found.graph is not Graph.ATTACHED or not found.is_tensor or function is None:
        return found
    owner = evaluator.definitions.receiver(read.value) if isinstance(read.value, cst.Name) else None
    bindings = evaluator.definitions.attribute(owner, read.attr.value) if owner is not None else []
    if len(bindings) < 2 or any(evaluator.tree.within(each.node, function) for each in bindings):
        return found
    stores = {id(evaluator.definitions.enclosing_function(each.node)) for each in bindings}
    calls = (call for call in evaluator.tree.below(function.body, cst.Call) if _is_of(read, call))
    storing = [
        (call, method)
        for call in calls
        if isinstance(method := evaluator.definitions.definition(call.func), cst.FunctionDef) and id(method) in stores
    ]
    above = [each for each in storing if evaluator.tree.order(each[0]) < evaluator.tree.order(read)]
    if not above or not _runs_last(above[-1][0], read, [call for call, _ in storing], evaluator):
        return found
    held = [each for each in bindings if evaluator.tree.within(each.node, above[-1][1])]
    values = [unpack(evaluator.value(each.value), each.path) for each in held if each.value is not None]
    is_plain = len(values) == len(held) > 0 and all(value.graph is Graph.DETACHED for value in values)
    return found._replace(graph=Graph.DETACHED) if is_plain else found


def _is_of(read: cst.Attribute, call: cst.Call) -> bool:
    """Whether a call is of a method of the object of which an attribute is read."""
    return isinstance(call.func, cst.Attribute) and identifier(call.func.value) == identifier(read.value)


def _runs_last(call: cst.Call, read: cst.CSTNode, storing: list[cst.Call], evaluator: Evaluator) -> bool:
    """Whether a call runs each time before an attribute is read, as the last one that stores it."""
    tree = evaluator.tree
    loop = tree.enclosing(read, cst.For, cst.While, cst.FunctionDef, cst.Lambda)
    around = tree.enclosing(call, cst.For, cst.While, cst.If, cst.IfExp, cst.Try, cst.FunctionDef, cst.Lambda)
    is_certain = around is loop or (isinstance(around, cst.FunctionDef) and tree.within(read, around))
    later = [each for each in storing if tree.order(each) > tree.order(read)]
    if loop is None or tree.within(call, loop):
        return is_certain
    return is_certain and not any(tree.within(each, loop) for each in later)
