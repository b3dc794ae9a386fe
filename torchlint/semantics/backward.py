"""Which values gradients are computed from."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import children

_GRADIENT_FUNCTIONS = frozenset(("torch.autograd.backward", "torch.autograd.grad"))


class Backward:
    """Follows values to the backward passes of a file."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._calls: list[cst.Call] | None = None

    def passes(self, root: cst.CSTNode | None = None) -> list[cst.Call]:
        """Return the calls that compute gradients, those below ``root`` if one is given."""
        if self._calls is None:
            self._calls = [call for call in self._tree.nodes(cst.Call) if self._is_pass(call)]
        if root is None:
            return self._calls
        return [call for call in self._calls if any(ancestor is root for ancestor in self._tree.ancestors(call))]

    def _is_pass(self, call: cst.Call) -> bool:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("backward", "manual_backward"):
            return True
        return self._evaluator.names.qualified(call.func) in _GRADIENT_FUNCTIONS

    def reaches(self, variable: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a variable (``x``, ``self.x``, ``x[i]``) flows into a backward pass below ``root``."""
        reached = {identifier(variable)}
        assignments = list(self._assignments(root))
        for _ in range(4):
            before = len(reached)
            for targets, value in assignments:
                if self._mentions(value, reached):
                    reached |= targets
            if len(reached) == before:
                break
        return any(self._mentions(call, reached) for call in self.passes(root))

    def mentions(self, call: cst.Call, value: cst.BaseExpression) -> bool:
        """Return whether a backward pass starts from a variable that is part of ``value``."""
        names = {
            identifier(node) for node in self._tree.descendants(value) if isinstance(node, (cst.Name, cst.Attribute))
        }
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        sources = [*([receiver] if receiver is not None else []), *(argument.value for argument in call.args)]
        return any(self._mentions(source, names) for source in sources)

    def _assignments(self, root: cst.CSTNode) -> list[tuple[set[str], cst.CSTNode]]:
        found: list[tuple[set[str], cst.CSTNode]] = []
        for node in self._tree.descendants(root):
            if isinstance(node, cst.Assign):
                found.append(({n for t in node.targets for n in self._names(t.target)}, node.value))
            elif isinstance(node, cst.AugAssign):
                found.append((self._names(node.target), node.value))
            elif isinstance(node, cst.For):
                found.append((self._names(node.target), node.iter))
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                if node.func.attr.value in ("append", "extend", "add"):
                    found += (({identifier(node.func.value)}, argument.value) for argument in node.args)
        return found

    def _names(self, target: cst.BaseExpression) -> set[str]:
        if isinstance(target, (cst.Tuple, cst.List)):
            return {name for element in target.elements for name in self._names(element.value)}
        return {identifier(target)}

    def _mentions(self, node: cst.CSTNode, names: set[str]) -> bool:
        """Whether a variable of these names is read in an expression; not through ``.item()`` or ``.detach()``."""
        stack = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, cst.Call) and isinstance(current.func, cst.Attribute):
                if current.func.attr.value in ("item", "detach", "tolist"):
                    continue
            if isinstance(current, (cst.Name, cst.Attribute)) and identifier(current) in names:
                return True
            stack += children(current)
        return False
