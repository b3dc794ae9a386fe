"""Loops in which an evaluation runs a model with gradients on, and what is computed there of its outputs."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.autograd.differentiated import COMPUTES, PASSES_ON
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.inference import Inference
from torchlint.semantics.values import Graph, Kind, Origin
from torchlint.syntax.calls import identifier, literal, method_call

_PARTS = frozenset(("chunk", "split", "unbind", "max", "min", "topk", "sort"))
_INDEXED = frozenset(("max", "min", "topk", "sort", "kthvalue", "mode", "median"))
"""What gives values and, second, their places, which carry no graph."""

_PLAIN = frozenset(("data", "shape", "dtype", "device", "indices", "ndim", "grad"))
_JOINS = frozenset(("torch.cat", "torch.concat", "torch.stack", "torch.vstack", "torch.hstack"))
_MAX_DEPTH = 8


class EvaluatedOutputs:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, inference: Inference) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._inference = inference
        self._for_nothing: dict[int, bool] = {}

    def gives(self, value: cst.BaseExpression, loop: cst.CSTNode, depth: int = 0) -> bool:
        """Return whether a pass of a loop computes a value of what a model gives there with its graph, for nothing."""
        if depth > _MAX_DEPTH:
            return False
        if isinstance(value, cst.Name):
            if self._is_plain(value):
                return False
            bindings = self._evaluator.flow.definitions(value)
            return bool(bindings) and all(self._binds(binding, loop, depth + 1) for binding in bindings)
        if isinstance(value, cst.BinaryOperation):
            return any(self.gives(side, loop, depth + 1) for side in (value.left, value.right))
        if isinstance(value, cst.Attribute):
            return value.attr.value not in _PLAIN and self.gives(value.value, loop, depth + 1)
        if isinstance(value, cst.Subscript):
            index = value.slice[0].slice
            is_place = isinstance(index, cst.Index) and literal(index.value) != 0 and _is_indexed(value.value)
            return not is_place and self.gives(value.value, loop, depth + 1)
        return isinstance(value, cst.Call) and self._of_call(value, loop, depth + 1)

    def _is_plain(self, name: cst.Name) -> bool:
        """Whether a variable holds no graph, or what a model gives beside its output, which may be anything."""
        known = self._evaluator.value(name)
        if known.graph is Graph.DETACHED or (known.known and not known.is_tensor):
            return True
        return any(any(binding.path) for binding in self._evaluator.flow.definitions(name))

    def is_plain_on_host(self, variable: cst.BaseExpression) -> bool:
        """Return whether a file makes an array of what a variable holds as it is: with a graph that is an error."""
        if not isinstance(variable, cst.Name):
            return False
        scopes = self._evaluator.scopes
        here = scopes.deciding(variable.value, scopes.scope(variable))
        same = (n for n in self._tree.named(variable.value) if scopes.deciding(n.value, scopes.scope(n)) is here)
        return any(map(self._becomes_array, same))

    def _becomes_array(self, name: cst.Name) -> bool:
        """Whether a name stands in ``torch.cat(outputs).cpu().numpy()``."""
        node: cst.CSTNode = name
        while True:
            parent = self._tree.parent(node)
            call = self._tree.parent(parent) if parent is not None else None
            if isinstance(parent, cst.Arg) and isinstance(call, cst.Call) and call.args[0] is parent:
                if self._evaluator.names.qualified(call.func) not in _JOINS:
                    return False
            elif not (isinstance(parent, cst.Attribute) and isinstance(call, cst.Call) and call.func is parent):
                return False
            elif parent.attr.value == "numpy":
                return True
            elif parent.attr.value not in PASSES_ON:
                return False
            node = call

    def _binds(self, binding: Binding, loop: cst.CSTNode, depth: int) -> bool:
        """Whether a pass of a loop binds a variable to such a value."""
        made = binding.value if binding.kind is BindingKind.ASSIGNMENT else None
        if not isinstance(made, cst.BaseExpression) or not self._tree.within(binding.node, loop):
            return False
        if self._evaluator.gradients.disabled(made) or (binding.path not in ((), (0,)) and _is_indexed(made)):
            return False
        return self.gives(made, loop, depth)

    def _of_call(self, call: cst.Call, loop: cst.CSTNode, depth: int) -> bool:
        known = self._evaluator.value(call)
        is_told = self._evaluator.definitions.definition(call.func) is not None and known.kind is Kind.NUMBER
        if self._is_for_nothing(call) and not is_told:
            return self._tree.within(call, loop) and not self._goes_over(loop, call.func)
        may_be = known.is_tensor or known.kind is Kind.SEQUENCE or not known.known  # `x.max(0)` is a pair
        if known.graph is Graph.DETACHED or not may_be:
            return False
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            is_computed = name.startswith("torch.") and known.is_tensor and bool(call.args)
            given = call.args[0].value if is_computed else None
            parts = [e.value for e in given.elements] if isinstance(given, (cst.List, cst.Tuple)) else [given]
            return any(part is not None and self.gives(part, loop, depth) for part in parts)
        method = method_call(call, *PASSES_ON, *COMPUTES, *_PARTS)
        if method is not None:
            return self.gives(method.value, loop, depth)
        is_loss = self._evaluator.value(call.func).origin is Origin.LOSS
        return is_loss and any(self.gives(argument.value, loop, depth) for argument in call.args)

    def _goes_over(self, loop: cst.CSTNode, model: cst.BaseExpression) -> bool:
        """Whether a loop takes one model, or layer, after the other: it has a few passes, and no steps."""
        bindings = self._evaluator.flow.definitions(model) if isinstance(model, cst.Name) else []
        taken = (binding.node for binding in bindings if binding.kind is BindingKind.ITERATION)
        return isinstance(loop, cst.For) and any(self._tree.within(each, loop.target) for each in taken)

    def _is_for_nothing(self, call: cst.Call) -> bool:
        """Whether a call runs a model with gradients on, and nobody can want them."""
        key = id(call)
        if key not in self._for_nothing:
            found = self._inference.call(call)
            gradients = self._evaluator.gradients
            self._for_nothing[key] = (
                found is not None
                and not (found.trains or found.frozen or found.is_dry_run or found.switches_off)
                and not (found.needs_gradients or found.turn is not None)
                and (found.function is None or found.returns_host_values)
                and not (gradients.disabled(call) or gradients.left_open(call) or gradients.wanted(call))
            )
        return self._for_nothing[key]


def _is_indexed(value: cst.CSTNode) -> bool:
    return isinstance(value, cst.Call) and identifier(value.func) in _INDEXED
