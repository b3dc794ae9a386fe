"""Buffers that a rollout fills with what a network gives, and that are only read without the graph."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.names import unpack
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.retention.meters import Given
from torchlint.semantics.retention.stores import Retention, Store, appended
from torchlint.semantics.values import Graph
from torchlint.syntax.calls import method_call
from torchlint.syntax.canonical import is_same

_DETACHES = frozenset(("detach", "data", "item", "tolist"))
_CARRY = frozenset("mean sum view reshape squeeze unsqueeze flatten cpu std float to clone".split())
_JOINS = frozenset(("torch.stack", "torch.cat"))
_SAYS = frozenset(("shape", "device", "dtype", "size", "numel"))


class Rollouts:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def retention(self, kept: Store) -> Retention | None:
        """Return what ``values[step] = critic(x)`` keeps with its graph; None where something may want that.

        ``log_probs.append(distribution.log_prob(action))``
        """
        is_filled = kept.index is not None or (kept.is_stored and not kept.by_method)
        if not is_filled or len(kept.values) != 1 or not self._is_only_read_detached(kept.variable):
            return None
        found = unpack(self._evaluator.value(kept.values[0]), () if kept.part is None else (kept.part,))
        if not found.is_tensor or found.graph is not Graph.ATTACHED or found.evidence < Evidence.INFERRED:
            return None
        is_part = kept.part is not None
        return Retention(kept.variable, kept.values, found.evidence, False, False, True, is_part)

    def handed(self, kept: Store, given: Given, places: list[cst.BaseExpression]) -> Retention | None:
        """Return what a buffer of the file keeps of what ``buffer.add(values, log_probs)`` hands over."""
        pairs = zip(given.values, places, strict=True)
        found = tuple(v for v, place in pairs if self._is_graph(v) and self._is_only_read_detached(place))
        return Retention(kept.variable, found, Evidence.INFERRED, False, False, True, False) if found else None

    def _is_graph(self, value: cst.BaseExpression) -> bool:
        """Whether a value carries a graph: it is known to, or code detaches another result of the same call."""
        found = self._evaluator.value(value)
        if not found.is_tensor or found.evidence < Evidence.INFERRED or found.graph is Graph.DETACHED:
            return False
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        if found.graph is Graph.ATTACHED or len(bindings) != 1:
            return found.graph is Graph.ATTACHED
        results = self._tree.parent(self._tree.parent(bindings[0].node) or value)
        others = [e.value for e in results.elements] if isinstance(results, cst.Tuple) else []
        return not self._evaluator.gradients.disabled(bindings[0].node) and any(
            isinstance(other, cst.Name) and other is not bindings[0].node and self._is_cut_off(other)
            for other in others
        )

    def _is_cut_off(self, result: cst.Name) -> bool:
        """Whether a variable is detached where it is used: ``actions.detach().cpu()``."""
        scopes = self._evaluator.scopes
        here = scopes.deciding(result.value, scopes.scope(result))
        for name in self._tree.named(result.value):
            attribute = self._tree.parent(name)
            is_detach = isinstance(attribute, cst.Attribute) and attribute.value is name
            if is_detach and isinstance(attribute, cst.Attribute) and attribute.attr.value == "detach":
                made = {id(binding.node) for binding in self._evaluator.flow.definitions(name)}
                if scopes.deciding(name.value, scopes.scope(name)) is here and id(result) in made:
                    return True
        return False

    def _is_only_read_detached(self, variable: cst.BaseExpression) -> bool:
        """Return whether the file reads a tensor of its own, and each time without its graph: ``values.detach()``."""
        uses = [use for use in self._uses(variable) if not self._is_written(use) and not self._is_filled(use)]
        values = [use for use in uses if not self._is_said(use)]
        settled = [use for use in values if self._is_settled(use)]
        if settled:  # other methods read what has become of it
            values = [use for use in values if self._may_read(use, settled)]
        return bool(values) and all(is_read_detached(use, self._evaluator) for use in values)

    def _is_settled(self, use: cst.Name | cst.Attribute) -> bool:
        """Whether an attribute becomes what it held, without graphs: ``self.values = stack(self.values).detach()``."""
        statement = self._evaluator.flow.statement(use)
        if not isinstance(use, cst.Attribute) or not isinstance(statement, cst.Assign):
            return False
        return any(is_same(t.target, use) for t in statement.targets) and is_read_detached(use, self._evaluator)

    def _may_read(self, use: cst.Name | cst.Attribute, settled: list[cst.Name | cst.Attribute]) -> bool:
        """Whether a place reads a buffer where it is filled or settled, before that: another method comes later."""
        function = self._evaluator.definitions.enclosing_function(use)
        order = self._tree.order
        here = [s for s in settled if self._evaluator.definitions.enclosing_function(s) is function]
        filled = self._tree.below(function, cst.AssignTarget) if function is not None else []
        fills = any(isinstance(t.target, cst.Subscript) and is_same(t.target.value, use) for t in filled)
        return fills or any(order(use) <= order(each) for each in here)

    def _uses(self, variable: cst.BaseExpression) -> list[cst.Name] | list[cst.Attribute]:
        """All places that name a local variable, or an attribute of ``self``; none of anything else."""
        if isinstance(variable, cst.Name):
            scopes = self._evaluator.scopes
            here = scopes.deciding(variable.value, scopes.scope(variable))
            same = self._tree.named(variable.value)
            return [n for n in same if scopes.deciding(n.value, scopes.scope(n)) is here and self._holds(n, variable)]
        owner = variable.value if isinstance(variable, cst.Attribute) else None
        if not isinstance(owner, cst.Name) or self._evaluator.definitions.receiver(owner) is None:
            return []
        held = (a for a in self._tree.nodes(cst.Attribute) if is_same(a, variable))
        return [a for a in held if self._is_of_same(a, variable)]

    def _is_of_same(self, use: cst.Attribute, variable: cst.BaseExpression) -> bool:
        """Whether two attributes of ``self`` may be of one object: of a class, or of one that derives from it."""
        definitions = self._evaluator.definitions
        functions = map(definitions.enclosing_function, (use, variable))
        here, there = (definitions.owner(function) if function is not None else None for function in functions)
        if here is None or there is None:
            return True
        return here in definitions.family(there) or there in definitions.family(here)

    def _holds(self, name: cst.Name, variable: cst.Name) -> bool:
        """Whether a name is bound, or can hold what the variable does: not ``values = stack(values).detach()``."""
        made = {id(binding.node) for binding in self._evaluator.flow.definitions(variable)}
        found = self._evaluator.flow.definitions(name)
        return not found or any(id(binding.node) in made for binding in found)

    def _is_filled(self, name: cst.Name | cst.Attribute) -> bool:
        """Whether a name stands in ``values.append(value)``."""
        method = self._tree.parent(name)
        call = self._tree.parent(method) if isinstance(method, cst.Attribute) and method.value is name else None
        return isinstance(call, cst.Call) and call.func is method and appended(call) is not None

    def _is_written(self, name: cst.Name | cst.Attribute) -> bool:
        """Whether a name stands in a target: ``values = ...``, ``values[step] = ...``."""
        node: cst.CSTNode = name
        parent = self._tree.parent(node)
        while isinstance(parent, (cst.Subscript, cst.Tuple, cst.Element)):
            if isinstance(parent, cst.Subscript) and parent.value is not node:
                return False
            node, parent = parent, self._tree.parent(parent)
        return isinstance(parent, cst.AssignTarget) or getattr(parent, "keyword", None) is node

    def _is_said(self, name: cst.Name | cst.Attribute) -> bool:
        parent = self._tree.parent(name)
        if isinstance(parent, cst.Attribute):
            return parent.value is not name or parent.attr.value in _SAYS
        return False


def is_read_detached(read: cst.Name | cst.Attribute, evaluator: Evaluator) -> bool:
    """Return whether a place reads a tensor, or several of a kind, without the graph.

    ``values.detach()``, ``torch.stack(values).mean().item()``, ``torch.stack([row.value for row in rows]).detach()``
    """
    if evaluator.gradients.disabled(read):
        return True
    node: cst.CSTNode = read
    parent = evaluator.tree.parent(node)
    while parent is not None:
        if isinstance(parent, cst.Arg):
            node, parent = parent, evaluator.tree.parent(parent)
            if not isinstance(parent, cst.Call) or evaluator.names.qualified(parent.func) not in _JOINS:
                return False
        elif isinstance(parent, (cst.Attribute, cst.Subscript, cst.Call)):
            if not _holds(parent, node):
                return False
            if isinstance(parent, cst.Attribute) and parent.attr.value in _DETACHES:
                return True
            if isinstance(parent, cst.Call) and method_call(parent, *_CARRY) is None:
                return False
        elif not isinstance(parent, (cst.ListComp, cst.GeneratorExp)) or parent.elt is not node:
            return False
        node, parent = parent, evaluator.tree.parent(parent)
    return False


def _holds(parent: cst.Attribute | cst.Subscript | cst.Call, node: cst.CSTNode) -> bool:
    return (parent.func if isinstance(parent, cst.Call) else parent.value) is node
