"""Parameters of a forward pass of which nothing says that they are tensors: ``scale``, ``epoch``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.narrowing import is_other_here
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import DATA_FACTORIES, FACTORIES
from torchlint.semantics.values import Kind

_TAKING_NUMBERS = FACTORIES | DATA_FACTORIES


def may_be_number(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether an expression is computed from nothing but numbers and such parameters: ``2 * scale``.

    Also where a test has left no tensor.
    """
    if isinstance(expression, cst.BinaryOperation):
        return may_be_number(expression.left, evaluator) and may_be_number(expression.right, evaluator)
    if isinstance(expression, cst.UnaryOperation):
        return may_be_number(expression.expression, evaluator)
    if evaluator.value(expression).kind is Kind.NUMBER:
        return True
    if isinstance(expression, cst.Name) and is_other_here(expression, evaluator):
        return True
    held = _holder(expression, evaluator)
    if not isinstance(held, cst.Name) or evaluator.value(held).evidence is not Evidence.NAMED:
        return False
    bindings = evaluator.flow.definitions(held)
    is_given = bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)
    return is_given and not any(_is_used_as_tensor(binding, evaluator) for binding in bindings)


def _holder(expression: cst.BaseExpression, evaluator: Evaluator) -> cst.BaseExpression:
    """What an element is taken from as of a list: ``sizes`` of ``sizes[-1]``, of ``n for n in sizes``."""
    while isinstance(expression, cst.Subscript) and _is_single(expression):
        expression = expression.value
    bindings = evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
    given = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ITERATION else None
    return given if isinstance(given, cst.Name) else expression


def _is_single(subscript: cst.Subscript) -> bool:
    return len(subscript.slice) == 1 and isinstance(subscript.slice[0].slice, cst.Index)


def _is_used_as_tensor(binding: Binding, evaluator: Evaluator) -> bool:
    """Whether a function asks for an attribute of a parameter, uses several indices, or gives it to a layer first."""
    tree = evaluator.tree
    uses = (name for name in tree.below(binding.scope.node, cst.Name) if name.value == binding.name)
    return any(_tells(use, evaluator) for use in uses if binding in evaluator.flow.definitions(use))


def _tells(use: cst.Name, evaluator: Evaluator) -> bool:
    parent = evaluator.tree.parent(use)
    if isinstance(parent, cst.Subscript):
        return parent.value is use and len(parent.slice) > 1
    if isinstance(parent, cst.Attribute):
        return parent.value is use
    while isinstance(parent, (cst.Element, cst.List, cst.Tuple)):
        parent = evaluator.tree.parent(parent)
    call = evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not parent:
        return False  # what comes second may be a number: `interpolate(x, scale)`
    name = evaluator.names.qualified(call.func)
    if name is None:
        return evaluator.value(call.func).kind is Kind.MODULE
    return name.startswith("torch.") and name not in _TAKING_NUMBERS
