"""What an optimizer is made for, and what happens to it before it takes a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def optimized_module(optimizer: cst.Call, model: Model) -> cst.BaseExpression | None:
    """Return the module all of whose parameters a call that makes an optimizer is given."""
    given = model.arguments(optimizer, ("params",)).get("params")
    if isinstance(given, cst.Call) and identifier(given.func) == "list" and len(given.args) == 1:
        given = given.args[0].value
    method = method_call(given, "parameters") if given is not None else None
    return method.value if method is not None and isinstance(method.value, (cst.Name, cst.Attribute)) else None


def calls_after(earlier: cst.Call, model: Model) -> Iterator[cst.Call]:
    """Yield the calls after another one in the same function."""
    function, place = model.enclosing_function(earlier), model.order(earlier)
    for call in model.nodes(cst.Call):
        if model.order(call) > place and model.enclosing_function(call) is function:
            yield call


def assigned_to(call: cst.Call, model: Model) -> cst.BaseExpression | None:
    """Return what a call is assigned to."""
    statement = model.parent(call)
    return statement.targets[0].target if isinstance(statement, cst.Assign) else None


def is_made_on_host(module: cst.BaseExpression, model: Model) -> bool:
    """Return whether a name holds what one call made, of which nothing says that it is on a device."""
    bindings = model.reaching(module) if isinstance(module, cst.Name) else []
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    if not isinstance(made, cst.Call) or method_call(made, "to", "cuda", "prepare") is not None:
        return False
    words = (identifier(part) for part in model.descendants(made))
    if any("device" in word or word == "cuda" for word in words) or any(a.star for a in made.args):
        return False
    uses = (name for name in model.uses(bindings[0]) if isinstance(model.parent(name), cst.Attribute))
    place = model.order(module)
    moved = (model.parent(name) for name in uses if model.order(name) < place)
    return not any(isinstance(m, cst.Attribute) and m.attr.value in ("to", "cuda") for m in moved)


def is_same_object(module: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Return whether a module's name still stands for the same one where a later call takes it."""
    taken = next((node for node in model.descendants(call) if is_same(node, module)), None)
    if isinstance(module, cst.Name) and isinstance(taken, cst.Name):
        before, after = ([b.node for b in model.reaching(name)] for name in (module, taken))
        return len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
    places = (model.order(t) for t in model.nodes(cst.AssignTarget) if is_same(t.target, module))
    return not any(model.order(module) < place < model.order(model.statement(call)) for place in places)
