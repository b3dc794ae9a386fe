"""Values that outlive the step which computed them: sums and lists over steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.flow import LOOPS
from torchlint.semantics.heat import Heat, Hotness, Role
from torchlint.semantics.inference import Inference
from torchlint.semantics.keepers import Keepers
from torchlint.semantics.scopes import BindingKind
from torchlint.semantics.values import Graph, Kind, Origin
from torchlint.syntax.calls import method_call
from torchlint.syntax.canonical import is_same

_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack"))
_FRESH = (cst.Name, cst.Call, cst.BinaryOperation)
"""What is known by its value alone: an item or attribute may have been detached where it is held."""

_NO_SUMS = frozenset((Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE, Kind.NDARRAY, Kind.STRING))


@dataclass(frozen=True, slots=True)
class Retention:
    """A value with a graph that each step adds to a variable from outside of it."""

    variable: cst.BaseExpression
    values: tuple[cst.BaseExpression, ...]
    """What carries the graph: of a conditional expression the branches that do."""

    evidence: Evidence
    is_backpropagated: bool
    """Whether the variable flows into a backward pass."""

    is_remade: bool
    """Whether each step starts the variable anew."""

    step_is_complete: bool
    """Whether each pass is a whole step, so that nobody can want the graph of an earlier one."""


@dataclass(frozen=True, slots=True)
class _Kept:
    variable: cst.BaseExpression
    values: tuple[cst.BaseExpression, ...]
    is_stored: bool
    """Whether the object itself is kept, rather than a sum that is computed from it."""

    index: cst.BaseExpression | None = None
    """The place in the variable, where one is assigned to."""

    by_method: bool = False
    """Whether a method of the variable keeps it."""


class Retentions:
    """Finds what loops keep."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness, backward: Backward, inference: Inference) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness
        self._backward = backward
        self._inference = inference
        self._keepers = Keepers(evaluator)

    def retention(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """Return what a statement keeps with its graph.

        ``total += value``, ``total = total + value``, ``total = torch.cat([total, value])``, ``items.append(value)``,
        ``items[i] = value``
        """
        kept = self._kept(node)
        if kept is None or all(self._is_number(value) for value in kept.values):
            return None
        heat = self._place(node, kept.variable)
        if heat is None or (self._evaluator.gradients.disabled(node) and not self._keeps_object(kept)):
            return None
        if not kept.by_method and self._evaluator.value(kept.variable).kind in _NO_SUMS:
            return None
        if kept.index is not None and not self._varies(kept.index, heat.root):
            return None
        found = [(value, self._with_graph(value, node, heat)) for value in kept.values]
        carrying = [(value, *known) for value, known in found if known is not None]
        if not carrying:
            return None
        return Retention(
            kept.variable,
            tuple(branch for value, _, _ in carrying for branch in self._branches(value)),
            min(evidence for _, evidence, _ in carrying),
            self._backward.reaches(kept.variable, self._frame(node, kept.variable)),
            self._is_remade(kept.variable, node, heat.root),
            all(complete for _, _, complete in carrying),
        )

    def _branches(self, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The parts of a conditional expression that are tensors; any other expression is its only part."""
        if not isinstance(value, cst.IfExp):
            yield value
            return
        for branch in (value.body, value.orelse):
            known = self._evaluator.value(branch)
            if isinstance(branch, cst.IfExp) or (known.is_tensor and known.graph is not Graph.DETACHED):
                yield from self._branches(branch)

    # What is kept

    def _kept(self, node: cst.AugAssign | cst.Assign | cst.Call) -> _Kept | None:
        if isinstance(node, cst.AugAssign):
            if not isinstance(node.operator, cst.AddAssign):
                return None
            items = _items(node.value)
            return _Kept(node.target, items or (node.value,), bool(items))
        if isinstance(node, cst.Call):
            return _appended(node) or self._handed_over(node)
        return _summed(node) or self._joined(node) or _stored(node)

    def _joined(self, statement: cst.Assign) -> _Kept | None:
        """``x = torch.cat([x, value])``."""
        call = statement.value
        if not isinstance(call, cst.Call) or len(statement.targets) != 1 or not call.args or call.args[0].star:
            return None
        if self._evaluator.names.qualified(call.func) not in _JOINS:
            return None
        target, parts = statement.targets[0].target, _items(call.args[0].value)
        rest = tuple(part for part in parts if not is_same(part, target))
        return _Kept(target, rest, False) if rest and len(rest) < len(parts) else None

    def _handed_over(self, call: cst.Call) -> _Kept | None:
        """``meter.update(value)``, where the file shows that the method adds it up or appends it."""
        given = self._keepers.given(call)
        return _Kept(given.keeper, given.values, True, by_method=True) if given is not None else None

    def _varies(self, index: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether every step stores at another place: the index is bound by the loop over steps, or counted in it."""
        names = (node for node in self._tree.descendants(index) if isinstance(node, cst.Name))
        bound = (binding.node for name in names for binding in self._evaluator.flow.definitions(name))
        return any(self._tree.enclosing(place, *LOOPS) is root for place in bound)

    def _is_number(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, (cst.BaseNumber, cst.BaseString, cst.Comparison)):
            return True
        return method_call(value, "item", "detach", "tolist", "size", "numpy") is not None

    @staticmethod
    def _keeps_object(kept: _Kept) -> bool:
        """Whether a tensor that exists already is stored: no context takes its graph away."""
        return kept.is_stored and all(isinstance(v, (cst.Name, cst.Attribute, cst.Subscript)) for v in kept.values)

    # Where

    def _place(self, node: cst.CSTNode, variable: cst.BaseExpression) -> Heat | None:
        """The loop over steps around a node, or the function that is one step, where the variable outlives it."""
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, LOOPS) and child is ancestor.body:
                found = self._hotness.loop(ancestor)
                if found is not None:
                    return found
            elif isinstance(ancestor, cst.FunctionDef):
                if not self._is_attribute_of_self(variable):
                    return None
                found = self._hotness.function(ancestor)
                return (
                    found if found is not None and found.root is ancestor and self._is_step(found, ancestor) else None
                )
            elif isinstance(ancestor, (cst.ClassDef, cst.Lambda)):
                return None
            child = ancestor
        return None

    def _is_step(self, heat: Heat, function: cst.FunctionDef) -> bool:
        """Whether a function is one training step, by itself or together with the framework that calls it."""
        return heat.role is Role.STEP or any(step is function for step, _ in self._backward.framework_losses())

    def _is_attribute_of_self(self, variable: cst.BaseExpression) -> bool:
        base, is_attribute = variable, False
        while isinstance(base, (cst.Attribute, cst.Subscript)):
            is_attribute = is_attribute or isinstance(base, cst.Attribute)
            base = base.value
        return is_attribute and isinstance(base, cst.Name) and self._evaluator.definitions.receiver(base) is not None

    def _frame(self, node: cst.CSTNode, variable: cst.BaseExpression) -> cst.CSTNode:
        """Where to look for uses of a variable: its function; for attributes the class."""
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None:
            return self._tree.module
        owner = self._evaluator.definitions.owner(function)
        return owner if owner is not None and self._is_attribute_of_self(variable) else function

    # Whether it carries a graph

    def _with_graph(self, value: cst.BaseExpression, node: cst.CSTNode, heat: Heat) -> tuple[Evidence, bool] | None:
        """How certain it is that a value carries a graph, and whether the step around it is complete."""
        if self._is_mapping(value):
            return None
        if self._backward.differentiates(value, heat.root):
            return Evidence.INFERRED, True
        found = self._evaluator.value(value)
        if not found.is_tensor or found.graph is not Graph.ATTACHED:
            return None
        if heat.role is Role.TRAINING_LOOP and isinstance(value, _FRESH) and self._backward.passes(heat.root):
            return (found.evidence, True) if found.evidence >= Evidence.INFERRED else None
        if heat.role is not Role.EVALUATION_LOOP:
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        if function is not None and self._is_called_elsewhere(function):
            return None
        frame: cst.CSTNode = function if function is not None else self._tree.module
        evaluates = self._inference.routine_evaluates(function)
        if found.evidence < Evidence.INFERRED and not (evaluates and found.origin in (Origin.LOSS, Origin.OUTPUT)):
            return None
        evidence = max(found.evidence, Evidence.INFERRED) if self._takes_graph(value) else found.evidence
        return evidence, not self._backward.passes(frame)

    def _is_called_elsewhere(self, function: cst.FunctionDef) -> bool:
        """Whether only other code calls a method of a model, which may have switched gradients off."""
        owner = self._evaluator.definitions.owner(function)
        is_of_module = owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE
        return is_of_module and not self._evaluator.callers(function)

    def _takes_graph(self, value: cst.BaseExpression) -> bool:
        """Whether a call takes tensors that certainly carry a graph: then what is named a criterion is one."""
        if not isinstance(value, cst.Call):
            return False
        given = [self._evaluator.value(argument.value) for argument in value.args]
        return any(g.is_tensor and g.graph is Graph.ATTACHED and g.evidence >= Evidence.INFERRED for g in given)

    def _is_mapping(self, value: cst.BaseExpression) -> bool:
        """Whether a variable holds losses by name."""
        return bool(self._evaluator.usage.attributes(value) & {"values", "items", "keys", "update", "append"})

    # Whether it outlives the step

    def _is_remade(self, variable: cst.BaseExpression, node: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Whether every step binds or clears the variable, so that nothing of an earlier step is left."""
        inside = {id(block) for block, _ in self._evaluator.flow.blocks(node)}
        if isinstance(variable, cst.Name) and not self._evaluator.scopes.bindings(variable):
            return True
        return any(
            self._tree.within(reset, place) and self._always_runs(reset, inside)
            for reset in self._resets(variable)
            if reset is not node
        )

    def _resets(self, variable: cst.BaseExpression) -> list[cst.CSTNode]:
        """The places that make a variable, or what holds it, anew."""
        found: list[cst.CSTNode] = []
        held: cst.BaseExpression = variable
        while isinstance(held, (cst.Attribute, cst.Subscript)):
            found += [
                target
                for target in self._tree.nodes(cst.AssignTarget)
                if is_same(target.target, held) and not self._adds_to_itself(target)
            ]
            held = held.value
        if isinstance(held, cst.Name):
            bindings = self._evaluator.scopes.bindings(held)
            found += [
                b.node for b in bindings if b.kind is not BindingKind.AUGMENTED and not self._adds_to_itself(b.node)
            ]
        clears = (call for call in self._tree.nodes(cst.Call) if method_call(call, "clear") is not None)
        found += [c for c in clears if isinstance(c.func, cst.Attribute) and is_same(c.func.value, variable)]
        return found

    def _adds_to_itself(self, target: cst.CSTNode) -> bool:
        statement = self._evaluator.flow.statement(target)
        return isinstance(statement, cst.Assign) and (_summed(statement) or self._joined(statement)) is not None

    def _always_runs(self, reset: cst.CSTNode, inside: set[int]) -> bool:
        """Whether a statement stands in a block around the step, or in a ``with`` of one."""
        statement = self._evaluator.flow.statement(reset)
        if isinstance(statement, (cst.For, cst.With)):
            return id(statement.body) in inside
        for block, _ in self._evaluator.flow.blocks(statement):
            if id(block) in inside:
                return True
            if not isinstance(self._tree.parent(block), cst.With):
                return False
        return False


def _items(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """The elements of a list, tuple or dictionary that is written out."""
    if isinstance(value, cst.Dict):
        return tuple(e.value for e in value.elements if isinstance(e, cst.DictElement))
    if isinstance(value, (cst.List, cst.Tuple)):
        return tuple(e.value for e in value.elements if isinstance(e, cst.Element))
    return ()


def _appended(call: cst.Call) -> _Kept | None:
    method = method_call(call, "append", "appendleft", "extend")
    if method is None or len(call.args) != 1 or call.args[0].star or call.args[0].keyword is not None:
        return None
    given = call.args[0].value
    items = _items(given)
    if method.attr.value == "extend" and not items:
        return None
    return _Kept(method.value, items or (given,), True)


def _summed(statement: cst.Assign) -> _Kept | None:
    """``x = x + value``, ``x = 0.9 * x + 0.1 * value``, also as a branch: ``x = y if x is None else x + y``."""
    value = statement.value
    branches = (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
    made = next((branch for branch in branches if isinstance(branch, cst.BinaryOperation)), None)
    if len(statement.targets) != 1 or made is None:
        return None
    target = statement.targets[0].target
    terms = _terms(made)
    rest = tuple(term for term in terms if not _scales(term, target))
    return _Kept(target, rest, False) if rest and len(rest) < len(terms) else None


def _stored(statement: cst.Assign) -> _Kept | None:
    """``items[i] = value``."""
    target = statement.targets[0].target
    if len(statement.targets) != 1 or not isinstance(target, cst.Subscript) or len(target.slice) != 1:
        return None
    place = target.slice[0].slice
    if not isinstance(place, cst.Index):
        return None
    return _Kept(target.value, _items(statement.value) or (statement.value,), True, place.value)


def _terms(expression: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, (cst.Add, cst.Subtract)):
        return [*_terms(expression.left), *_terms(expression.right)]
    return [expression]


def _scales(term: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """Whether a term is a multiple of the target."""
    if isinstance(term, cst.BinaryOperation) and isinstance(term.operator, (cst.Multiply, cst.Divide)):
        return _scales(term.left, target) or (isinstance(term.operator, cst.Multiply) and _scales(term.right, target))
    return is_same(term, target) or _looks_up(term, target)


def _looks_up(term: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """Whether a term is ``sums.get(key, 0)`` for the target ``sums[key]``."""
    method = method_call(term, "get")
    if method is None or not isinstance(term, cst.Call) or not term.args or not isinstance(target, cst.Subscript):
        return False
    place = target.slice[0].slice if len(target.slice) == 1 else None
    same_key = isinstance(place, cst.Index) and is_same(place.value, term.args[0].value)
    return same_key and is_same(method.value, target.value)
