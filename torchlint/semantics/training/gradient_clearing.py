"""Loops that write zeros into the gradients of parameters, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Kind
from torchlint.syntax.calls import is_none, literal, method_call
from torchlint.syntax.canonical import is_same

_IN_PLACE_WRITES = frozenset(
    "add_ sub_ copy_ mul_ div_ clamp_ addcmul_ addcdiv_ index_add_ scatter_ masked_fill_ normal_".split()
)
_CLEARS = frozenset(("zero_", "fill_", "detach_", "requires_grad_"))
_ADDS = ("add_", "sub_", "copy_", "addcmul_", "addcdiv_")
# What moves parameters, or computes gradients for that, by its name.
_TRAINS = re.compile(r"backward|scaler|closure|optim|(^|_)opt(_|$)", re.IGNORECASE)
_ZEROS = frozenset(("torch.zeros_like", "torch.zeros"))


class ClearedGradients(NamedTuple):
    """A place that zeroes the gradient of each parameter that a loop visits."""

    parameter: cst.Name
    loop: cst.For | cst.CompFor
    """The outermost loop that belongs to the visit: with ``param_groups`` that over the groups."""

    owner: cst.BaseExpression | None
    """The module or optimizer all of whose parameters are visited, None if that is something else."""

    conditions: tuple[cst.BaseExpression, ...]
    """Tests, other than for a gradient that is there, under which a gradient is zeroed."""

    alone: bool
    """Whether the loop does nothing else."""


class GradientClearing:
    """Finds gradients that are zeroed in a loop."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self.names_gradient = any(map(self._is_gradient, self._tree.nodes(cst.Attribute)))

    @cached_property
    def has_nothing_to_clear(self) -> bool:
        """Whether the file takes gradients by ``torch.autograd.grad`` only, which leaves those of parameters None.

        It speaks of no backward pass, no scaler and no optimizer, and stores no gradient itself.
        """
        vocabulary = self._evaluator.vocabulary
        words = (*vocabulary.identifiers, *vocabulary.attributes, *vocabulary.imported)
        if any(map(_TRAINS.search, words)):
            return False
        stored = (target.target for target in self._tree.nodes(cst.AssignTarget))
        if any(isinstance(each, cst.Attribute) and each.attr.value == "grad" for each in stored):
            return False
        names = (self._evaluator.names.qualified(call.func) for call in self._tree.calls_named("grad"))
        return "torch.autograd.grad" in names

    def cleared(self, node: cst.CSTNode) -> ClearedGradients | None:
        """Return what ``p.grad.zero_()`` or ``p.grad = torch.zeros_like(p)`` zeroes where a loop binds ``p``."""
        parameter = self._parameter(node) if self.names_gradient else None
        if parameter is None:
            return None
        loop = self._loop(parameter)
        if loop is None:
            return None
        conditions = tuple(self._conditions(node, loop, parameter))
        outer, owner = self._owner(loop)
        alone = isinstance(loop, cst.For) and self._is_alone(loop, node, parameter)
        if alone and isinstance(outer, cst.For) and outer is not loop:
            alone = len(outer.body.body) == 1
        return ClearedGradients(parameter, outer, owner, conditions, alone)

    def is_read_after(self, loop: cst.For) -> bool:
        """Return whether the file reads a variable that a loop binds where the loop is over."""
        bound = {id(node): node for node in self._tree.descendants(loop) if isinstance(node, cst.Name)}
        names = {node.value for node in self._tree.descendants(loop.target) if isinstance(node, cst.Name)}
        others = (n for n in self._tree.nodes(cst.Name) if n.value in names and id(n) not in bound)
        reads = (n for n in others if self._evaluator.scopes.made_by(n) is None)
        return any(id(b.node) in bound for n in reads for b in self._evaluator.flow.definitions(n))

    def buffered(self, node: cst.CSTNode) -> bool:
        """Return whether the definition around a node computes into the tensors that ``.grad`` holds.

        Or, if it is a function that clears gradients, another one of the file adds to them.
        """
        outermost, loop = self._outermost(node), self._tree.enclosing(node, cst.For)
        gradients = (a for a in self._tree.attributes_named("grad") if self._is_target(a))
        buffers = (each for each in gradients if self._outermost(each) is outermost)
        if any(not self._is_of_other(each.value, loop) for each in buffers):
            return True
        clears = isinstance(outermost, cst.FunctionDef) and outermost.body.body[-1] is loop and _is_alone(outermost)
        added_to = filter(self._is_added_to, self._tree.attributes_named("grad")) if clears else ()
        return any(not self._tree.within(each, outermost) for each in added_to if outermost is not None)

    @staticmethod
    def _is_of_other(parameter: cst.BaseExpression, loop: cst.For | None) -> bool:
        """Whether a gradient is of one parameter of the object, and a loop goes through others of its parameters."""
        if loop is None or not isinstance(parameter, cst.Attribute) or not isinstance(loop.iter, cst.Attribute):
            return False
        return not is_same(parameter, loop.iter)

    def are_needed(self, node: cst.CSTNode) -> bool:
        """Return whether the file makes gradients parts of a larger tensor, or adds to those that must be there.

        Outside of the class around a node only where it stands in none.
        """
        outermost = self._outermost(node)
        needing = (a for a in self._tree.attributes_named("grad") if self._is_part(a) or self._is_added_to(a))
        return any(not isinstance(outermost, cst.ClassDef) or self._outermost(a) is outermost for a in needing)

    def are_read_beside(self, call: cst.Call) -> bool:
        """Return whether the function around a call works with each gradient, and does not ask whether there is one."""
        function = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        walks: list[cst.CompFor | cst.For] = [*self._tree.below(function, cst.CompFor)]
        for walk in (*walks, *self._tree.below(function, cst.For)):
            names = {name.value for name in self._tree.below(walk.target, cst.Name)}
            around = self._tree.parent(walk) if isinstance(walk, cst.CompFor) else walk
            gradients = (g for g in self._tree.attributes_named("grad") if around and self._tree.within(g, around))
            visited = [g for g in gradients if isinstance(g.value, cst.Name) and g.value.value in names]
            asked = any(
                isinstance(self._tree.parent(g), (cst.Comparison, cst.If, cst.BooleanOperation)) for g in visited
            )
            if any(map(self._is_worked_with, visited)) and not asked:
                return True
        return False

    def _is_worked_with(self, gradient: cst.Attribute) -> bool:
        """Whether something is computed of a gradient, other than zeros."""
        _, part = self._place(gradient)
        return isinstance(part, cst.Attribute) and part.attr.value not in _CLEARS

    def _place(self, gradient: cst.Attribute) -> tuple[cst.CSTNode, cst.CSTNode | None]:
        """A gradient, or ``.data`` of it, and what stands around that."""
        parent = self._tree.parent(gradient)
        if isinstance(parent, cst.Attribute) and parent.attr.value == "data":
            return parent, self._tree.parent(parent)
        return gradient, parent

    def _is_added_to(self, gradient: cst.Attribute) -> bool:
        """Whether something is added to a gradient in place: ``p.grad.add_(step)``, ``p.grad = p.grad + step``."""
        node, parent = self._place(gradient)
        if isinstance(parent, cst.AugAssign):
            return parent.target is node and isinstance(parent.operator, (cst.AddAssign, cst.SubtractAssign))
        if isinstance(parent, cst.Subscript):
            return isinstance(self._tree.parent(parent), cst.AssignTarget)
        if isinstance(parent, cst.Arg):
            return parent.keyword is not None and parent.keyword.value == "out"
        if isinstance(parent, cst.AssignTarget):
            statement = self._tree.parent(parent)
            total = statement.value if isinstance(statement, cst.Assign) else None
            return isinstance(total, cst.BinaryOperation) and is_same(total.left, gradient)
        return isinstance(parent, cst.Attribute) and parent.attr.value in _ADDS

    def may_take_no_argument(self, call: cst.Call) -> bool:
        """Return whether ``zero_grad`` may be that of a class of the file that takes no ``set_to_none``."""
        held = self._evaluator.value(call.func.value) if isinstance(call.func, cst.Attribute) else UNKNOWN
        is_one_of_list = held.kind is Kind.MODULE and held.definition is None  # perhaps of such a class
        is_of_torch = (held.name or "").startswith("torch.") or held.evidence is Evidence.PROVEN
        function = self._evaluator.definitions.enclosing_function(call)
        if function is not None and function.name.value == "zero_grad":
            return False  # what such a class holds is another
        return (is_one_of_list or not is_of_torch) and self._evaluator.definitions.narrows("zero_grad", "set_to_none")

    def _is_part(self, gradient: cst.Attribute) -> bool:
        """Whether a gradient is set to a part of a larger tensor, which every backward pass fills then."""
        target = self._tree.parent(gradient)
        assign = self._tree.parent(target) if isinstance(target, cst.AssignTarget) else None
        return isinstance(assign, cst.Assign) and _is_part(assign.value)

    def _outermost(self, node: cst.CSTNode) -> cst.CSTNode | None:
        found = None
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
                found = ancestor
        return found

    def _is_target(self, gradient: cst.Attribute) -> bool:
        node, parent = self._place(gradient)
        if isinstance(parent, cst.AugAssign):
            return parent.target is node and literal(parent.value) != 0
        if isinstance(parent, cst.Subscript):
            return isinstance(self._tree.parent(parent), cst.AssignTarget)
        if self._is_part(gradient):
            return True
        if isinstance(parent, cst.Attribute) and parent.attr.value in _IN_PLACE_WRITES:
            call = self._tree.parent(parent)
            return isinstance(call, cst.Call) and call.func is parent and not _multiplies_by_zero(call)
        return False

    def _parameter(self, node: cst.CSTNode) -> cst.Name | None:
        """Return the variable whose gradient a call or an assignment zeroes."""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            name = node.func.attr.value
            zero = name == "zero_" or (name == "fill_" and _first(node) == 0) or _multiplies_by_zero(node)
            return self._holder(node.func.value) if zero else None
        if isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.MultiplyAssign):
            return self._holder(node.target) if literal(node.value) == 0 else None
        if isinstance(node, cst.Assign) and len(node.targets) == 1 and self._is_zeros(node.value):
            return self._holder(node.targets[0].target)
        return None

    def _is_zeros(self, value: cst.BaseExpression) -> bool:
        if not isinstance(value, cst.Call):
            return False
        if isinstance(value.func, cst.Attribute) and value.func.attr.value == "new_zeros":
            return True
        return self._evaluator.names.qualified(value.func) in _ZEROS

    def _holder(self, gradient: cst.BaseExpression) -> cst.Name | None:
        """Return ``p`` of ``p.grad``, ``p.grad.data`` and ``p.grad.detach()``."""
        if isinstance(gradient, cst.Call) and isinstance(gradient.func, cst.Attribute):
            gradient = gradient.func.value if gradient.func.attr.value == "detach" else gradient
        if isinstance(gradient, cst.Attribute) and gradient.attr.value == "data":
            gradient = gradient.value
        if self._is_gradient(gradient) and isinstance(gradient, cst.Attribute):
            return gradient.value if isinstance(gradient.value, cst.Name) else None
        return None

    @staticmethod
    def _is_gradient(node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Attribute) and node.attr.value == "grad"

    def _loop(self, parameter: cst.Name) -> cst.For | cst.CompFor | None:
        """Return the loop whose variable a name is, if it stands in it."""
        found = self._evaluator.flow.definitions(parameter)
        if len(found) != 1 or found[0].kind is not BindingKind.ITERATION:
            return None
        node = self._tree.enclosing(found[0].node, cst.For, cst.CompFor)
        return node if isinstance(node, (cst.For, cst.CompFor)) else None

    def _conditions(
        self, node: cst.CSTNode, loop: cst.For | cst.CompFor, parameter: cst.Name
    ) -> Iterable[cst.BaseExpression]:
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor is loop:
                return
            if isinstance(ancestor, cst.If) and child is not ancestor.test:
                if child is ancestor.orelse or not self._has_gradient(ancestor.test, parameter):
                    yield ancestor.test
            elif isinstance(ancestor, COMPREHENSIONS) and isinstance(loop, cst.CompFor):
                yield from (c.test for c in loop.ifs if not self._has_gradient(c.test, parameter))
                return
            child = ancestor

    def _has_gradient(self, test: cst.BaseExpression, parameter: cst.Name) -> bool:
        """Whether a test only asks that a parameter has or wants a gradient."""
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self._has_gradient(test.left, parameter) and self._has_gradient(test.right, parameter)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            right = test.comparisons[0]
            if not isinstance(right.operator, (cst.IsNot, cst.NotEqual)) or not is_none(right.comparator):
                return False
            test = test.left
        if isinstance(test, cst.Attribute) and test.attr.value in ("grad", "requires_grad"):
            return isinstance(test.value, cst.Name) and test.value.value == parameter.value
        return False

    def _owner(self, loop: cst.For | cst.CompFor) -> tuple[cst.For | cst.CompFor, cst.BaseExpression | None]:
        iterated = loop.iter
        listed = method_call(iterated, "parameters", "named_parameters")
        if listed is not None and isinstance(iterated, cst.Call) and not iterated.args:
            return loop, listed.value
        if isinstance(iterated, cst.Subscript) and isinstance(iterated.value, cst.Name):
            outer = self._loop(iterated.value)
            groups = outer.iter if isinstance(outer, cst.For) else None
            if outer is not None and isinstance(groups, cst.Attribute) and groups.attr.value == "param_groups":
                return outer, groups.value
        return loop, None

    def _is_alone(self, loop: cst.For, node: cst.CSTNode, parameter: cst.Name) -> bool:
        """Whether the body of a loop holds the zeroing, tests for a gradient, ``detach_()`` and nothing else."""
        if loop.orelse is not None:
            return False
        return self._only_clears(loop.body, node, parameter)

    def _only_clears(self, block: cst.BaseSuite, node: cst.CSTNode, parameter: cst.Name) -> bool:
        for statement in block.body:
            if isinstance(statement, cst.SimpleStatementLine):
                if not all(self._clears(small, node, parameter) for small in statement.body):
                    return False
            elif isinstance(statement, cst.If):
                if statement.orelse is not None or not self._only_clears(statement.body, node, parameter):
                    return False
            elif not self._clears(statement, node, parameter):
                return False
        return True

    def _clears(self, small: cst.CSTNode, node: cst.CSTNode, parameter: cst.Name) -> bool:
        if small is node:
            return True
        if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
            return False
        call = small.value
        if call is node:
            return True
        detaches = isinstance(call.func, cst.Attribute) and call.func.attr.value in ("detach_", "requires_grad_")
        holder = self._holder(call.func.value) if isinstance(call.func, cst.Attribute) else None
        return detaches and holder is not None and holder.value == parameter.value


def _first(call: cst.Call) -> bool | int | float | str | None:
    return literal(call.args[0].value) if call.args else None


def _multiplies_by_zero(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "mul_" and _first(call) == 0


def _is_part(value: cst.BaseExpression) -> bool:
    """Return whether a value is a view of something: ``flat[:2].view(2)``."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value not in ("view", "view_as", "reshape"):
            return False
        value = value.func.value
    return isinstance(value, cst.Subscript)


def _is_alone(function: cst.FunctionDef) -> bool:
    """Return whether a function has one statement, besides what tells what it does."""
    lines = (each for each in function.body.body if isinstance(each, cst.SimpleStatementLine))
    texts = [line for line in lines if isinstance(line.body[0], cst.Expr) and literal(line.body[0].value) is not None]
    return len(function.body.body) == len(texts) + 1
