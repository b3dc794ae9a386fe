"""Products of queries with keys, and of weights with values, by `matmul` and `einsum`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.syntax.calls import identifier, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_PRODUCTS = ("torch.matmul", "torch.bmm")
_SWAPS = ("transpose", "swapaxes", "swapdims")
_FLIPS = ("mT", "mH")
_LAST_TWO = ((-2, -1), (-1, -2))


class Product(NamedTuple):
    """The products of queries and keys."""

    node: cst.BaseExpression
    query: cst.BaseExpression
    key: cst.BaseExpression
    rank: int | None
    is_in_order: bool = True
    """Whether the channels come last, as fused attention wants them."""


def multiplied(call: cst.Call, model: Model) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return the two matrices that a call multiplies."""
    if model.qualified_name(call.func) in _PRODUCTS:
        values = [a.value for a in call.args if a.keyword is None and not a.star]
        return (values[0], values[1]) if len(values) == len(call.args) == 2 else None
    method = method_call(call, "matmul", "bmm")
    if method is None or model.qualified_name(call.func) is not None or len(call.args) != 1:
        return None
    return method.value, call.args[0].value


def matrix_product(
    node: cst.BaseExpression, left: cst.BaseExpression, right: cst.BaseExpression, model: Model
) -> Product | None:
    """Return the product with keys that are transposed in their last two dimensions."""
    if isinstance(right, cst.Attribute) and right.attr.value in _FLIPS:
        return Product(node, left, right.value, None)
    method = method_call(right, *_SWAPS, "permute")
    if method is None or not isinstance(right, cst.Call) or model.qualified_name(right.func) is not None:
        return None
    swapped = tuple(literal(argument.value) for argument in right.args)
    if method.attr.value == "permute":
        rank = len(swapped)
        return Product(node, left, method.value, rank) if swapped == (*range(rank - 2), rank - 1, rank - 2) else None
    if swapped in _LAST_TWO:
        is_batched = isinstance(node, cst.Call) and identifier(node.func) == "bmm"
        return Product(node, left, method.value, 3 if is_batched else None)
    if sorted(map(str, swapped)) in (["1", "2"], ["2", "3"]):
        return Product(node, left, method.value, 3 if 1 in swapped else 4)
    return None


def summed_product(call: cst.Call, model: Model) -> Product | None:
    """Return the product that ``einsum("b h i d, b h j d -> b h i j", q, k)`` is, with its dimensions in any order."""
    equation, operands = _equation(call, model)
    if len(operands) != 2:
        return None
    query, key, out = equation
    batch, summed = set(query) & set(key) & set(out), (set(query) & set(key)) - set(out)
    queries, keys = set(query) - set(key), set(key) - set(query)
    if len(query) < 3 or not all(len(set(term)) == len(term) for term in equation):
        return None
    if not len(summed) == len(queries) == len(keys) == 1 or set(out) != batch | queries | keys or out[-1] not in keys:
        return None
    in_order = query[:-2] == key[:-2] == out[:-2] and query[-1] == key[-1]
    return Product(call, operands[0], operands[1], len(query) if "." not in query else None, in_order)


class Weighted(NamedTuple):
    """Values that an equation sums up with their weights."""

    value: cst.BaseExpression
    is_in_order: bool


def weighted_values(call: cst.Call, weights: cst.CSTNode, model: Model) -> Weighted | None:
    """Return the values that ``einsum("b h i j, b h j d -> b h i d", weights, v)`` sums up."""
    equation, operands = _equation(call, model) if identifier(call.func) == "einsum" else ([], [])
    if len(operands) != 2 or operands[0] is not weights:
        return None
    given, value, out = equation
    channels, summed = set(value) - set(given), (set(given) & set(value)) - set(out)
    if len(given) < 3 or not all(len(set(term)) == len(term) for term in equation):
        return None
    if len(channels) != 1 or summed != {given[-1]} or set(out) != (set(given) - summed) | channels:
        return None
    in_order = given[:-2] == value[:-2] == out[:-2] and {value[-1]} == {out[-1]} == channels
    return Weighted(operands[1], in_order)


def _equation(call: cst.Call, model: Model) -> tuple[list[str], list[cst.BaseExpression]]:
    """Return the three terms of an equation and the two operands, the latter empty for any other call."""
    name = model.qualified_name(call.func)
    values = [a.value for a in call.args if a.keyword is None and not a.star]
    texts = [v for v in values if isinstance(literal(v), str)]
    if name != "torch.einsum" or len(values) != len(call.args):
        return [], []
    operands = [v for v in values if v is not texts[0]] if texts else []
    if len(operands) == 1 and isinstance(operands[0], (cst.List, cst.Tuple)):
        operands = [element.value for element in operands[0].elements]
    terms = str(literal(texts[0])).replace("->", ",").split(",") if texts else []
    if len(terms) != 3 or len(operands) != 2:
        return [], []
    return ["".join(term.replace("...", ".").split()) for term in terms], operands
