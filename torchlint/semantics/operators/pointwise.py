"""Functions that compute number by number, and how many kernels they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.syntax.calls import identifier, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_NAMES = frozenset(
    "abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh ceil celu clamp clamp_max clamp_min clip cos cosh "
    "div elu erf erfc exp exp2 expm1 floor gelu hardsigmoid hardswish hardtanh leaky_relu lerp log log10 log1p log2 "
    "logit logsigmoid masked_fill maximum minimum mish mul neg pow reciprocal relu relu6 round rsqrt selu sigmoid sign "
    "silu sin sinc sinh softplus softsign sqrt square sub subtract multiply divide tan tanh tanhshrink where xlogy "
    "exp_ mul_ add_ sub_ div_ pow_ sigmoid_ tanh_ clamp_ sqrt_".split()
)
_HOMES = ("torch", "torch.nn.functional", "torch.special", "torch.Tensor")
_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)


def kernels(function: cst.FunctionDef, model: Model) -> int | None:
    """Return how many operations on tensors a function runs, None if it does anything but compute number by number."""
    if not isinstance(function.body, cst.IndentedBlock) or not _may_be_pointwise(function.body, model):
        return None
    lines = [_single(line) for line in function.body.body]
    statements = [line for line in lines if not _is_docstring(line)]
    returned = statements[-1] if statements else None
    if not isinstance(returned, cst.Return) or returned.value is None:
        return None
    if not all(isinstance(statement, (cst.Assign, cst.AugAssign)) for statement in statements[:-1]):
        return None
    if not isinstance(returned.value, (cst.BinaryOperation, cst.Call, cst.Name, cst.UnaryOperation)):
        return None
    counter = _Counter(function, model)
    for statement in statements[:-1]:
        if not counter.takes(statement):
            return None
    found = counter.count(returned.value)
    return None if found is None else counter.total + found


def _may_be_pointwise(body: cst.IndentedBlock, model: Model) -> bool:
    """Whether each call below is one of a pointwise operation by its name, or of ``math``."""
    calls = (call.func for call in model.tree.below(body, cst.Call))
    return all(
        identifier(called) in _NAMES or (isinstance(called, cst.Attribute) and identifier(called.value) == "math")
        for called in calls
    )


def _single(line: cst.CSTNode) -> cst.CSTNode | None:
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def _is_docstring(line: cst.CSTNode | None) -> bool:
    return isinstance(line, cst.Expr) and isinstance(line.value, (cst.SimpleString, cst.ConcatenatedString))


class _Counter:
    """Counts along a function; what is a tensor is known from how the function uses it."""

    def __init__(self, function: cst.FunctionDef, model: Model) -> None:
        self._model = model
        self.total = 0
        names = {parameter.name.value for parameter in parameters(function)}
        own = (
            function.params.params[0].name.value if model.definitions.owner(function) and function.params.params else ""
        )
        self._names = names - {own}
        self._tensors: set[str] = set()
        for node in model.descendants(function.body):
            if isinstance(node, cst.Name) and node.value in self._names - self._tensors and self._is_tensor(node):
                self._tensors.add(node.value)

    def _is_tensor(self, node: cst.Name) -> bool:
        """Whether a parameter goes into an operation of torch, or is annotated as a tensor."""
        method = self._model.parent(node)
        call = self._model.parent(method) if isinstance(method, (cst.Arg, cst.Attribute)) else None
        is_first = isinstance(call, cst.Call) and (call.func is method or call.args[0] is method)
        return (is_first and self._operation(call)) or self._model.value(node).is_tensor

    def takes(self, statement: cst.CSTNode | None) -> bool:
        """Count a statement; False if it does something else than to compute a name number by number."""
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            target, extra = statement.targets[0].target, 0
        elif isinstance(statement, cst.AugAssign):
            target, extra = statement.target, 1
        else:
            return False
        found = self.count(statement.value)
        if not isinstance(target, cst.Name) or found is None:
            return False
        if self._has_tensor(statement.value):
            self._tensors.add(target.value)
        self.total += found + (extra if target.value in self._tensors else 0)
        return True

    def count(self, node: cst.BaseExpression) -> int | None:
        """Return the operations on tensors in an expression, None if something in it is no pointwise one."""
        if isinstance(node, (cst.Name, cst.Attribute, cst.BaseNumber)) or literal(node) is not None:
            return 0
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _OPERATORS):
            return self._sum([node.left, node.right], node)
        if isinstance(node, cst.UnaryOperation):
            return self._sum([node.expression], node)
        if isinstance(node, cst.Comparison):
            return self._sum([node.left, *(target.comparator for target in node.comparisons)], node)
        if not isinstance(node, cst.Call):
            return None
        name = self._model.qualified_name(node.func) or ""
        if name.startswith("math.") and not self._has_tensor(node):
            return 0
        if not self._operation(node):
            return None
        method = method_call(node) if not name else None
        return self._sum([a.value for a in node.args] + ([method.value] if method is not None else []), node)

    def _operation(self, node: cst.CSTNode | None) -> bool:
        """Whether a call is a pointwise operation, as a function of torch or as a method."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, (cst.Attribute, cst.Name)):
            return False
        name = self._model.qualified_name(node.func)
        if name is not None:
            home, _, last = name.rpartition(".")
            return home in _HOMES and last in _NAMES
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in _NAMES

    def _sum(self, parts: list[cst.BaseExpression], node: cst.BaseExpression) -> int | None:
        found = [self.count(part) for part in parts]
        if any(count is None for count in found):
            return None
        return sum(count for count in found if count is not None) + (1 if self._has_tensor(node) else 0)

    def _has_tensor(self, node: cst.CSTNode) -> bool:
        return any(isinstance(part, cst.Name) and part.value in self._tensors for part in self._model.descendants(node))
