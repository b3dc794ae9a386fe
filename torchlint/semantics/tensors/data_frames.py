"""Data frames and series of pandas, whose ``values`` are NumPy arrays."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator

_MAKES = re.compile(r"^pandas\.(read_\w+|DataFrame|Series|concat|merge|get_dummies|pivot_table|melt)(\.|$)")
_SPLITS = "sklearn.model_selection.train_test_split"
_HELD = ("pandas.DataFrame", "pandas.Series")
_NAMED = re.compile(r"(^|_)(df|data_?frame)\d*($|_)")
"""What everybody calls one, in a file that imports pandas."""

_CONVERTING = re.compile(r"^(astype|codes|isna|isnull|notna|notnull|isin|between|duplicated|get_dummies|eq|ne|gt|lt)$")
"""What gives columns of another dtype than most files of numbers hold."""

_MAX_DEPTH = 8


def is_converted(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether an expression converts a column: ``df["kind"].astype("category").cat.codes``."""
    nodes = (expression, *evaluator.tree.descendants(expression))
    return any(
        isinstance(node, cst.Comparison) or (isinstance(node, cst.Attribute) and _CONVERTING.match(node.attr.value))
        for node in nodes
    )


def is_frame(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether an expression holds a data frame, a series, or what gives parts of one, as ``df.iloc`` does."""
    if depth > _MAX_DEPTH or not evaluator.scopes.imports("pandas"):
        return False
    if isinstance(expression, cst.Call):
        if _MAKES.match(evaluator.names.qualified(expression.func) or ""):
            return True
        return isinstance(expression.func, cst.Attribute) and is_frame(expression.func.value, evaluator, depth + 1)
    if isinstance(expression, cst.Subscript):
        return is_frame(expression.value, evaluator, depth + 1)
    if isinstance(expression, cst.Attribute):
        return _is_attribute(expression, evaluator, depth)
    if not isinstance(expression, cst.Name):
        return False
    bindings = evaluator.flow.definitions(expression)
    return bool(bindings) and all(_is_bound(binding, evaluator, depth) for binding in bindings)


def _is_attribute(attribute: cst.Attribute, evaluator: Evaluator, depth: int) -> bool:
    """Whether an attribute is a part of a frame, or a frame that an object keeps."""
    owner = evaluator.definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
    if owner is None:
        return is_frame(attribute.value, evaluator, depth + 1)
    kept = [
        held.value if not held.path else None for held in evaluator.definitions.attribute(owner, attribute.attr.value)
    ]
    return bool(kept) and all(value is not None and is_frame(value, evaluator, depth + 1) for value in kept)


def _is_bound(binding: Binding, evaluator: Evaluator, depth: int) -> bool:
    if binding.kind is BindingKind.PARAMETER:
        return _is_given(binding, evaluator, depth)
    if binding.kind is not BindingKind.ASSIGNMENT:
        return False
    if binding.part is not None:
        return is_frame(binding.part, evaluator, depth + 1)
    made = binding.value  # `train, test = train_test_split(frame)` gives two of each thing that it is given
    if not isinstance(made, cst.Call) or evaluator.names.qualified(made.func) != _SPLITS or len(binding.path) != 1:
        return False
    given = [argument.value for argument in made.args if argument.keyword is None and not argument.star]
    place = binding.path[0] // 2
    return 0 <= place < len(given) and is_frame(given[place], evaluator, depth + 1)


def _is_given(binding: Binding, evaluator: Evaluator, depth: int) -> bool:
    """Whether a parameter is annotated or named as a frame, or every call in the file gives one for it."""
    parameter = evaluator.tree.parent(binding.node)
    if not isinstance(parameter, cst.Param):
        return False
    if parameter.annotation is not None:
        return evaluator.names.qualified(parameter.annotation.annotation) in _HELD
    if _NAMED.search(binding.name):
        return True
    function = evaluator.tree.enclosing(parameter, cst.FunctionDef)
    calls = evaluator.callers(function) if isinstance(function, cst.FunctionDef) else []
    given = [
        argument_for(function, parameter, call, evaluator.definitions)
        for call in calls
        if isinstance(function, cst.FunctionDef)
    ]
    return bool(given) and all(value is not None and is_frame(value, evaluator, depth + 1) for value in given)
