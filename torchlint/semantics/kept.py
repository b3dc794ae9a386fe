"""Values that lie in memory which something else keeps, and may write to later: parameters, buffers, views of them."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.flow import LOOPS
from torchlint.semantics.scopes import Binding, BindingKind
from torchlint.semantics.writes import Writes
from torchlint.syntax.canonical import canonical

_VIEWS = frozenset(
    (
        "detach view view_as reshape squeeze unsqueeze flatten unflatten ravel t transpose permute swapaxes movedim "
        "expand expand_as narrow select unbind chunk split diagonal contiguous to cpu cuda float double half type "
        "type_as requires_grad_ numpy as_strided"
    ).split()
)
_MAX_DEPTH = 6


class Kept:
    """Follows values to where they were made."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._writes = Writes(evaluator)

    def is_kept(self, value: cst.BaseExpression, loop: cst.CSTNode, depth: int = 0) -> bool:
        """Return whether a value is, as far as this file shows, memory that one pass of a loop leaves to the next."""
        base = self.base(value)
        if depth > _MAX_DEPTH:
            return True
        if isinstance(base, cst.IfExp):
            return self.is_kept(base.body, loop, depth + 1) or self.is_kept(base.orelse, loop, depth + 1)
        if isinstance(base, cst.Call):
            return self._hands_out(base)
        if not isinstance(base, cst.Name):
            return False
        bindings = self._evaluator.flow.definitions(base)
        return any(
            not self._tree.within(binding.node, loop) or self._is_bound_to_kept(binding, loop, depth)
            for binding in bindings
        )

    def base(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """Return what a value is a part or a view of, itself if it is none."""
        while True:
            if isinstance(value, (cst.Attribute, cst.Subscript)):
                value = value.value
                continue
            if not isinstance(value, cst.Call):
                return value
            name = self._evaluator.names.qualified(value.func)
            if name is not None and name.rpartition(".")[2] in _VIEWS and value.args:
                value = value.args[0].value
            elif name is None and isinstance(value.func, cst.Attribute) and value.func.attr.value in _VIEWS:
                value = value.func.value
            else:
                return value

    def _is_bound_to_kept(self, binding: Binding, loop: cst.CSTNode, depth: int) -> bool:
        if binding.value is None:
            return False
        if binding.kind is BindingKind.ITERATION:
            return isinstance(binding.value, cst.Call) and self._hands_out(binding.value)
        return binding.kind is BindingKind.ASSIGNMENT and self.is_kept(binding.value, loop, depth + 1)

    def _hands_out(self, call: cst.Call) -> bool:
        """Whether a function of the file returns or yields what it, or another one, writes to again."""
        function: cst.CSTNode | None = self._evaluator.definitions.definition(call.func)
        if function is None and isinstance(call.func, cst.Attribute):
            owner = self._evaluator.value(call.func.value).definition
            if isinstance(owner, cst.ClassDef):
                function = self._evaluator.definitions.method(owner, call.func.attr.value)
        if not isinstance(function, cst.FunctionDef):
            return False
        enclosing = self._evaluator.definitions.enclosing_function
        given: list[cst.Return | cst.Yield] = [*self._tree.nodes(cst.Return), *self._tree.nodes(cst.Yield)]
        own = [(node, node.value) for node in given if enclosing(node) is function]
        return any(isinstance(v, cst.BaseExpression) and self._is_reused(node, v, function) for node, v in own)

    def _is_reused(self, given: cst.CSTNode, value: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Whether what a function gives is written to, and was not made for this one time."""
        member = self._member(value)
        texts = {canonical(place) for place in self._writes.places()}
        if member is not None:
            return canonical(member) in texts
        base = self.base(value)
        if not isinstance(base, cst.Name) or base.value not in texts:
            return False
        loops = [a for a in self._tree.ancestors(given) if isinstance(a, LOOPS) and self._tree.within(a, function)]
        scope = loops[0] if loops else function
        return not all(self._tree.within(b.node, scope) for b in self._evaluator.flow.definitions(base))

    def _member(self, value: cst.BaseExpression) -> cst.Attribute | None:
        """The attribute ``self.x`` that a value is, or is a view of."""
        while not (isinstance(value, cst.Attribute) and isinstance(value.value, cst.Name)):
            if isinstance(value, (cst.Attribute, cst.Subscript)):
                value = value.value
            elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
                if value.func.attr.value not in _VIEWS:
                    return None
                value = value.func.value
            else:
                return None
        is_own = self._evaluator.definitions.receiver(value.value) is not None
        return value if is_own and isinstance(value, cst.Attribute) else None
