"""Attention that is written out: the softmax of the products of queries and keys, times the values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.operators.layouts import has_positions_last
from torchlint.semantics.operators.products import Product, matrix_product, multiplied, summed_product, weighted_values
from torchlint.semantics.operators.sizes import rank
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import children

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax")
_SOFTMAX_NAMES = frozenset(("softmax",))
_CASTS = ("float", "half", "to", "type", "type_as", "contiguous")
_METADATA = ("shape", "size", "dtype", "device", "ndim", "dim")
_MASKING = ("masked_fill", "masked_fill_")
_QUERY = re.compile(r"^q$|^q_|_q$|quer", re.IGNORECASE)
_KEY = re.compile(r"^k$|^k_|_k$|key", re.IGNORECASE)
_DEPTH = 12


@dataclass(slots=True)
class _Walk:
    """What was met between the product and the weights."""

    reads: list[cst.Name] = field(default_factory=list)
    products: dict[int, Product | None] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    scales: list[tuple[cst.BaseExpression, bool]] = field(default_factory=list)
    others: list[cst.CSTNode] = field(default_factory=list)
    dropouts: list[cst.Call] = field(default_factory=list)


class Attention(NamedTuple):
    """One attention: softmax of ``query @ key`` over the keys, times ``value``."""

    query: cst.BaseExpression
    key: cst.BaseExpression
    """The keys as they are before they are transposed."""

    value: cst.BaseExpression
    product: cst.BaseExpression
    result: cst.BaseExpression
    """The product with the values."""

    rank: int | None
    """How many dimensions the tensors have, where that is visible."""

    is_over_channels: bool
    """Whether the positions are visibly the last dimension, so that the scores are between channels."""

    scales: tuple[tuple[cst.BaseExpression, bool], ...]
    """What the product is multiplied with, or divided by (True)."""

    dropouts: tuple[cst.Call, ...]
    others: tuple[cst.CSTNode, ...]
    """Whatever else is done on the way: masks, biases, casts."""

    statements: tuple[cst.CSTNode, ...]
    """The statements that bind what comes before the result, in document order."""


def attention(softmax: cst.Call, model: Model) -> Attention | None:
    """Return the attention of which a call is the softmax, None where it is something else or its weights are kept."""
    may_be = model.calls_by_name.may_be(softmax, _SOFTMAX_NAMES) or model.mentions("Softmax")
    scores = _scores(softmax, model) if may_be else None
    if scores is None:
        return None
    walk = _Walk()
    product = _product(scores, model, walk, 0)
    if product is None or not _is_over_keys(softmax, product, model):
        return None
    if any(a.keyword is not None and a.keyword.value == "dtype" for a in softmax.args) or len(softmax.args) > 2:
        walk.others.append(softmax)  # the weights are of another type
    applied = _applied(softmax, model, walk)
    if applied is None or _is_read_elsewhere(model, walk):
        return None
    result, value = applied
    dimensions = _rank(product, value, model)
    if dimensions is None and (is_same(product.key, value) or not _shows_attention(product, walk)):
        return None  # the weights say to which centres something belongs, or classes
    statements = {id(s): s for s in (model.statement(b.node) for b in walk.bindings)}
    return Attention(
        product.query,
        product.key,
        value,
        product.node,
        result,
        dimensions,
        has_positions_last(product.query, model),
        tuple(walk.scales),
        tuple(walk.dropouts),
        tuple(walk.others),
        tuple(sorted(statements.values(), key=model.order)),
    )


def _shows_attention(product: Product, walk: _Walk) -> bool:
    """Whether more than two products speaks of attention: a mask, dropout, a scale that depends on something, names."""
    scaled = any(literal(scale) is None for scale, _ in walk.scales)
    operands = ((product.query, _QUERY), (product.key, _KEY))
    named = (any(pattern.search(name) for name in _names(operand)) for operand, pattern in operands)
    return bool(walk.dropouts or walk.others) or scaled or all(named)


def _names(operand: cst.CSTNode) -> Iterator[str]:
    if isinstance(operand, (cst.Name, cst.Attribute)):
        yield identifier(operand)
    for child in children(operand):
        yield from _names(child)


def _rank(product: Product, value: cst.BaseExpression, model: Model) -> int | None:
    """Return how many dimensions the tensors have; where they differ, that of one with fewer or more than four."""
    known = [found for part in (product.query, product.key, value) if (found := rank(part, model)) is not None]
    return next((found for found in known if found != 4), known[0] if known else product.rank)


def _scores(call: cst.Call, model: Model) -> cst.BaseExpression | None:
    """Return what a call takes the softmax of."""
    if model.callee(call) in _SOFTMAX:
        return model.arguments(call, ("input", "dim")).get("input")
    method = method_call(call, "softmax")
    if method is not None and model.qualified_name(call.func) is None:
        is_layer = isinstance(method.value, cst.Name) and model.definitions.receiver(method.value) is not None
        if not is_layer:
            return method.value
    return (
        call.args[0].value
        if len(call.args) == 1 and _may_be_layer(call.func, model) and _is_softmax(call, model)
        else None
    )


def _may_be_layer(function: cst.BaseExpression, model: Model) -> bool:
    """Whether a function is an attribute of the object, a variable, or made in place: asked before what it holds."""
    if not (model.speaks_of("Softmax") or model.names_any_of("Softmax")):
        return False
    if isinstance(function, cst.Attribute):
        return isinstance(function.value, cst.Name) and model.definitions.receiver(function.value) is not None
    return isinstance(function, cst.Call) or model.qualified_name(function) is None


def _is_softmax(call: cst.Call, model: Model) -> bool:
    return model.value(call.func).name == "torch.nn.Softmax"


def _is_over_keys(call: cst.Call, product: Product, model: Model) -> bool:
    """Whether a softmax is taken over the last dimension."""
    given = model.arguments(call, ("input", "dim") if model.callee(call) in _SOFTMAX else ("dim",))
    dimension: object = literal(given.get("dim"))
    if _may_be_layer(call.func, model) and _is_softmax(call, model):
        dimension = _dimension_of_layer(call.func, model)
    elif given.absent("dim") and given.get("axis") is not None:
        dimension = literal(given.get("axis"))
    return dimension == -1 or (product.rank is not None and dimension == product.rank - 1)


def _dimension_of_layer(layer: cst.BaseExpression, model: Model) -> object:
    made: list[cst.BaseExpression | None] = [layer]
    if isinstance(layer, cst.Attribute) and isinstance(layer.value, cst.Name):
        owner = model.definitions.receiver(layer.value)
        found = model.definitions.attribute(owner, layer.attr.value) if owner is not None else []
        made = [binding.value for binding in found if not binding.path]
    elif isinstance(layer, cst.Name):
        made = [binding.value for binding in model.reaching(layer)]
    found_dims = {literal(model.arguments(m, ("dim",)).get("dim")) if isinstance(m, cst.Call) else None for m in made}
    return found_dims.pop() if len(found_dims) == 1 else None


# From the softmax back to the product of queries and keys


def _product(node: cst.CSTNode, model: Model, walk: _Walk, depth: int) -> Product | None:
    """Return the product that an expression is, once scaled, masked or cast."""
    if depth > _DEPTH:
        return None
    if isinstance(node, cst.Name):
        return _of_name(node, model, walk, depth)
    if isinstance(node, cst.BinaryOperation):
        return _of_operation(node, model, walk, depth)
    if not isinstance(node, cst.Call):
        return None
    operands = multiplied(node, model)
    if operands is not None:
        return matrix_product(node, *operands, model)
    if identifier(node.func) == "einsum":
        found = summed_product(node, model)
        if found is not None and not found.is_in_order:
            walk.others.append(node)
        return found
    method = method_call(node, *_MASKING, *_CASTS)
    if method is None or model.qualified_name(node.func) is not None:
        return None
    found = _product(method.value, model, walk, depth + 1)
    if found is not None and method.attr.value != "contiguous":
        walk.others.append(node)
    return found


def _of_operation(node: cst.BinaryOperation, model: Model, walk: _Walk, depth: int) -> Product | None:
    if isinstance(node.operator, cst.MatrixMultiply):
        return matrix_product(node, node.left, node.right, model)
    if not isinstance(node.operator, (cst.Multiply, cst.Divide, cst.Add, cst.Subtract)):
        return None
    found, other = _product(node.left, model, walk, depth + 1), node.right
    if found is None and isinstance(node.operator, (cst.Multiply, cst.Add)):
        found, other = _product(node.right, model, walk, depth + 1), node.left
    if found is not None:
        _note(node.operator, other, node, walk)
    return found


def _note(operator: cst.CSTNode, other: cst.BaseExpression, node: cst.CSTNode, walk: _Walk) -> None:
    if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
        walk.scales.append((other, False))
    elif isinstance(operator, (cst.Divide, cst.DivideAssign)):
        walk.scales.append((other, True))
    else:
        walk.others.append(node)


def _of_name(name: cst.Name, model: Model, walk: _Walk, depth: int) -> Product | None:
    walk.reads.append(name)
    reaching = model.reaching(name)
    products: dict[int, Product] = {}
    for binding in reaching:
        if id(binding) not in walk.products:
            walk.products[id(binding)] = None  # a loop gives nothing away
            walk.bindings.append(binding)
            walk.products[id(binding)] = _of_binding(binding, model, walk, depth)
        found = walk.products[id(binding)]
        if found is None:
            return None
        products[id(found.node)] = found
    if len(reaching) > 1:
        walk.others.append(name)  # one way there does something else
    return products.popitem()[1] if len(products) == 1 else None


def _of_binding(binding: Binding, model: Model, walk: _Walk, depth: int) -> Product | None:
    statement = model.statement(binding.node)
    if isinstance(statement, cst.Assign) and len(statement.targets) > 1:
        return None  # the scores have another name, too
    if binding.kind is BindingKind.ASSIGNMENT and binding.value is not None and not binding.path:
        return _product(binding.value, model, walk, depth + 1)
    operators = (cst.MultiplyAssign, cst.DivideAssign, cst.AddAssign, cst.SubtractAssign)
    if not isinstance(statement, cst.AugAssign) or not isinstance(statement.operator, operators):
        return None
    _note(statement.operator, statement.value, statement, walk)
    return _of_name(statement.target, model, walk, depth + 1) if isinstance(statement.target, cst.Name) else None


# From the softmax on to the product with the values


def _applied(softmax: cst.Call, model: Model, walk: _Walk) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return the product of the weights with the values, if that is all that becomes of the weights."""
    node: cst.CSTNode = softmax
    for _ in range(_DEPTH):
        parent = model.parent(node)
        used = _with_values(node, parent, walk, model)
        if used is not None:
            return used
        outer = _kept(node, parent, model, walk)
        if outer is not None:
            node = outer
            continue
        read = _only_read(node, parent, model, walk)
        if read is None:
            return None
        node = read
    return None


def _with_values(
    node: cst.CSTNode, parent: cst.CSTNode | None, walk: _Walk, model: Model
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return a product whose left side is a node, and the right side."""
    if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.MatrixMultiply):
        return (parent, parent.right) if parent.left is node else None
    if isinstance(parent, cst.Element):  # `einsum("...", [weights, values])`
        parent = model.parent(model.parent(parent) or parent)
    call = model.parent(parent) if isinstance(parent, (cst.Arg, cst.Attribute)) else None
    if not isinstance(call, cst.Call):
        return None
    operands = multiplied(call, model)
    if operands is not None:
        return (call, operands[1]) if operands[0] is node else None
    weighted = weighted_values(call, node, model)
    if weighted is None:
        return None
    if not weighted.is_in_order:
        walk.others.append(call)
    return call, weighted.value


def _kept(node: cst.CSTNode, parent: cst.CSTNode | None, model: Model, walk: _Walk) -> cst.Call | None:
    """Return the dropout or cast that is applied to a node."""
    call = model.parent(parent) if isinstance(parent, (cst.Arg, cst.Attribute)) else None
    if not isinstance(call, cst.Call):
        return None
    if isinstance(parent, cst.Attribute):
        if parent.value is not node or call.func is not parent or parent.attr.value not in _CASTS:
            return None
        walk.others.append(call)
        return call
    is_first = bool(call.args) and call.args[0] is parent
    if not is_first or "drop" not in identifier(call.func).lower():
        return None
    walk.dropouts.append(call)
    return call


def _only_read(node: cst.CSTNode, parent: cst.CSTNode | None, model: Model, walk: _Walk) -> cst.Name | None:
    """Return the only place where what a statement binds a node to is read."""
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return None
    target = parent.targets[0].target
    binding = (
        next((b for b in model.bindings(target) if b.node is target), None) if isinstance(target, cst.Name) else None
    )
    if binding is None:
        return None
    reads = [n for n in _reads(binding, model) if not _is_metadata(n, model)]
    if len(reads) != 1 or len(model.reaching(reads[0])) != 1:
        return None
    walk.bindings.append(binding)
    walk.reads.append(reads[0])
    return reads[0]


def _reads(binding: Binding, model: Model) -> Iterator[cst.Name]:
    """Yield the places where a name is read that can have the value of a binding."""
    for name in model.uses(binding):
        is_read = name is not binding.node and not isinstance(model.parent(name), cst.AssignTarget)
        if is_read and any(found.node is binding.node for found in model.reaching(name)):
            yield name


def _is_metadata(name: cst.Name, model: Model) -> bool:
    parent = model.parent(name)
    if isinstance(parent, cst.Arg):
        return method_call(model.parent(parent), "type_as") is not None
    return isinstance(parent, cst.Attribute) and parent.value is name and parent.attr.value in _METADATA


def _is_read_elsewhere(model: Model, walk: _Walk) -> bool:
    """Whether a score or weight is read by anything but the attention; masking in place is a part of it."""
    for binding in walk.bindings:
        for name in _reads(binding, model):
            if any(name is known for known in walk.reads):
                continue
            if _is_metadata(name, model) or _is_masked_in_place(name, model):
                walk.others.append(name)
                continue
            return True
    return False


def _is_masked_in_place(name: cst.Name, model: Model) -> bool:
    method = model.parent(name)
    call = model.parent(method) if isinstance(method, cst.Attribute) else None
    return method_call(call, "masked_fill_") is method and isinstance(model.parent(call) if call else None, cst.Expr)
