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
    """Return what is read, without a graph if the last method above that the function calls stores it without one.

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
    last: cst.FunctionDef | None = None
    for call in evaluator.tree.below(function.body, cst.Call):
        if evaluator.tree.order(call) > evaluator.tree.order(read):
            break
        method = evaluator.definitions.definition(call.func) if _is_of(read, call) else None
        if isinstance(method, cst.FunctionDef) and id(method) in stores:
            last = method
    held = [each for each in bindings if last is not None and evaluator.tree.within(each.node, last)]
    values = [unpack(evaluator.value(each.value), each.path) for each in held if each.value is not None]
    is_plain = len(values) == len(held) > 0 and all(value.graph is Graph.DETACHED for value in values)
    return found._replace(graph=Graph.DETACHED) if is_plain else found


def _is_of(read: cst.Attribute, call: cst.Call) -> bool:
    """Whether a call is of a method of the object of which an attribute is read."""
    return isinstance(call.func, cst.Attribute) and identifier(call.func.value) == identifier(read.value)
