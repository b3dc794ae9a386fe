"""Expressions of ``ast`` in the nodes of libcst."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from torchlint.syntax.draft.nodes import (
    ASYNCHRONOUS,
    BINARY,
    BOOLEAN,
    COMPARISON,
    CONVERSIONS,
    UNARY,
    NodeType,
    NoDraftError,
    make,
    new,
    set_field,
)


def expression(node: ast.expr) -> Any:
    make = _EXPRESSIONS.get(node.__class__)
    if make is None:
        raise NoDraftError
    return make(node)


def optional(node: ast.expr | None) -> Any:
    return None if node is None else expression(node)


def identifier(name: str) -> cst.Name:
    node: cst.Name = new(cst.Name)
    set_field(node, "value", name)
    return node


def dotted(name: str) -> cst.Name | cst.Attribute:
    head, _, last = name.rpartition(".")
    return make(cst.Attribute, value=dotted(head), attr=identifier(last)) if head else identifier(last)


def _name(node: ast.Name) -> cst.Name:
    made: cst.Name = new(cst.Name)
    set_field(made, "value", node.id)
    return made


def _attribute(node: ast.Attribute) -> cst.Attribute:
    made: cst.Attribute = new(cst.Attribute)
    set_field(made, "value", expression(node.value))
    set_field(made, "attr", identifier(node.attr))
    return made


def _constant(node: ast.Constant) -> cst.BaseExpression:
    value = node.value
    if value is None or value is True or value is False:
        return identifier(repr(value))
    if value is ...:
        return make(cst.Ellipsis)
    if isinstance(value, (str, bytes)):
        return make(cst.SimpleString, value=repr(value))
    if isinstance(value, int):
        return make(cst.Integer, value=repr(value))
    digits = repr(value).replace("inf", "1e999")  # what is too large to be a number but is written as one
    return make(cst.Float if isinstance(value, float) else cst.Imaginary, value=digits)


def _call(node: ast.Call) -> cst.Call:
    made: cst.Call = new(cst.Call)
    set_field(made, "func", expression(node.func))
    set_field(made, "args", _arguments(node.args, node.keywords))
    return made


def _arguments(positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> tuple[cst.Arg, ...]:
    """Return arguments in the order of the source, which matters only where a star stands after a keyword."""
    arguments = [positional_argument(argument) for argument in positional]
    if keywords:
        arguments += [keyword_argument(argument) for argument in keywords]
        if positional and positional[-1].__class__ is ast.Starred:
            places = [(argument.lineno, argument.col_offset) for argument in positional]
            places += [(argument.lineno, argument.col_offset) for argument in keywords]
            order = sorted(range(len(places)), key=places.__getitem__)
            arguments = [arguments[index] for index in order]
    return tuple(arguments)


def positional_argument(node: ast.expr) -> cst.Arg:
    if isinstance(node, ast.Starred):
        return make(cst.Arg, value=expression(node.value), keyword=None, star="*")
    made: cst.Arg = new(cst.Arg)
    set_field(made, "value", expression(node))
    set_field(made, "keyword", None)
    set_field(made, "star", "")
    return made


def keyword_argument(node: ast.keyword) -> cst.Arg:
    if node.arg is None:
        return make(cst.Arg, value=expression(node.value), keyword=None, star="**")
    return make(cst.Arg, value=expression(node.value), keyword=identifier(node.arg), star="")


def _subscript(node: ast.Subscript) -> cst.Subscript:
    inner = node.slice
    parts = inner.elts if isinstance(inner, ast.Tuple) and not _is_parenthesised(inner) else [inner]
    return make(cst.Subscript, value=expression(node.value), slice=tuple(map(_part, parts)))


def _is_parenthesised(node: ast.Tuple) -> bool:
    """Return whether a tuple in brackets has parentheses of its own.

    Raises:
        NoDraftError: only the text could tell.
    """
    if not node.elts:
        return True
    first, last = node.elts[0], node.elts[-1]
    if (first.lineno, first.col_offset) == (node.lineno, node.col_offset):
        return False
    if (last.end_lineno, last.end_col_offset) == (node.end_lineno, node.end_col_offset):
        return False
    raise NoDraftError


def _part(node: ast.expr) -> cst.SubscriptElement:
    if isinstance(node, ast.Starred):
        raise NoDraftError
    made: cst.BaseSlice
    if isinstance(node, ast.Slice):
        lower, upper, step = optional(node.lower), optional(node.upper), optional(node.step)
        made = make(cst.Slice, lower=lower, upper=upper, step=step)
    else:
        made = make(cst.Index, value=expression(node), star=None)
    return make(cst.SubscriptElement, slice=made)


def _unary(node: ast.UnaryOp) -> cst.UnaryOperation:
    return make(cst.UnaryOperation, operator=UNARY[node.op.__class__], expression=expression(node.operand))


def _binary(node: ast.BinOp) -> cst.BinaryOperation:
    left, right = expression(node.left), expression(node.right)
    return make(cst.BinaryOperation, left=left, operator=BINARY[node.op.__class__], right=right)


def _boolean(node: ast.BoolOp) -> cst.BaseExpression:
    operator = BOOLEAN[node.op.__class__]
    made: cst.BaseExpression = expression(node.values[0])
    for value in node.values[1:]:
        made = make(cst.BooleanOperation, left=made, operator=operator, right=expression(value))
    return made


def _comparison(node: ast.Compare) -> cst.Comparison:
    left = expression(node.left)
    targets = tuple(
        make(cst.ComparisonTarget, operator=COMPARISON[operator.__class__], comparator=expression(comparator))
        for operator, comparator in zip(node.ops, node.comparators, strict=True)
    )
    return make(cst.Comparison, left=left, comparisons=targets)


def elements(nodes: Sequence[ast.expr]) -> tuple[cst.BaseElement, ...]:
    return tuple(
        make(cst.StarredElement, value=expression(node.value))
        if isinstance(node, ast.Starred)
        else make(cst.Element, value=expression(node))
        for node in nodes
    )


def _dict(node: ast.Dict) -> cst.Dict:
    elements = tuple(
        make(cst.StarredDictElement, value=expression(value))
        if key is None
        else make(cst.DictElement, key=expression(key), value=expression(value))
        for key, value in zip(node.keys, node.values, strict=True)
    )
    return make(cst.Dict, elements=elements)


def _generators(nodes: Sequence[ast.comprehension]) -> cst.CompFor | None:
    made: cst.CompFor | None = None
    for node in reversed(nodes):
        made = make(
            cst.CompFor,
            target=expression(node.target),
            iter=expression(node.iter),
            ifs=tuple(make(cst.CompIf, test=expression(test)) for test in node.ifs),
            inner_for_in=made,
            asynchronous=ASYNCHRONOUS if node.is_async else None,
        )
    return made


def _comprehension(node_type: type[NodeType]) -> Callable[[Any], NodeType]:
    return lambda node: make(node_type, elt=expression(node.elt), for_in=_generators(node.generators))


def _dict_comprehension(node: ast.DictComp) -> cst.DictComp:
    if node.value is None:
        raise NoDraftError
    key, value = expression(node.key), expression(node.value)
    return make(cst.DictComp, key=key, value=value, for_in=_generators(node.generators))


def _formatted(node: ast.JoinedStr) -> cst.FormattedString:
    return make(cst.FormattedString, start='f"', parts=_fields(node), end='"')


def _fields(node: ast.JoinedStr) -> tuple[cst.BaseFormattedStringContent, ...]:
    return tuple(
        _field(part)
        if isinstance(part, ast.FormattedValue)
        else make(cst.FormattedStringText, value=part.value if isinstance(part, ast.Constant) else "")
        for part in node.values
    )


def _field(node: ast.FormattedValue) -> cst.FormattedStringExpression:
    return make(
        cst.FormattedStringExpression,
        expression=expression(node.value),
        conversion=CONVERSIONS[node.conversion],
        format_spec=_fields(node.format_spec) if isinstance(node.format_spec, ast.JoinedStr) else None,
    )


def _yield(node: ast.Yield) -> cst.Yield:
    return make(cst.Yield, value=optional(node.value))


def _yield_from(node: ast.YieldFrom) -> cst.Yield:
    return make(cst.Yield, value=make(cst.From, item=expression(node.value)))


def _lambda(node: ast.Lambda) -> cst.Lambda:
    return make(cst.Lambda, params=parameters(node.args), body=expression(node.body))


def _conditional(node: ast.IfExp) -> cst.IfExp:
    return make(cst.IfExp, test=expression(node.test), body=expression(node.body), orelse=expression(node.orelse))


def parameters(node: ast.arguments) -> cst.Parameters:
    defaults = [*[None] * (len(node.posonlyargs) + len(node.args) - len(node.defaults)), *node.defaults]
    only, ordinary = defaults[: len(node.posonlyargs)], defaults[len(node.posonlyargs) :]
    star: cst.Param | cst.ParamStar | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT
    if node.vararg is not None:
        star = _parameter(node.vararg, None, "*")
    elif node.kwonlyargs:
        star = make(cst.ParamStar)
    return make(
        cst.Parameters,
        params=tuple(_parameter(*pair) for pair in zip(node.args, ordinary, strict=True)),
        star_arg=star,
        kwonly_params=tuple(_parameter(*pair) for pair in zip(node.kwonlyargs, node.kw_defaults, strict=True)),
        star_kwarg=None if node.kwarg is None else _parameter(node.kwarg, None, "**"),
        posonly_params=tuple(_parameter(*pair) for pair in zip(node.posonlyargs, only, strict=True)),
        posonly_ind=make(cst.ParamSlash) if node.posonlyargs else cst.MaybeSentinel.DEFAULT,
    )


def _parameter(node: ast.arg, default: ast.expr | None, star: str = "") -> cst.Param:
    noted, value = annotation(node.annotation), optional(default)
    return make(cst.Param, name=identifier(node.arg), annotation=noted, default=value, star=star)


def annotation(node: ast.expr | None) -> cst.Annotation | None:
    return None if node is None else make(cst.Annotation, annotation=expression(node))


_EXPRESSIONS: dict[type[ast.expr], Callable[[Any], cst.CSTNode]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.Tuple: lambda node: make(cst.Tuple, elements=elements(node.elts)),
    ast.List: lambda node: make(cst.List, elements=elements(node.elts)),
    ast.Set: lambda node: make(cst.Set, elements=elements(node.elts)),
    ast.Dict: _dict,
    ast.ListComp: _comprehension(cst.ListComp),
    ast.SetComp: _comprehension(cst.SetComp),
    ast.GeneratorExp: _comprehension(cst.GeneratorExp),
    ast.DictComp: _dict_comprehension,
    ast.JoinedStr: _formatted,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: lambda node: make(cst.Await, expression=expression(node.value)),
    ast.Lambda: _lambda,
    ast.IfExp: _conditional,
    ast.NamedExpr: lambda node: make(cst.NamedExpr, target=_name(node.target), value=expression(node.value)),
}
