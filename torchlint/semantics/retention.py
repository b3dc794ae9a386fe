"""Values that outlive the step which computed them: sums, lists, and tensors that grow."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.flow import LOOPS
from torchlint.semantics.heat import Hotness, Role
from torchlint.semantics.scopes import BindingKind
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import identifier, literal, method_call

_FEW = 8


@dataclass(frozen=True, slots=True)
class Retention:
    """A value with a graph that a loop over steps adds to a variable from outside its body."""

    variable: cst.BaseExpression
    value: cst.BaseExpression
    evidence: Evidence
    is_backpropagated: bool
    """Whether the variable flows into a backward pass."""

    step_is_complete: bool
    """Whether each pass of the loop is a whole step, so that nobody can want the graph of an earlier one."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A tensor that is concatenated with itself in every pass of a loop."""

    variable: cst.BaseExpression
    loop: cst.For | cst.While
    few_passes: bool


class Retentions:
    """Finds what loops keep."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness
        self._backward = backward

    def retention(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """Return what ``total += value``, ``total = total + value`` or ``items.append(value)`` keeps with its graph."""
        pair = self._kept(node)
        if pair is None:
            return None
        variable, kept = pair
        heat = self._hotness.heat(node, through_flags=True)
        if heat is None or not isinstance(heat.root, LOOPS):
            return None
        value = self._evaluator.value(kept)
        if not value.is_tensor or value.graph is not Graph.ATTACHED or value.evidence < Evidence.INFERRED:
            return None
        if self._evaluator.gradients.disabled(node) or self._is_remade(variable, heat.root):
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        frame: cst.CSTNode = function if function is not None else self._tree.module
        if self._evaluator.value(variable).kind in (Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE):
            return None
        passes = self._backward.passes(heat.root)
        evaluates = heat.role is Role.EVALUATION_LOOP and not self._backward.passes(frame)
        complete = evaluates or any(self._backward.mentions(call, kept) for call in passes)
        return Retention(variable, kept, value.evidence, self._backward.reaches(variable, frame), complete)

    def _kept(
        self, node: cst.AugAssign | cst.Assign | cst.Call
    ) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        if isinstance(node, cst.AugAssign):
            return (node.target, node.value) if isinstance(node.operator, cst.AddAssign) else None
        if isinstance(node, cst.Call):
            append = method_call(node, "append")
            plain = append is not None and len(node.args) == 1 and not node.args[0].star
            return (append.value, node.args[0].value) if append is not None and plain else None
        if len(node.targets) != 1 or not isinstance(node.value, cst.BinaryOperation):
            return None
        target, total = node.targets[0].target, node.value
        if isinstance(total.operator, cst.Add) and target.deep_equals(total.left):
            return target, total.right
        return None

    def _is_remade(self, variable: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        """Whether the variable is bound anew inside the loop, so that nothing of an earlier pass is left."""
        root: cst.BaseExpression = variable
        while isinstance(root, (cst.Subscript, cst.Attribute)):
            root = root.value
        if not isinstance(root, cst.Name):
            return True
        bindings = [b for b in self._evaluator.scopes.bindings(root) if b.kind is not BindingKind.AUGMENTED]
        if isinstance(variable, cst.Name):
            bindings = [b for b in bindings if not self._adds_to_itself(b.node)]
        inside = [b for b in bindings if any(ancestor is loop for ancestor in self._tree.ancestors(b.node))]
        return bool(inside) or not bindings

    def _adds_to_itself(self, name: cst.CSTNode) -> bool:
        statement = self._tree.enclosing(name, cst.Assign)
        return statement is not None and self._kept(statement) is not None

    def growth(self, call: cst.Call) -> Growth | None:
        """Return the growth that ``x = torch.cat([x, y])`` in a loop is, None if x starts afresh in each pass."""
        statement = self._tree.parent(call)
        if not isinstance(statement, cst.Assign) or not call.args:
            return None
        target = statement.targets[0].target
        parts = call.args[0].value
        if not isinstance(parts, (cst.Tuple, cst.List)) or not isinstance(target, (cst.Name, cst.Attribute)):
            return None
        own = next((e.value for e in parts.elements if e.value.deep_equals(target)), None)
        loop = self._loop(call)
        if own is None or loop is None or len(parts.elements) < 2:
            return None
        if isinstance(own, cst.Name):
            carried = any(b.value is call for b in self._evaluator.flow.definitions(own))
        else:
            carried = not self._is_reset(own, statement, loop)
        return Growth(target, loop, self._is_short(loop)) if carried else None

    def _loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, cst.FunctionDef):
                return None
            if isinstance(ancestor, (cst.For, cst.While)):
                return ancestor
        return None

    def _is_reset(self, own: cst.BaseExpression, statement: cst.Assign, loop: cst.For | cst.While) -> bool:
        return any(
            isinstance(node, cst.Assign) and node is not statement and node.targets[0].target.deep_equals(own)
            for node in self._tree.descendants(loop.body)
        )

    def _is_short(self, loop: cst.For | cst.While) -> bool:
        """Whether a loop runs over layers or a small constant number of times."""
        if not isinstance(loop, cst.For):
            return False
        step = self._evaluator.iterated(loop)
        if step.kind is Kind.MODULE or any(e.kind is Kind.MODULE for e in step.elements or ()):
            return True
        if isinstance(loop.iter, (cst.Tuple, cst.List)):
            return len(loop.iter.elements) <= _FEW
        if isinstance(loop.iter, cst.Call) and identifier(loop.iter.func) == "range":
            bounds = [literal(a.value) for a in loop.iter.args]
            return bool(bounds) and all(isinstance(b, int) and b <= _FEW for b in bounds)
        return False
