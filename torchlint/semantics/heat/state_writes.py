"""What code does to variables that outlive a pass: sets them, counts them up or down, fills them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.container_methods import STORES, TAKES_OUT
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import canonical
from torchlint.syntax.walk import Tree

_ITSELF = frozenset(("self", "cls"))
_ASSIGNMENTS: frozenset[type] = frozenset((cst.Assign, cst.AnnAssign, cst.AugAssign))
_DEPTH = 2
"""Through how many calls of functions of the file a branch is followed."""


class Effect(Enum):
    """What becomes of a variable."""

    SET = "it gets another value"
    RAISED = "something is added to it"
    LOWERED = "something is taken from it"
    FILLED = "it holds one more thing"
    EMPTIED = "something is taken out of it"


class Write(NamedTuple):
    """One thing that code does to a variable."""

    place: str
    """The variable, as ``key_of`` writes it."""

    effect: Effect
    value: cst.BaseExpression | None
    """What it gets; for what is filled what is put into it, for an item its index."""


def key_of(place: cst.BaseExpression, evaluator: Evaluator) -> str:
    """Return a text for a variable that is the same wherever code means the same: ``type(self).x`` for ``self.x``."""
    if isinstance(place, cst.Attribute):
        owner = place.value
        if isinstance(owner, cst.Call) and len(owner.args) == 1 and identifier(owner.func) == "type":
            owner = owner.args[0].value
        if isinstance(owner, cst.Attribute) and owner.attr.value == "__class__":
            owner = owner.value
        return f"{_owner_key(owner, evaluator)}.{place.attr.value}"
    if isinstance(place, cst.Subscript):
        index = place.slice[0].slice if len(place.slice) == 1 else None
        return item_key(key_of(place.value, evaluator), index.value if isinstance(index, cst.Index) else place)
    return canonical(place)


def _owner_key(owner: cst.BaseExpression, evaluator: Evaluator) -> str:
    """The object that has an attribute: the same text for one and for its class."""
    if not isinstance(owner, cst.Name):
        return key_of(owner, evaluator)
    is_class = owner.value in _ITSELF or isinstance(evaluator.definitions.definition(owner), cst.ClassDef)
    return "self" if is_class else owner.value


def item_key(owner: str, index: cst.CSTNode | str) -> str:
    """Return the text for an item of a variable."""
    return f"{owner}[{index!r}]" if isinstance(index, str) else f"{owner}[{canonical(index)}]"


def writes_below(code: cst.CSTNode, evaluator: Evaluator, depth: int = _DEPTH) -> Iterator[Write]:
    """Yield what code does to variables, and the functions of the file that it calls to such as outlive them."""
    tree = evaluator.tree
    for node in (code, *tree.descendants(code)):
        if node.__class__ in _ASSIGNMENTS:
            yield from writes_of(node, evaluator)
        elif isinstance(node, cst.Call):
            yield from _by_method(node, evaluator)
            called = evaluator.definitions.definition(node.func) if depth else None
            if isinstance(called, cst.FunctionDef):
                shared = declared_names(called, tree)
                inner = writes_below(called.body, evaluator, depth - 1)
                yield from (one for one in inner if one.place.startswith("self.") or one.place in shared)


def writes_of(statement: cst.CSTNode, evaluator: Evaluator) -> Iterator[Write]:
    """Yield what an assignment does."""
    if isinstance(statement, cst.Assign):
        for target in statement.targets:
            yield from _assigned(target.target, statement.value, evaluator)
    elif isinstance(statement, cst.AnnAssign) and statement.value is not None:
        yield from _assigned(statement.target, statement.value, evaluator)
    elif isinstance(statement, cst.AugAssign):
        is_less = isinstance(statement.operator, cst.SubtractAssign)
        is_more = isinstance(statement.operator, cst.AddAssign)
        effect = Effect.LOWERED if is_less else Effect.RAISED if is_more else Effect.SET
        yield Write(key_of(statement.target, evaluator), effect, statement.value)


def _assigned(target: cst.BaseExpression, value: cst.BaseExpression, evaluator: Evaluator) -> Iterator[Write]:
    if isinstance(target, (cst.Tuple, cst.List)):
        several = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
        for place, each in zip(target.elements, several, strict=False):
            yield from _assigned(place.value, each.value, evaluator)
        return
    key = key_of(target, evaluator)
    if isinstance(target, cst.Subscript):
        index = target.slice[0].slice if len(target.slice) == 1 else None
        yield Write(
            key_of(target.value, evaluator), Effect.FILLED, index.value if isinstance(index, cst.Index) else None
        )
    if isinstance(value, cst.BinaryOperation) and key_of(value.left, evaluator) == key:
        counts = {cst.Add: Effect.RAISED, cst.Subtract: Effect.LOWERED}
        yield Write(key, counts.get(type(value.operator), Effect.SET), value.right)
    else:
        yield Write(key, Effect.SET, value)


def _by_method(call: cst.Call, evaluator: Evaluator) -> Iterator[Write]:
    """What ``items.append(x)``, ``state.update(first=False)`` and ``setattr(self, "done", True)`` do."""
    method = method_call(call)
    if method is None:
        name = literal(call.args[1].value) if identifier(call.func) == "setattr" and len(call.args) == 3 else None
        if isinstance(name, str):
            owner = _owner_key(call.args[0].value, evaluator)
            yield Write(f"{owner}.{name}", Effect.SET, call.args[2].value)
    elif method.attr.value == "update":
        owner_key = key_of(method.value, evaluator)
        for argument in call.args:
            if argument.keyword is not None:
                yield Write(item_key(owner_key, argument.keyword.value), Effect.SET, argument.value)
            elif isinstance(argument.value, cst.Dict):
                pairs = (each for each in argument.value.elements if isinstance(each, cst.DictElement))
                yield from (Write(item_key(owner_key, each.key), Effect.SET, each.value) for each in pairs)
    elif method.attr.value in STORES:
        yield Write(key_of(method.value, evaluator), Effect.FILLED, call.args[0].value if call.args else None)
    elif method.attr.value in TAKES_OUT:
        yield Write(key_of(method.value, evaluator), Effect.EMPTIED, None)


def declared_names(function: cst.FunctionDef, tree: Tree) -> frozenset[str]:
    """Return the variables of other scopes that a function declares in order to set them."""
    named: list[cst.Global | cst.Nonlocal] = [
        *tree.below(function.body, cst.Global),
        *tree.below(function.body, cst.Nonlocal),
    ]
    return frozenset(each.name.value for statement in named for each in statement.names)
