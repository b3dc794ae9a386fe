"""Method calls: on lists of layers, on modules, on tensors, and on ``self``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.layers import expressions
from torchlint.semantics.layers.state import SELF, State
from torchlint.semantics.layers.values import EMPTY, Chain, Items, Output, Value, alternatives, chain_of, moved, opaque
from torchlint.syntax.calls import identifier, literal

if TYPE_CHECKING:
    from torchlint.semantics.layers.interpreter import Interpreter

_TENSOR_FACTS = frozenset("size dim ndimension numel nelement stride get_device is_contiguous".split())
_SAME_MODULE = frozenset(
    "to cuda cpu float half double bfloat16 train eval requires_grad_ apply share_memory type xpu to_empty".split()
)
_INERT = frozenset(
    "parameters named_parameters modules named_modules buffers state_dict load_state_dict zero_grad extra_repr "
    "reset_parameters init_weights children_count __len__ size".split()
)
Handled = tuple[bool, Value]
_NOT_HANDLED: Handled = (False, None)


def evaluate(call: cst.Call, method: cst.Attribute, state: State, interpreter: Interpreter) -> Handled:
    """Return whether a method is known here, and what it gives."""
    name = method.attr.value
    owner = interpreter.receiver(method.value)
    if owner is not None:
        return _on_self(call, method, owner, state, interpreter)
    if isinstance(method.value, cst.Call) and identifier(method.value.func) == "super":
        return True, _on_super(call, name, state, interpreter)
    if interpreter.qualified(method) is not None:
        return _NOT_HANDLED
    value = expressions.evaluate(method.value, state, interpreter)
    if isinstance(value, Output):
        if name not in _TENSOR_FACTS:
            state.release(value, call)
        expressions.discard(call.args, call, state, interpreter)
        return True, None
    if alternatives(value) and (name in _ON_LISTS or not isinstance(value, Items)):
        return True, _on_list(call, method, name, value, state, interpreter)
    if isinstance(value, Items):
        return True, _on_items(call, name, value, state, interpreter)
    if isinstance(value, Chain):
        return True, _on_module(call, method, name, value, state, interpreter)
    return _NOT_HANDLED


def _on_self(
    call: cst.Call, method: cst.Attribute, owner: cst.ClassDef, state: State, interpreter: Interpreter
) -> Handled:
    name = method.attr.value
    if name in ("add_module", "register_module", "append") and call.args:
        value = expressions.evaluate(call.args[-1].value, state, interpreter)
        node = call.args[-1].value
        key = literal(call.args[0].value)
        if interpreter.is_sequence(owner):
            own = state.variables.get(SELF)
            chain = value.slot(node) if isinstance(value, Chain) else opaque(node)
            state.set(SELF, (own if isinstance(own, Chain) else EMPTY).then(chain, node))
        elif isinstance(key, str):
            state.set("." + key, value if value is not None else opaque(node))
        else:
            state.release(value, call)
        return True, None
    called = interpreter.attribute(owner, name, state)
    if called is not None:
        return True, expressions.run(call, called, state, interpreter)
    function = interpreter.method(owner, name)
    if function is not None:
        expressions.discard(call.args, call, state, interpreter)
        return True, moved(interpreter.returned(function), call)
    return _NOT_HANDLED


def _on_super(call: cst.Call, name: str, state: State, interpreter: Interpreter) -> Value:
    function = interpreter.definitions.enclosing_function(call)
    owner = interpreter.definitions.owner(function) if function is not None else None
    if name == "__init__" and owner is not None and interpreter.is_sequence(owner):
        state.set(SELF, expressions.sequence(call, state, interpreter))
    else:
        expressions.discard(call.args, call, state, interpreter)
    return None


_ON_LISTS = frozenset("append extend insert add_module update copy".split())


def _on_list(
    call: cst.Call, method: cst.Attribute, name: str, value: Value, state: State, interpreter: Interpreter
) -> Value:
    found = value if isinstance(value, Items) else Items((value,), (method.value,))
    arguments = [(expressions.evaluate(a.value, state, interpreter), a.value) for a in call.args]
    if name == "copy":
        return value
    if not arguments or name not in _ON_LISTS:
        state.release(value, call)
        return None
    last, node = arguments[-1]
    if isinstance(last, Output):
        state.release(last, call)
    key = literal(call.args[0].value)
    if name in ("append", "add_module"):
        found = expressions.appended(found, last, node, key if isinstance(key, str) else None)
    elif name in ("extend", "update"):
        found = expressions.extended(found, last, node)
    elif key == 0:
        found = expressions.extended(expressions.appended(Items(), last, node), found, method.value)
    else:
        state.release(last, call)
        state.release(value, call)
    interpreter.store(method.value, found, state)
    return None


def _on_items(call: cst.Call, name: str, value: Items, state: State, interpreter: Interpreter) -> Value:
    expressions.discard(call.args, call, state, interpreter)
    if name in ("values", "children"):
        return Items(value.items, value.nodes)
    if name in _SAME_MODULE:
        return value
    if name not in _INERT and name != "keys":
        state.release(value, call)
    return None


def _on_module(
    call: cst.Call, method: cst.Attribute, name: str, value: Chain, state: State, interpreter: Interpreter
) -> Value:
    if name == "forward":
        return expressions.run(call, value, state, interpreter)
    if name in ("add_module", "append", "extend") and call.args and (value.lasts or value.nullable):
        added = expressions.evaluate(call.args[-1].value, state, interpreter)
        node = call.args[-1].value
        chain = added.slot(node) if isinstance(added, Chain) else chain_of(added, node)
        longer = value.then(chain, node)
        interpreter.store(method.value, longer, state)
        return longer
    expressions.discard(call.args, call, state, interpreter)
    if name in _SAME_MODULE:
        return value
    if name not in _INERT:
        state.open(value, call)
    return None


def dynamic_attribute(call: cst.Call, sets: bool, state: State, interpreter: Interpreter) -> Value:
    """``setattr(self, "conv", layer)`` and ``getattr(self, "conv")``."""
    owner = interpreter.receiver(call.args[0].value) if call.args else None
    name = literal(call.args[1].value) if len(call.args) > 1 else None
    if owner is None or not isinstance(name, str):
        expressions.discard(call.args, call, state, interpreter)
        return None
    if not sets:
        return interpreter.attribute(owner, name, state)
    value = expressions.evaluate(call.args[-1].value, state, interpreter)
    state.set("." + name, value if value is not None else opaque(call.args[-1].value))
    return None
