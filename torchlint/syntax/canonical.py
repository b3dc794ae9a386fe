"""Whether two pieces of code are the same but for white space, comments, parentheses and quotes."""

from __future__ import annotations

from dataclasses import fields

import libcst as cst

from torchlint.syntax.constants import value_of

_PUNCTUATION = frozenset(
    (
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "comma",
        "equal",
        "dot",
        "colon",
        "first_colon",
        "second_colon",
        "start",
        "end",
        "posonly_ind",
        "semicolon",
        "leading_lines",
        "leading_whitespace",
        "lines_after_decorators",
        "header",
        "footer",
        "indent",
        "trailing_whitespace",
    )
)
_CONSTANTS = (cst.SimpleString, cst.ConcatenatedString, cst.Integer, cst.Float, cst.Imaginary)


class _Fields(dict[type, tuple[str, ...]]):
    """The fields with a meaning of each type of node, worked out when the type is first met."""

    def __missing__(self, node_type: type[cst.CSTNode]) -> tuple[str, ...]:
        names = (field.name for field in fields(node_type))
        found = tuple(name for name in names if name not in _PUNCTUATION and not name.startswith("whitespace"))
        self[node_type] = found
        return found


_FIELDS = _Fields()


def canonical(node: object) -> str:
    """Return a text that two expressions share if and only if they are written the same, apart from their layout."""
    # By their types first, since an `isinstance` that does not hold is slow.
    if type(node) is cst.Name:
        return node.value
    if type(node) is cst.Attribute:
        return f"{canonical(node.value)}.{node.attr.value}"
    if isinstance(node, (tuple, list)):
        return f"[{','.join(map(canonical, node))}]"
    if not isinstance(node, cst.CSTNode):
        return repr(node)
    if type(node) in _CONSTANTS and isinstance(node, _CONSTANTS):
        value = value_of(node)
        if value is not None:  # None for a concatenation that holds replacement fields
            return repr(value)
    return f"{node.__class__.__name__}({','.join(canonical(getattr(node, name)) for name in _FIELDS[node.__class__])})"


def is_same(left: cst.CSTNode, right: cst.CSTNode) -> bool:
    """Return whether two expressions are written the same, apart from their layout."""
    return _are_same(left, right)


def _are_same(left: object, right: object) -> bool:
    """Whether two nodes, or values of their fields, have the same canonical text: most differ at once."""
    if type(left) is cst.Name:
        return type(right) is cst.Name and left.value == right.value
    if type(left) is cst.Attribute:
        if type(right) is not cst.Attribute or left.attr.value != right.attr.value:
            return False
        return _are_same(left.value, right.value)
    if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
        return len(left) == len(right) and all(map(_are_same, left, right))
    if type(left) in _CONSTANTS or type(right) in _CONSTANTS or not isinstance(left, cst.CSTNode):
        return canonical(left) == canonical(right)
    if type(left) is not type(right):
        return False
    return all(_are_same(getattr(left, name), getattr(right, name)) for name in _FIELDS[type(left)])


def places(expression: cst.BaseExpression) -> list[str]:
    """Return the canonical texts of an expression and of all that it is an item of: ``x.a`` for ``x.a[0]``."""
    found = [canonical(expression)]
    while isinstance(expression, cst.Subscript):
        expression = expression.value
        found.append(canonical(expression))
    return found


def root_of(expression: cst.BaseExpression) -> str:
    """Return the name at the bottom of ``x``, ``x.a[0]``, ``x.f()``; "" if there is none."""
    while isinstance(expression, (cst.Attribute, cst.Subscript, cst.Call)):
        expression = expression.func if isinstance(expression, cst.Call) else expression.value
    return expression.value if isinstance(expression, cst.Name) else ""
