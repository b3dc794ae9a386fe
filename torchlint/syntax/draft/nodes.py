"""Making nodes of libcst with the fields that have a meaning, and no others."""

from __future__ import annotations

import ast
from typing import TypeVar

import libcst as cst

NodeType = TypeVar("NodeType", bound=cst.CSTNode)

new = object.__new__
set_field = object.__setattr__


def make(node_type: type[NodeType], **fields: object) -> NodeType:
    """Return a node with these fields and no others: the constructor of libcst takes five times as long."""
    node = new(node_type)
    for name, value in fields.items():
        set_field(node, name, value)
    return node


UNARY: dict[type[ast.unaryop], cst.BaseUnaryOp] = {
    ast.Not: make(cst.Not),
    ast.USub: make(cst.Minus),
    ast.UAdd: make(cst.Plus),
    ast.Invert: make(cst.BitInvert),
}
BOOLEAN: dict[type[ast.boolop], cst.BaseBooleanOp] = {ast.And: make(cst.And), ast.Or: make(cst.Or)}
BINARY: dict[type[ast.operator], cst.BaseBinaryOp] = {
    ast.Add: make(cst.Add),
    ast.Sub: make(cst.Subtract),
    ast.Mult: make(cst.Multiply),
    ast.Div: make(cst.Divide),
    ast.FloorDiv: make(cst.FloorDivide),
    ast.Mod: make(cst.Modulo),
    ast.Pow: make(cst.Power),
    ast.MatMult: make(cst.MatrixMultiply),
    ast.LShift: make(cst.LeftShift),
    ast.RShift: make(cst.RightShift),
    ast.BitAnd: make(cst.BitAnd),
    ast.BitOr: make(cst.BitOr),
    ast.BitXor: make(cst.BitXor),
}
AUGMENTED: dict[type[ast.operator], cst.BaseAugOp] = {
    ast.Add: make(cst.AddAssign),
    ast.Sub: make(cst.SubtractAssign),
    ast.Mult: make(cst.MultiplyAssign),
    ast.Div: make(cst.DivideAssign),
    ast.FloorDiv: make(cst.FloorDivideAssign),
    ast.Mod: make(cst.ModuloAssign),
    ast.Pow: make(cst.PowerAssign),
    ast.MatMult: make(cst.MatrixMultiplyAssign),
    ast.LShift: make(cst.LeftShiftAssign),
    ast.RShift: make(cst.RightShiftAssign),
    ast.BitAnd: make(cst.BitAndAssign),
    ast.BitOr: make(cst.BitOrAssign),
    ast.BitXor: make(cst.BitXorAssign),
}
COMPARISON: dict[type[ast.cmpop], cst.BaseCompOp] = {
    ast.Eq: make(cst.Equal),
    ast.NotEq: make(cst.NotEqual, value="!="),
    ast.Lt: make(cst.LessThan),
    ast.LtE: make(cst.LessThanEqual),
    ast.Gt: make(cst.GreaterThan),
    ast.GtE: make(cst.GreaterThanEqual),
    ast.Is: make(cst.Is),
    ast.IsNot: make(cst.IsNot),
    ast.In: make(cst.In),
    ast.NotIn: make(cst.NotIn),
}
DOT = make(cst.Dot)
ASYNCHRONOUS = make(cst.Asynchronous)
CONVERSIONS = {-1: None, ord("s"): "s", ord("r"): "r", ord("a"): "a"}


class NoDraftError(Exception):
    """The text has no draft: the running Python cannot parse it, or a draft would have to guess."""
