"""What comes out of calls that nobody knows, if they were given tensors."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.roles import denoises
from torchlint.semantics.tables.torch_api import FACTORIES
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import identifier, method_call

_MAX_DEPTH = 4
# What puts the times of a diffusion process on a device, if it is given one.
_SETTING_TIMES = frozenset(("set_timesteps", "retrieve_timesteps"))


def from_tensor(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether an unknown value comes out of a call that was given tensors, such as an imported metric."""
    if depth > _MAX_DEPTH:
        return False
    value = evaluator.value(expression)
    if value.known:
        return value.is_tensor or value.kind is Kind.BATCH
    if isinstance(expression, (cst.Subscript, cst.Attribute)):
        return from_tensor(expression.value, evaluator, depth + 1)
    if isinstance(expression, cst.BinaryOperation):
        return from_tensor(expression.left, evaluator, depth + 1) or from_tensor(expression.right, evaluator, depth + 1)
    if isinstance(expression, cst.Comparison):
        sides = (expression.left, *(target.comparator for target in expression.comparisons))
        return any(from_tensor(side, evaluator, depth + 1) for side in sides)
    if isinstance(expression, cst.UnaryOperation):
        return from_tensor(expression.expression, evaluator, depth + 1)
    if isinstance(expression, cst.Name):
        bindings = evaluator.flow.definitions(expression)
        kinds = (BindingKind.ASSIGNMENT, BindingKind.ITERATION)
        assigned = [b.part or b.value for b in bindings if b.kind in kinds and b.value is not None]
        assigned += [value for b in bindings for value in passed_for(b, evaluator)]
        return any(_is_given_to_forward(b, evaluator) for b in bindings) or any(
            from_tensor(value, evaluator, depth + 1) for value in assigned
        )
    items = method_call(expression, "items", "values")
    if items is not None:
        return from_tensor(items.value, evaluator, depth + 1)
    if isinstance(expression, cst.Call):
        return _takes_tensors(expression, evaluator, depth)
    return False


def passed_for(binding: Binding, evaluator: Evaluator) -> list[cst.BaseExpression]:
    """Return what the calls of the file pass for a parameter."""
    parameter = evaluator.tree.parent(binding.node)
    function = evaluator.tree.enclosing(binding.node, cst.FunctionDef)
    if binding.kind is not BindingKind.PARAMETER or not isinstance(parameter, cst.Param) or function is None:
        return []
    passed = [argument_for(function, parameter, call, evaluator.definitions) for call in evaluator.callers(function)]
    return [value for value in passed if value is not None]


def _is_given_to_forward(binding: Binding, evaluator: Evaluator) -> bool:
    """Return whether a name is a parameter of a forward pass, other than by keyword only: those are settings."""
    function = evaluator.tree.enclosing(binding.node, cst.FunctionDef)
    if binding.kind is not BindingKind.PARAMETER or function is None or function.name.value != "forward":
        return False
    owner = evaluator.definitions.owner(function)
    is_positional = any(binding.node is parameter.name for parameter in function.params.params)
    return is_positional and owner is not None and evaluator.definitions.class_kind(owner) is Kind.MODULE


def is_diffusion_time(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a loop over the times of a diffusion process, which the file puts on a device, binds a name."""
    bindings = evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.ITERATION:
        return False
    loop = evaluator.tree.enclosing(bindings[0].node, cst.For)
    steps = (call for call in evaluator.tree.below(loop.body, cst.Call) if denoises(call)) if loop is not None else ()
    is_time = any(identifier(argument.value) == bindings[0].name for call in steps for argument in call.args)
    return is_time and any(
        identifier(call.func) in _SETTING_TIMES
        and (len(call.args) > 1 or any(a.keyword is not None and a.keyword.value == "device" for a in call.args))
        for call in evaluator.tree.nodes(cst.Call)
    )


def is_brought_back(given: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether torch computes a tensor of what it is given, which is moved: ``multinomial(p, 1).to(device)``."""
    argument = evaluator.tree.parent(given)
    call = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not argument or argument.star:
        return False
    name = evaluator.names.qualified(call.func) or ""
    moved = method_call(evaluator.tree.parent(evaluator.tree.parent(call) or call), "to", "cuda")
    is_back = moved is not None and moved.value is call
    return is_back and name.startswith("torch.") and name not in FACTORIES and evaluator.value(call).is_tensor


def is_computed(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether data flow says that an expression is computed from tensors, by calls that are not known."""
    value = evaluator.value(expression)
    if depth > _MAX_DEPTH:
        return False
    if value.kind in (Kind.TENSOR, Kind.BATCH) and value.evidence >= Evidence.INFERRED:
        return True
    if isinstance(expression, cst.Name):
        bindings = evaluator.flow.definitions(expression)
        return bool(bindings) and all(
            b.kind is BindingKind.ASSIGNMENT and b.value is not None and is_computed(b.value, evaluator, depth + 1)
            for b in bindings
        )
    if isinstance(expression, cst.BinaryOperation):
        return is_computed(expression.left, evaluator, depth + 1) or is_computed(expression.right, evaluator, depth + 1)
    if isinstance(expression, (cst.Attribute, cst.Subscript)):
        return is_computed(expression.value, evaluator, depth + 1)
    if not isinstance(expression, cst.Call):
        return False
    given = [a.value for a in expression.args]
    owner = [expression.func.value] if isinstance(expression.func, cst.Attribute) else []
    return any(is_computed(part, evaluator, depth + 1) for part in (*given, *owner))


def _takes_tensors(call: cst.Call, evaluator: Evaluator, depth: int) -> bool:
    name = evaluator.names.qualified(call.func)
    if name is not None and name.partition(".")[0] in ("numpy", "sklearn", "scipy", "builtins", "math"):
        return False
    owner = [call.func.value] if isinstance(call.func, cst.Attribute) else []
    return _is_moved(call, evaluator) or any(
        from_tensor(part, evaluator, depth + 1) for part in (*(a.value for a in call.args), *owner)
    )


def _is_moved(call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether something is put on an accelerator by a call."""
    method = method_call(call, "to", "cuda")
    if method is None or method.attr.value == "cuda":
        return method is not None
    given = [a.value for a in call.args if a.keyword is None or a.keyword.value == "device"]
    places = (evaluator.value(place) for place in given)
    return any(place.kind is Kind.DEVICE and place.device is not Device.CPU for place in places)
