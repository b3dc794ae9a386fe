"""Making nodes of libcst with the fields that have a meaning, and no others."""

from __future__ import annotations

import ast
from typing import TypeVar

import libcst as cst

NodeType = TypeVar("NodeType", bound=cst.CSTNode)

UNARY: dict[type[ast.unaryop], cst.BaseUnaryOp] = {
    ast.Not: cst.Not(),
    ast.USub: cst.Minus(),
    ast.UAdd: cst.Plus(),
    ast.Invert: cst.BitInvert(),
}
BOOLEAN: dict[type[ast.boolop], cst.BaseBooleanOp] = {ast.And: cst.And(), ast.Or: cst.Or()}
BINARY: dict[type[ast.operator], cst.BaseBinaryOp] = {
    ast.Add: cst.Add(),
    ast.Sub: cst.Subtract(),
    ast.Mult: cst.Multiply(),
    ast.Div: cst.Divide(),
    ast.FloorDiv: cst.FloorDivide(),
    ast.Mod: cst.Modulo(),
    ast.Pow: cst.Power(),
    ast.MatMult: cst.MatrixMultiply(),
    ast.LShift: cst.LeftShift(),
    ast.RShift: cst.RightShift(),
    ast.BitAnd: cst.BitAnd(),
    ast.BitOr: cst.BitOr(),
    ast.BitXor: cst.BitXor(),
}
AUGMENTED: dict[type[ast.operator], cst.BaseAugOp] = {
    ast.Add: cst.AddAssign(),
    ast.Sub: cst.SubtractAssign(),
    ast.Mult: cst.MultiplyAssign(),
    ast.Div: cst.DivideAssign(),
    ast.FloorDiv: cst.FloorDivideAssign(),
    ast.Mod: cst.ModuloAssign(),
    ast.Pow: cst.PowerAssign(),
    ast.MatMult: cst.MatrixMultiplyAssign(),
    ast.LShift: cst.LeftShiftAssign(),
    ast.RShift: cst.RightShiftAssign(),
    ast.BitAnd: cst.BitAndAssign(),
    ast.BitOr: cst.BitOrAssign(),
    ast.BitXor: cst.BitXorAssign(),
}
COMPARISON: dict[type[ast.cmpop], cst.BaseCompOp] = {
    ast.Eq: cst.Equal(),
    ast.NotEq: cst.NotEqual(),
    ast.Lt: cst.LessThan(),
    ast.LtE: cst.LessThanEqual(),
    ast.Gt: cst.GreaterThan(),
    ast.GtE: cst.GreaterThanEqual(),
    ast.Is: cst.Is(),
    ast.IsNot: cst.IsNot(),
    ast.In: cst.In(),
    ast.NotIn: cst.NotIn(),
}
DOT = cst.Dot()
ASYNCHRONOUS = cst.Asynchronous()
CONVERSIONS = {-1: None, ord("s"): "s", ord("r"): "r", ord("a"): "a"}


class NoDraftError(Exception):
    """The text has no draft: the running Python cannot parse it, or a draft would have to guess."""


new = object.__new__
set_field = object.__setattr__


def make(node_type: type[NodeType], **fields: object) -> NodeType:
    """Return a node with these fields and no others: the constructor of libcst takes five times as long."""
    node = new(node_type)
    for name, value in fields.items():
        set_field(node, name, value)
    return node
