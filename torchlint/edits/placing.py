"""Edits that make a tensor where it is wanted: the device goes into the factory, the move goes away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, RemoveArgument, RemoveStatement, Replace, Unwrap
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import (
    DTYPE_CASTS,
    DTYPE_OF_CONSTRUCTOR,
    LEGACY_CONSTRUCTORS,
    RANDOM_FACTORIES,
    RANDOM_METHODS,
    RESHAPING_METHODS,
    WINDOW_FACTORIES,
)
from torchlint.semantics.tensors.casts import FLOATING
from torchlint.semantics.tensors.creations import Creation
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call

# Factories whose values are the same whether they are made with a dtype or cast to it.
_CAST_FREE = frozenset(("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"))
_DRAWN = frozenset(("torch.rand", "torch.randn"))  # which make no whole numbers
_ONES_AND_ZEROS = frozenset(("torch.zeros", "torch.ones", "torch.empty", "torch.eye"))
# What assigning to anything but a name can run.
_SETTERS = frozenset(("__setattr__", "__setitem__", "__set__"))
# Constructors of integers, of which every conversion keeps the low bits.
_WHOLE = ("Long", "Int", "Short", "Char", "Byte", "Bool")


class Placement(NamedTuple):
    """The edits, and what they rely on."""

    edits: tuple[Edit, ...]
    evidence: Evidence
    exact: bool = True
    """Whether the factory certainly makes the values that the constructor made."""

    alike: bool = True
    """Whether the device certainly converts the numbers to those that the CPU would convert them to."""

    is_recorded: bool = False
    """Whether a tracer records the device of another tensor as it is, where it recorded `type_as` before."""


def place(found: Creation, model: Model) -> Placement | None:
    """Return the edits that create a tensor on the device it is moved to, None if there are none that are right."""
    move = found.move
    if move is None or not move.device or not move.droppable or _is_rebound(found, model):
        return None
    if found.is_roundabout or any(model.switches_device(statement) for statement in found.between):
        return None
    if any(_draws_from_generator(step) for step in found.steps):
        return None
    if not all(_is_dtype(cast, model) for cast in found.casts):
        return None  # a tensor type would put the tensor back on the CPU
    if found.statement is not None and isinstance(found.statement.value, cst.Tuple):
        return None  # several tensors move together: what is left would be `h, c = h, c`
    name = model.callee(found.factory)
    if name in LEGACY_CONSTRUCTORS:
        modern = modernise(found.factory, model)
        if modern is None:
            return None
        added, evidence, exact = modern.edits, modern.evidence, modern.exact
    else:
        added, evidence, exact = (), Evidence.PROVEN, True
    device = AddKeyword(found.factory, "device", move.device)
    given = model.arguments(found.factory).named
    shaped_only = all(_is_view(step) for step in found.steps)
    takes_dtype = name in _CAST_FREE and (name not in _DRAWN or _dtype(move, model) in (None, *FLOATING))
    if move.dtype and takes_dtype and "dtype" not in given and shaped_only:
        dtype = AddKeyword(found.factory, "dtype", move.dtype)
        edits: tuple[Edit, ...] = (dtype, device, *_drop(found, model))
    elif move.dtype and not _casts_to_own(move, added):
        edits = (*added, device, *_keep_cast(move))
    else:
        edits = (*added, device, *_drop(found, model))
    alike, is_recorded = _converts_alike(found, move, model), move.method == "type_as"
    return Placement(edits, min(evidence, move.evidence), exact, alike, is_recorded)


def _draws_from_generator(step: cst.CSTNode) -> bool:
    """Return whether a method fills the tensor from a generator, which belongs to the CPU."""
    return isinstance(step, cst.Call) and any(
        a.keyword is not None and a.keyword.value == "generator" for a in step.args
    )


def _dtype(move: Move, model: Model) -> str | None:
    """The dtype that a move casts to, None where it is that of another tensor."""
    return model.value(move.names[1]).name if len(move.names) > 1 else None


def _converts_alike(found: Creation, move: Move, model: Model) -> bool:
    """Whether every cast after the factory, which then happens on the device, gives what it gave on the CPU."""
    name, given = model.callee(found.factory), model.arguments(found.factory)
    dtypes = [DTYPE_CASTS.get(method) for method in found.methods & DTYPE_CASTS.keys()]
    dtypes += [model.value(cast).name for cast in found.casts]
    if move.dtype:
        dtypes.append(_dtype(move, model))
    if not dtypes or identifier(found.factory.func).startswith(_WHOLE):
        return True
    fills = (step for step in found.steps if isinstance(step, cst.Call) and method_call(step, "fill_") is not None)
    filled = [argument.value for fill in fills for argument in fill.args]
    if name in _ONES_AND_ZEROS:
        return all(model.constructors.converts_alike(filled, dtype) for dtype in dtypes)
    values = [given.named["fill_value"]] if "fill_value" in given.named else [a.value for a in found.factory.args[:3]]
    if name in ("torch.tensor", "torch.as_tensor") or name in LEGACY_CONSTRUCTORS:
        values = values[:1]
    return all(model.constructors.converts_alike([*values, *filled], dtype) for dtype in dtypes)


def modernise(call: cst.Call, model: Model) -> Placement | None:
    """Return the edits that write a legacy constructor of data or a size as a factory with a dtype."""
    name = model.callee(call)
    kind = model.constructors.modern(call)
    if name is None or kind is None or model.is_partial(call):
        return None
    factory = model.spelling(kind.factory, call)
    dtype = model.spelling(DTYPE_OF_CONSTRUCTOR[name.rpartition(".")[2]], call)
    if factory is None or dtype is None or (name == "torch.Tensor" and model.sets_default_dtype):
        return None
    edits = (Replace(call.func, factory), AddKeyword(call, "dtype", dtype))
    # `torch.Tensor` has the default dtype, which another file can change.
    exact = kind.exact and name != "torch.Tensor"
    return Placement(edits, kind.evidence, exact)


def _is_dtype(cast: cst.BaseExpression, model: Model) -> bool:
    return model.value(cast).kind is Kind.DTYPE or identifier(cast).endswith("dtype")


def _casts_to_own(move: Move, added: tuple[Edit, ...]) -> bool:
    """Whether the dtype of the move is the one that the factory gets anyway."""
    return any(isinstance(edit, AddKeyword) and edit.name == "dtype" and edit.code == move.dtype for edit in added)


def _is_view(step: cst.CSTNode) -> bool:
    if isinstance(step, cst.Call) and isinstance(step.func, cst.Attribute):
        return step.func.attr.value in RESHAPING_METHODS
    return isinstance(step, (cst.Subscript, cst.Attribute))


def _drop(found: Creation, model: Model) -> Iterator[Edit]:
    move, statement = found.move, found.statement
    assert move is not None
    is_whole = statement is not None and statement.value is move.call
    if statement is not None and is_whole and model.code(move.receiver) == model.code(statement.targets[0].target):
        yield RemoveStatement(statement)
    else:
        yield Unwrap(move.call, move.receiver)


def _keep_cast(move: Move) -> Iterator[Edit]:
    """Yield what leaves the cast of a move: ``.to(device, dtype)`` becomes ``.to(dtype)``, ``.type_as(x)`` stays."""
    if move.method == "to":
        device = next(a for a in move.call.args if a.keyword is None or a.keyword.value == "device")
        yield RemoveArgument(move.call, device)
    elif move.method == "type":
        yield Replace(move.call.args[0].value, move.dtype)


def _is_rebound(found: Creation, model: Model) -> bool:
    """Whether a name of the device is given a value between the factory and the move."""
    assert found.move is not None
    used = {
        node.value
        for expression in found.move.names
        for node in model.descendants(expression)
        if isinstance(node, cst.Name)
    }
    nodes = (node for statement in found.between for node in model.descendants(statement))
    return any(isinstance(node, cst.Name) and node.value in used and _is_bound(node, model) for node in nodes)


def risks(found: Creation, placement: Placement, model: Model) -> Iterator[str]:
    """Yield a sentence for everything that can be different after the fix."""
    name, given = model.callee(found.factory), model.arguments(found.factory)
    if name in RANDOM_FACTORIES or found.methods & RANDOM_METHODS:
        yield "The generator of the device draws other numbers than that of the CPU."
    if name in ("torch.rand", "torch.randn") and found.move is not None and found.move.dtype:
        yield "It draws floats only, and refuses a dtype of whole numbers."
    steps = model.arguments(found.factory, ("start", "end", "step"))
    if name in {"torch.linspace", "torch.logspace", *WINDOW_FACTORIES} or (
        name == "torch.arange" and not model.constructors.counts(steps)
    ):
        yield "CPU and device can round the steps differently."
    if found.takes_part:
        yield "The result stays a view of a tensor with more or fewer elements, which the move would have copied out."
    elif found.is_view:
        yield "The result stays a view, which refuses `detach_`, and values with a gradient if it was made without."
    if model.vocabulary.mentions_streams:
        yield "The host no longer waits until the tensor is there: another stream could read it too early."
    if asks_for_gradient(found, model):
        yield "The tensor on the device becomes a leaf, which gets the gradient itself."
    if not placement.exact:
        yield "The dtype or the kind of the data is what this file suggests, not certain."
    if placement.is_recorded:
        yield "A recorder, as `torch.jit.trace` and the older export to ONNX are, keeps the device of its example."
    if not placement.alike:
        yield "A float that the integer type cannot hold is converted differently by CPU and device."
    if name in ("torch.tensor", "torch.as_tensor") and not model.constructors.is_data(found.factory.args[0].value):
        yield "What the data is cannot be seen here."
    plain = found.move is None or all(model.is_plain(expression) for expression in found.move.names)
    if not plain or may_be_another_device(found, model):
        yield "The device is worked out earlier than before."
    if given.get("fill_value") is not None and model.value(given.named["fill_value"]).is_tensor:
        yield "The fill value is a tensor."
    if is_seen_halfway(found, model):
        yield "Something can see the tensor on the CPU: what catches the error of the move, or what an assignment runs."


def is_seen_halfway(found: Creation, model: Model) -> bool:
    """Return whether something can see the tensor before a statement of its own moves it.

    That is what catches the error of the move, and what an assignment to an attribute or an item runs.
    """
    statement = found.statement
    if statement is None:
        return False
    tries = (node for node in model.ancestors(statement) if isinstance(node, (cst.Try, cst.TryStar)))
    if any(node.handlers for node in tries) or model.survives_error(statement):
        return True
    target = statement.targets[0].target
    if isinstance(target, cst.Name) and target.value not in _declared(model):
        return False
    if any(node.handlers for node in model.nodes(cst.Try)):
        return True  # perhaps around what calls this
    if any(isinstance(node, (cst.Call, cst.NamedExpr, cst.Await)) for node in model.descendants(target)):
        return True
    functions = model.nodes(cst.FunctionDef)
    return model.speaks_of("setter") or any(function.name.value in _SETTERS for function in functions)


def may_be_another_device(found: Creation, model: Model) -> bool:
    """Return whether what runs between factory and move may change what the expression of the device stands for.

    A call can rebind a name that is declared global or nonlocal somewhere, and set any attribute.
    """
    between = [node for statement in found.between for node in (statement, *model.descendants(statement))]
    calls = any(isinstance(node, cst.Call) and not _is_harmless(node, model) for node in between)
    stored = {target.attr.value for target in map(_target, between) if isinstance(target, cst.Attribute)}
    declared = _declared(model)
    expressions = found.move.names if found.move is not None else ()
    for node in (node for expression in expressions for node in (expression, *model.descendants(expression))):
        if isinstance(node, cst.Attribute) and model.qualified_name(node) is None:
            if calls or node.attr.value in stored:
                return True
        elif isinstance(node, cst.Name) and node.value in declared and calls:
            return True
    return False


def asks_for_gradient(found: Creation, model: Model) -> bool:
    """Return whether the factory or a step before the move makes the tensor one that gets a gradient."""
    calls = [found.factory, *(step for step in found.steps if isinstance(step, cst.Call))]
    wanted = (model.arguments(call).get("requires_grad") for call in calls)
    asked = any(value is not None and model.code(value) != "False" for value in wanted)
    return asked or "requires_grad_" in found.methods


def _declared(model: Model) -> set[str]:
    """Return the names that are declared global or nonlocal somewhere."""
    declarations: list[cst.Global | cst.Nonlocal] = [*model.nodes(cst.Global), *model.nodes(cst.Nonlocal)]
    return {item.name.value for declaration in declarations for item in declaration.names}


def _target(node: cst.CSTNode) -> cst.CSTNode | None:
    return node.target if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)) else None


def _is_harmless(call: cst.Call, model: Model) -> bool:
    """Return whether a function of torch, NumPy or Python is called by its name."""
    return (model.qualified_name(call.func) or "").startswith(("torch.", "numpy.", "builtins.", "math."))


def _is_bound(name: cst.Name, model: Model) -> bool:
    return any(binding.node is name for binding in model.bindings(name))
