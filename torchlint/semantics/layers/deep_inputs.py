"""Whether what goes into a layer is written to have three dimensions or more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeGuard

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.layers.constructors import Constructors
from torchlint.syntax.calls import literal

SAME_RANK = frozenset(
    "torch.nn." + name
    for name in (
        "Linear LazyLinear Identity BatchNorm1d LazyBatchNorm1d SyncBatchNorm LayerNorm Dropout AlphaDropout ReLU "
        "ReLU6 LeakyReLU PReLU RReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign Hardtanh Hardswish "
        "Hardsigmoid LogSigmoid Softmax LogSoftmax Threshold"
    ).split()
)
SAME_RANK_FUNCTIONS = frozenset(
    "relu relu6 leaky_relu elu selu gelu silu sigmoid tanh softplus dropout softmax log_softmax normalize hardswish "
    "mish relu_ dropout_ abs clamp exp linear Variable FloatTensor Tensor as_tensor tensor from_numpy".split()
)
SAME_RANK_METHODS = frozenset(
    "to cuda cpu float half double detach clone contiguous relu relu_ sigmoid tanh type requires_grad_ type_as".split()
)

_DEEP = frozenset(
    "torch.nn." + name
    for name in (
        "LSTM GRU RNN MultiheadAttention TransformerEncoder TransformerEncoderLayer TransformerDecoder "
        "TransformerDecoderLayer Transformer Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
        "AvgPool1d AvgPool2d MaxPool1d MaxPool2d BatchNorm2d BatchNorm3d"
    ).split()
)
_SIZED = frozenset("randn rand zeros ones empty FloatTensor Tensor".split())
_OF_STACKS = frozenset(("matmul", "cdist"))
"""Functions and methods that keep the dimensions before the last two, of either argument."""


class DeepInputs:
    """Looks at how inputs are made, and at how their shape is read."""

    def __init__(
        self,
        evaluator: Evaluator,
        constructors: Constructors,
        fed: Mapping[cst.CSTNode, Collection[cst.CSTNode]],
        outputs: Mapping[cst.Call, frozenset[cst.Call]],
        callers: Callable[[cst.FunctionDef], Sequence[cst.Call]],
    ) -> None:
        self._evaluator = evaluator
        self._constructors = constructors
        self._fed = fed
        self._outputs = outputs
        self._callers = callers

    def takes_more(self, layer: cst.Call) -> bool:
        """Return whether something that goes into a layer is written to have three dimensions or more."""
        return self._any(self._fed.get(layer, ()), {layer})

    def _any(self, given: Iterable[cst.CSTNode], seen: set[cst.CSTNode]) -> bool:
        return any(self._is_deeper(node, seen) for node in given)

    def _is_deeper(self, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
        if node in seen or len(seen) > 60:
            return False
        seen.add(node)  # one place that is deeper is enough: nothing is looked at twice
        if isinstance(node, cst.Name):
            bindings = self._evaluator.flow.definitions(node)
            return self._is_read_so(node) or any(self._any(self._given(binding), seen) for binding in bindings)
        if isinstance(node, cst.BinaryOperation):
            return self._any((node.left, node.right), seen)
        if isinstance(node, cst.Subscript):
            return _takes_axes(node) > 2 or (_adds_axis(node) and _takes_axes(node) > 1)
        if not isinstance(node, cst.Call):
            return False
        if node in self._outputs:
            return self._any(self._outputs[node], seen)
        names = {constructor.name for constructor in self._constructors.of(node.func)}
        if names & (_DEEP | SAME_RANK):
            return names <= _DEEP or (names <= SAME_RANK and self._any(self._fed.get(node, ()), seen))
        return self._makes_deeper(node, seen) or self._is_deep_module(node)

    def _is_deep_module(self, call: cst.Call) -> bool:
        """Whether a call runs a layer that is not followed otherwise: ``self.lstm(embedded)``."""
        return self._evaluator.value(call.func).name in _DEEP

    def _given(self, binding: Binding) -> list[cst.CSTNode]:
        """What a variable is bound to, or what calls of this file pass for it."""
        if binding.kind is BindingKind.ASSIGNMENT:
            is_whole = binding.path in ((), (0,))  # `outputs, state = self.lstm(inputs)`
            return [binding.value] if binding.value is not None and is_whole else []
        function = binding.scope.node
        if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return []
        param = next((p for p in parameters(function) if p.name is binding.node), None)
        calls = self._callers(function) if param is not None else []
        passed = [
            argument_for(function, param, call, self._evaluator.definitions) for call in calls if param is not None
        ]
        return [argument for argument in passed if argument is not None]

    def _is_read_so(self, name: cst.Name) -> bool:
        """Whether the third size of a variable is read: ``batch, length, _ = x.shape``, ``x.size(2)``."""
        definitions = self._evaluator.flow.definitions
        bound = definitions(name)
        return any(
            owner.value == name.value and definitions(owner) == bound
            for read in self._evaluator.tree.nodes(cst.Attribute)
            if isinstance(owner := read.value, cst.Name) and read.attr.value in ("shape", "size", "dim", "ndim")
            if self._reads_third(read)
        )

    def _reads_third(self, read: cst.Attribute) -> bool:
        tree = self._evaluator.tree
        value: cst.CSTNode = read
        parent = tree.parent(read)
        if isinstance(parent, cst.Call) and parent.func is read:
            if read.attr.value == "size" and parent.args:
                return literal(parent.args[0].value) == 2
            value, parent = parent, tree.parent(parent)
        if read.attr.value in ("dim", "ndim"):
            return _is_three(parent) and isinstance(tree.parent(parent), cst.Assert)
        if isinstance(parent, cst.Subscript) and parent.value is value:
            index = parent.slice[0].slice
            return isinstance(index, cst.Index) and literal(index.value) == 2
        target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
        return isinstance(target, cst.Tuple) and len(target.elements) > 2

    def _makes_deeper(self, call: cst.Call, seen: set[cst.CSTNode]) -> bool:
        given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
        name = self._evaluator.names.qualified(call.func)
        last = name.rpartition(".")[2] if name is not None else getattr(call.func, "value", "")
        if name is None and isinstance(call.func, cst.Attribute):
            return self._method_makes_deeper(call.func, given, seen)
        if last in ("einsum", "rearrange", "repeat") and given:
            return _axes_written(given) > 2
        if last in ("reshape", "permute"):
            return _count(given[1:]) > 2
        if last in _OF_STACKS:
            return self._any(given[:2], seen)
        if last in _SIZED:
            return _count(given) > 2
        return last == "bmm" or (last in SAME_RANK_FUNCTIONS and self._any(given[:1], seen))

    def _method_makes_deeper(
        self, method: cst.Attribute, given: Sequence[cst.BaseExpression], seen: set[cst.CSTNode]
    ) -> bool:
        name, owner = method.attr.value, method.value
        if name in ("view", "reshape", "permute", "repeat", "expand"):
            return _count(given) > 2
        if name in ("transpose", "swapaxes"):
            axes = [literal(each) for each in given]
            return 2 in axes or -3 in axes or {-1, -2} <= set(axes) or self._is_deeper(owner, seen)
        if name in ("flatten", "unsqueeze"):
            return bool(given) and literal(given[0]) == 2
        if name in _OF_STACKS:
            return self._any((owner, *given[:1]), seen)
        return name == "bmm" or (name in SAME_RANK_METHODS | {"softmax"} and self._is_deeper(owner, seen))


def _count(sizes: Sequence[cst.BaseExpression]) -> int:
    """How many sizes are given, one by one or in a tuple."""
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        return len(sizes[0].elements)
    return len(sizes) if not any(isinstance(size, (cst.Tuple, cst.List)) for size in sizes) else 0


def _axes_written(given: Sequence[cst.BaseExpression]) -> int:
    """How many axes the result of ``einsum("bij,bjk->bik", ...)`` or ``rearrange(x, "b c h w -> b c (h w)")`` has."""
    for argument in given[:2]:
        pattern = literal(argument)
        if isinstance(pattern, str) and "->" in pattern:
            result = pattern.rpartition("->")[2]
            while "(" in result:
                before, _, rest = result.partition("(")
                result = f"{before} x {rest.partition(')')[2]}"
            words = result.split()
            return len(words) if len(words) > 1 or " " in pattern.partition("->")[0].strip() else len("".join(words))
    return 0


def _takes_axes(node: cst.Subscript) -> int:
    """How many axes a subscript leaves as they are or adds, as far as it names them."""
    return sum(isinstance(each.slice, cst.Slice) or _is_none(each.slice) for each in node.slice)


def _adds_axis(node: cst.Subscript) -> bool:
    return any(_is_none(each.slice) for each in node.slice)


def _is_none(index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Name) and index.value.value == "None"


def _is_three(comparison: cst.CSTNode | None) -> TypeGuard[cst.Comparison]:
    if not isinstance(comparison, cst.Comparison):
        return False
    operation = comparison.comparisons[0]
    return isinstance(operation.operator, cst.Equal) and literal(operation.comparator) in (3, 4)
