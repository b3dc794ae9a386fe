"""What a forward pass computes of its input or parameters, by operations that gradients go through."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.entry_points import may_have_parameters
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Graph, Kind, Origin
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.walk import Tree

_CUTS = frozenset(("detach", "detach_", "data", "item", "tolist", "numpy", "shape", "dtype", "device", "ndim", "size"))
# What gives whole numbers, or asks: no gradient goes through it.
_PAIRS = frozenset("max min topk sort kthvalue median mode".split())
_WHOLE = frozenset(
    "argmax argmin argsort long int bool one_hot bincount nonzero unique numel dim eq ne gt ge lt le sign floor ceil "
    "isnan isfinite count_nonzero searchsorted bucketize histc multinomial zeros_like ones_like rand_like randn_like "
    "randint_like empty_like full_like nelement element_size isinf "
    "equal allclose data_ptr byte char short tensor Tensor new_zeros new_ones new_full new_empty new_tensor".split()
)
_INTEGERS = frozenset(f"torch.{name}" for name in "int8 int16 int32 int64 uint8 bool long int short".split())
_MAX_DEPTH = 12


class InputGraphs:
    """Follows values to the parameters of their method."""

    def __init__(self, evaluator: Evaluator, without: re.Pattern[str] | None = None) -> None:
        """``without``: what arguments without a graph are called."""
        self._evaluator = evaluator
        self._names = evaluator.names
        self._without = without

    def follows(self, value: cst.BaseExpression, method: cst.FunctionDef) -> bool:
        """Return whether a value carries the graph of what a method is given, if that has one."""
        return self._follows(value, method, 0)

    def _follows(self, value: cst.BaseExpression, method: cst.FunctionDef, depth: int) -> bool:
        """Whether a value is computed of an argument, or of a parameter of the module, by what gradients go through."""
        if depth > _MAX_DEPTH or isinstance(value, (cst.Comparison, cst.BooleanOperation, cst.Subscript)):
            is_part = isinstance(value, cst.Subscript) and not self._is_place(value)
            return is_part and isinstance(value, cst.Subscript) and self._follows(value.value, method, depth + 1)
        if isinstance(value, cst.Name):
            made = self._evaluator.flow.definitions(value)
            if any(map(self._cuts, made)) or self._is_detached_in_place(value, method):
                return False
            return any(self._binds_input(each, method, depth) for each in made)
        if isinstance(value, cst.Attribute):
            known = self._evaluator.value(value)
            return known.origin is Origin.PARAMETER and known.graph is not Graph.DETACHED and not self._freezes
        if isinstance(value, cst.BinaryOperation):
            return any(self._follows(side, method, depth + 1) for side in (value.left, value.right))
        if isinstance(value, cst.IfExp):
            return all(self._follows(branch, method, depth + 1) for branch in (value.body, value.orelse))
        if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
            return self._follows(value.elt, method, depth + 1)
        if isinstance(value, (cst.List, cst.Tuple)):
            return any(self._follows(element.value, method, depth + 1) for element in value.elements)
        if isinstance(value, cst.UnaryOperation):
            return self._follows(value.expression, method, depth + 1)
        return isinstance(value, cst.Call) and self._passes_on(value, method, depth + 1)

    def _is_layer(self, called: cst.BaseExpression) -> bool:
        """Whether a call runs a layer with weights that the object holds: ``self.encoder(x)``."""
        known = self._evaluator.value(called) if isinstance(called, cst.Attribute) else None
        if known is None or known.kind is not Kind.MODULE or known.origin is Origin.LOSS:
            return False
        return known.evidence >= Evidence.INFERRED and may_have_parameters(known)

    def _is_place(self, part: cst.Subscript) -> bool:
        """Whether a part of what ``topk`` and such give is where the values were: ``x.topk(3)[1]``."""
        index = part.slice[0].slice if len(part.slice) == 1 else None
        made = self._evaluator.flow.definitions(part.value) if isinstance(part.value, cst.Name) else []
        given = [part.value, *(binding.value for binding in made)]
        is_second = isinstance(index, cst.Index) and literal(index.value) == 1
        return is_second and any(isinstance(each, cst.Call) and identifier(each.func) in _PAIRS for each in given)

    def _is_detached_in_place(self, name: cst.Name, method: cst.FunctionDef) -> bool:
        tree = self._evaluator.tree
        cuts = (call for call in map(method_call, tree.calls_named("detach_")) if call is not None)
        return any(identifier(cut.value) == name.value and tree.within(cut, method.body) for cut in cuts)

    def _cuts(self, binding: Binding) -> bool:
        """Whether a variable is bound to what has no graph, if only on some ways: detached, or computed without."""
        made = binding.value if binding.kind is BindingKind.ASSIGNMENT else None
        if made is None or not isinstance(made, cst.BaseExpression):
            return False
        around = self._evaluator.tree.enclosing(made, cst.With, cst.FunctionDef)
        contexts = [item.item for item in around.items] if isinstance(around, cst.With) else []
        is_open = any(isinstance(context, (cst.Name, cst.Attribute)) for context in contexts)
        return is_open or method_call(made, "detach") is not None or self._evaluator.gradients.disabled(made)

    @cached_property
    def _freezes(self) -> bool:
        """Whether the file says of some parameters that they need no gradients."""
        tree = self._evaluator.tree
        if tree.attributes_named("requires_grad") or tree.attributes_named("requires_grad_"):
            return True
        return any(a.keyword is not None and a.keyword.value == "requires_grad" for a in tree.nodes(cst.Arg))

    def _binds_input(self, binding: Binding, method: cst.FunctionDef, depth: int) -> bool:
        if binding.kind is BindingKind.PARAMETER:
            own = [parameter for parameter in parameters(method)[1:] if parameter.default is None]
            if self._without is not None and self._without.search(identifier(binding.node)):
                return False
            return any(binding.node is parameter.name or binding.node is parameter for parameter in own)
        if binding.kind is BindingKind.ITERATION and isinstance(binding.value, cst.BaseExpression):
            takes_value = not binding.path or (binding.path == (1,) and method_call(binding.value, "items") is not None)
            return takes_value and self._follows(binding.value, method, depth + 1)
        made = binding.value if binding.kind is BindingKind.ASSIGNMENT else None
        if binding.path[:1] == (1,) and isinstance(made, cst.Call) and identifier(made.func) in _PAIRS:
            return False  # the places of the values
        return made is not None and self._follows(binding.part or made, method, depth + 1)

    def _passes_on(self, call: cst.Call, method: cst.FunctionDef, depth: int) -> bool:
        """Whether a function of torch, a method of a tensor, or a function of the file computes with the input."""
        if identifier(call.func) in _CUTS | _WHOLE or self._evaluator.gradients.disabled(call):
            return False
        receiver = method_call(call)
        types = (self._names.qualified(argument.value) for argument in call.args)
        if receiver is not None and any(name in _INTEGERS for name in types):
            return False
        if self._is_layer(call.func):
            return not self._freezes  # it has weights of its own
        name = self._names.qualified(call.func)
        if name is None and receiver is not None and self._evaluator.definitions.definition(call.func) is None:
            return self._follows(receiver.value, method, depth)
        made = self._evaluator.definitions.definition(call.func)
        if not (name or "").startswith("torch.") and not isinstance(made, cst.FunctionDef):
            return False
        if isinstance(made, cst.FunctionDef) and self._evaluator.gradients.function_disabled(made):
            return False
        given = self._evaluator.returned(made) if isinstance(made, cst.FunctionDef) else None
        if given is not None and (given.graph is Graph.DETACHED or given.kind is Kind.NUMBER):
            return False
        return any(self._follows(argument.value, method, depth) for argument in call.args)


def assigned_places(owner: cst.ClassDef, tree: Tree) -> list[cst.CSTNode]:
    """Return the places that a class assigns to, also in tuples."""
    targets: list[cst.CSTNode] = [target.target for target in tree.below(owner, cst.AssignTarget)]
    targets += [declared.target for declared in tree.below(owner, cst.AnnAssign)]
    tuples = [target for target in targets if isinstance(target, cst.Tuple)]
    return [*targets, *(element.value for target in tuples for element in target.elements)]
