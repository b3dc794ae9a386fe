"""Expressions: displays of layers, attributes of ``self``, and calls that create or run modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS, targets
from torchlint.semantics.layers import methods
from torchlint.semantics.layers.constructors import Constructor
from torchlint.semantics.layers.state import SELF, State
from torchlint.semantics.layers.values import (
    EMPTY,
    NOTHING,
    Chain,
    Items,
    Nothing,
    Output,
    Value,
    alternatives,
    chain_of,
    join,
    moved,
    opaque,
)
from torchlint.syntax.calls import is_none, literal
from torchlint.syntax.walk import children

if TYPE_CHECKING:
    from torchlint.semantics.layers.interpreter import Interpreter

_SEQUENTIAL = "torch.nn.Sequential"
_LISTS = frozenset(("torch.nn.ModuleList", "builtins.list", "builtins.tuple"))
_MAPPINGS = frozenset(("torch.nn.ModuleDict", "builtins.dict", "collections.OrderedDict", "typing.OrderedDict"))
_SAME_MODULE = frozenset(
    (
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.orthogonal",
        "torch.nn.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.compile",
        "torch.jit.script",
        "copy.deepcopy",
    )
)
_LOOKS_ONLY = frozenset(
    "builtins." + name for name in "len isinstance hasattr print type id callable str repr issubclass super".split()
)
_LAYER_FACTS = frozenset("weight bias in_channels out_channels out_features running_mean running_var".split())
_TENSOR_FACTS = frozenset("shape ndim device dtype requires_grad is_cuda layout itemsize".split())


def evaluate(expression: cst.CSTNode, state: State, interpreter: Interpreter) -> Value:
    """Return what an expression holds on a path, and note what it does with tensors and modules."""
    interpreter.step()
    known = _BY_TYPE.get(expression.__class__)
    if known is not None:
        return known(expression, state, interpreter)
    if isinstance(expression, cst.NamedExpr) and isinstance(expression.target, cst.Name):
        value = evaluate(expression.value, state, interpreter)
        state.set(expression.target.value, value)
        return value
    if isinstance(expression, cst.Comparison) and all(is_none(c.comparator) for c in expression.comparisons):
        evaluate(expression.left, state, interpreter)
        return None
    for child in children(expression):
        value = evaluate(child, state, interpreter)
        if not (isinstance(expression, (cst.BooleanOperation, cst.UnaryOperation)) and isinstance(value, Chain)):
            state.release(value, expression)  # a module that is only tested for being there goes nowhere
    return None


def _name(name: cst.Name, state: State, interpreter: Interpreter) -> Value:
    return NOTHING if is_none(name) else interpreter.variable(name, state)


def _lambda(function: cst.Lambda, state: State, interpreter: Interpreter) -> Value:
    evaluate(function.body, state.copy(), interpreter)
    return None


def _constant(expression: cst.BaseExpression, state: State, interpreter: Interpreter) -> Value:
    return None


def _attribute(attribute: cst.Attribute, state: State, interpreter: Interpreter) -> Value:
    owner = interpreter.receiver(attribute.value)
    if owner is not None:
        return interpreter.attribute(owner, attribute.attr.value, state)
    if isinstance(attribute.value, cst.Subscript) and attribute.attr.value in _LAYER_FACTS:
        evaluate(attribute.value.value, state, interpreter)
        return None
    value = evaluate(attribute.value, state, interpreter)
    if isinstance(value, Output) and attribute.attr.value not in _TENSOR_FACTS:
        state.release(value, attribute)
    if attribute.attr.value == "_modules":
        state.open(value, attribute)
    return value if isinstance(value, Chain) and attribute.attr.value == "module" else None


def _subscript(subscript: cst.Subscript, state: State, interpreter: Interpreter) -> Value:
    value = evaluate(subscript.value, state, interpreter)
    for element in subscript.slice:
        if isinstance(element.slice, cst.Index):
            evaluate(element.slice.value, state, interpreter)
    lists = alternatives(value)
    index = subscript.slice[0].slice
    if not lists or len(subscript.slice) != 1 or not isinstance(index, cst.Index):
        state.open(value, subscript)
        return None
    found = [item for alternative in lists for item in _chosen(alternative, literal(index.value))]
    in_order = any(alternative.keys is None for alternative in lists)
    if in_order and len({item.firsts for item in found if isinstance(item, Chain)}) > 1:
        state.open(value, subscript)  # which one follows which is not known
        return None
    return join([(item, subscript) for item in found])


def _chosen(found: Items, index: object) -> tuple[Value, ...]:
    if isinstance(index, str) and found.keys is not None and index in found.keys:
        return (found.items[found.keys.index(index)],)
    if type(index) is int and found.keys is None and -len(found.items) <= index < len(found.items):
        return (found.items[index],)
    return found.items


def _display(display: cst.List | cst.Tuple, state: State, interpreter: Interpreter) -> Value:
    found = Items()
    for element in display.elements:
        value = evaluate(element.value, state, interpreter)
        if isinstance(element, cst.StarredElement):
            found = extended(found, value, element.value)
        else:
            found = appended(found, value, element.value)
    return found


def appended(items: Items, value: Value, node: cst.CSTNode, key: str | None = None) -> Items:
    """Return a list with one more item."""
    item = value.slot(node) if isinstance(value, Chain) else value
    keys = (*items.keys, key) if items.keys is not None else None
    return Items((*items.items, item), (*items.nodes, node), keys)


def extended(items: Items, value: Value, node: cst.CSTNode) -> Items:
    """Return a list with the items of another one behind it."""
    if isinstance(value, Items) and (items.keys is None or value.keys is not None):
        keys = (*items.keys, *(value.keys or ())) if items.keys is not None else None
        return Items((*items.items, *value.items), (*items.nodes, *value.nodes), keys)
    keys = (*items.keys, None) if items.keys is not None else None
    return Items((*items.items, value), (*items.nodes, node), keys)


def _mapping(display: cst.Dict, state: State, interpreter: Interpreter) -> Value:
    found = Items(keys=())
    for element in display.elements:
        value = evaluate(element.value, state, interpreter)
        key = literal(element.key) if isinstance(element, cst.DictElement) else None
        found = appended(found, value, element.value, key if isinstance(key, str) else None)
    return found


def _conditional(expression: cst.IfExp, state: State, interpreter: Interpreter) -> Value:
    _look(expression.test, state, interpreter)
    taken = interpreter.choices.get(expression)
    if taken is not None:
        return evaluate(expression.body if taken else expression.orelse, state, interpreter)
    sides = (expression.body, expression.orelse)
    return join([(evaluate(side, state, interpreter), side) for side in sides])


def _look(test: cst.CSTNode, state: State, interpreter: Interpreter) -> None:
    value = evaluate(test, state, interpreter)
    if isinstance(value, Output):
        state.release(value, test)


look = _look


def _comprehension(expression: cst.CSTNode, state: State, interpreter: Interpreter) -> Value:
    loop = expression.for_in  # type: ignore[attr-defined]
    while loop is not None:
        items = interpreter.iterated(loop.iter, state)
        for name, path in targets(loop.target):
            state.set(name.value, items[0] if items and len(set(items)) == 1 and not path else None)
        if items and len(set(items)) > 1:
            for item in items:
                state.release(item, loop)
        for condition in loop.ifs:
            _look(condition.test, state, interpreter)
        loop = loop.inner_for_in
    if isinstance(expression, cst.DictComp):
        state.release(evaluate(expression.value, state, interpreter), expression)
        return None
    element = expression.elt  # type: ignore[attr-defined]
    value = evaluate(element, state, interpreter)
    return extended(appended(Items(), value, element), appended(Items(), value, element), element)


def _operation(operation: cst.BinaryOperation, state: State, interpreter: Interpreter) -> Value:
    left = evaluate(operation.left, state, interpreter)
    right = evaluate(operation.right, state, interpreter)
    if isinstance(operation.operator, cst.Add) and alternatives(left) and alternatives(right):
        return extended(extended(Items(), left, operation.left), right, operation.right)
    if isinstance(operation.operator, cst.Multiply) and alternatives(left):
        return extended(extended(Items(), left, operation.left), left, operation.left)
    state.release(left, operation)
    state.release(right, operation)
    return None


def _call(call: cst.Call, state: State, interpreter: Interpreter) -> Value:
    if isinstance(call.func, cst.Attribute):
        done, value = methods.evaluate(call, call.func, state, interpreter)
        if done:
            return value
        called: Value = None
    else:
        called = evaluate(call.func, state, interpreter)
    return run(call, called, state, interpreter)


def run(call: cst.Call, called: Value, state: State, interpreter: Interpreter) -> Value:
    """Return what a call of a module, a class or a function gives."""
    if isinstance(called, Chain) and (called.lasts or called.members):
        return _module_call(call, called, state, interpreter)
    made = interpreter.constructors.of(call.func)
    names = {constructor.name for constructor in made}
    if names == {_SEQUENTIAL}:
        return sequence(call, state, interpreter)
    if names and names <= _LISTS:
        return _list(call, state, interpreter)
    if names and names <= _MAPPINGS:
        return _dict(call, state, interpreter)
    if names and names <= _SAME_MODULE and call.args and not call.args[0].star:
        value = evaluate(call.args[0].value, state, interpreter)
        discard(call.args[1:], call, state, interpreter)
        return value
    if names and names <= _LOOKS_ONLY:
        for argument in call.args:
            evaluate(argument.value, state, interpreter)
        return None
    if names == {"builtins.setattr"} or names == {"builtins.getattr"}:
        return methods.dynamic_attribute(call, "builtins.setattr" in names, state, interpreter)
    return _made(call, made, called, state, interpreter)


def _made(call: cst.Call, made: frozenset[Constructor], called: Value, state: State, interpreter: Interpreter) -> Value:
    discard(call.args, call, state, interpreter)
    if any(c.name is not None and is_layer(c.name) for c in made):
        return Chain(frozenset((call,)), frozenset((interpreter.root(call),)))
    defined = [c.definition for c in made if c.definition is not None]
    if len(made) == len(defined) == 1:
        if isinstance(defined[0], cst.ClassDef):
            return interpreter.instance(defined[0], call)
        return moved(interpreter.returned(defined[0]), call)
    return None


def is_layer(name: str) -> bool:
    """Return whether a qualified name is that of a class of layers."""
    module, _, last = name.rpartition(".")
    return module in ("torch.nn", "apex.parallel") and last[:1].isupper()


def discard(arguments: object, call: cst.Call, state: State, interpreter: Interpreter) -> None:
    """Evaluate arguments that cannot be followed any further."""
    statement = interpreter.tree.parent(call)
    for argument in arguments:  # type: ignore[attr-defined]
        value = evaluate(argument.value, state, interpreter)
        if isinstance(statement, cst.Expr) and not isinstance(value, Output):
            if interpreter.definitions.definition(call.func) is None:
                interpreter.handed(value)  # such as a function that fills in weights: it gives nothing back
        else:
            state.release(value, call)


def _module_call(call: cst.Call, chain: Chain, state: State, interpreter: Interpreter) -> Value:
    argument: Value = None
    if call.args:
        argument = evaluate(call.args[0].value, state, interpreter)
        for other in call.args[1:]:
            state.release(evaluate(other.value, state, interpreter), call)
        if call.args[0].star:
            state.release(argument, call)
            argument = None
        elif not isinstance(argument, Output):
            for first in chain.firsts:
                interpreter.fed.setdefault(first, set()).add(call.args[0].value)
    interpreter.outputs[call] = frozenset(tail.site for tail in chain.lasts)
    return state.call(chain, argument, call)


def sequence(call: cst.Call, state: State, interpreter: Interpreter, start: Chain = EMPTY) -> Chain:
    """Return the modules that the arguments of a ``Sequential`` put in a row."""
    row = start
    for argument in call.args:
        value = evaluate(argument.value, state, interpreter)
        if argument.star == "**":
            state.release(value, call)
            continue
        if argument.star != "*" and isinstance(value, Items) and value.keys is None:
            state.release(value, call)
        chain = value.slot(argument.value) if isinstance(value, Chain) else chain_of(value, argument.value)
        row = row.then(chain, argument.value)
    return row


def _list(call: cst.Call, state: State, interpreter: Interpreter) -> Value:
    if not call.args:
        return Items()
    value = evaluate(call.args[0].value, state, interpreter)
    if alternatives(value):
        return value
    state.open(value, call)
    return None


def _dict(call: cst.Call, state: State, interpreter: Interpreter) -> Value:
    found = Items(keys=())
    for argument in call.args:
        value = evaluate(argument.value, state, interpreter)
        if argument.keyword is not None:
            found = appended(found, value, argument.value, argument.keyword.value)
        elif isinstance(value, Items) and value.keys is not None:
            found = extended(found, value, argument.value)
        elif isinstance(value, Items):
            for item, node in zip(value.items, value.nodes, strict=True):
                found = _with_pair(found, item, node)
        else:
            state.release(value, call)
    return found


def _with_pair(found: Items, item: Value, node: cst.CSTNode) -> Items:
    """Add ``("name", layer)`` to a mapping."""
    if isinstance(item, Items) and len(item.items) == 2:
        pair = node.elements if isinstance(node, (cst.Tuple, cst.List)) else ()
        key = literal(pair[0].value) if pair else None
        return appended(found, item.items[1], item.nodes[1], key if isinstance(key, str) else None)
    return appended(found, item, node)


__all__ = [
    "SELF",
    "Nothing",
    "appended",
    "discard",
    "evaluate",
    "extended",
    "is_layer",
    "look",
    "opaque",
    "run",
    "sequence",
]


_BY_TYPE: dict[type[cst.CSTNode], Callable[[Any, State, Interpreter], Value]] = {
    cst.Name: _name,
    cst.Call: _call,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.List: _display,
    cst.Tuple: _display,
    cst.Dict: _mapping,
    cst.IfExp: _conditional,
    **dict.fromkeys(COMPREHENSIONS, _comprehension),
    cst.BinaryOperation: _operation,
    cst.Lambda: _lambda,
    **dict.fromkeys((cst.Integer, cst.Float, cst.Imaginary, cst.SimpleString), _constant),
}
