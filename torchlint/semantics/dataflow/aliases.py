"""Values that lie in memory which something else keeps, and may write to later: parameters, buffers, views of them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.dataflow.writes import Writes
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.canonical import canonical

_VIEWS = frozenset(
    (
        "detach view view_as reshape squeeze unsqueeze flatten unflatten ravel t transpose permute swapaxes movedim "
        "expand expand_as narrow select unbind chunk split diagonal contiguous to cpu cuda float double half type "
        "type_as requires_grad_ numpy as_strided from_numpy as_tensor asarray"
    ).split()
)
_HANDED_OUT = frozenset(
    (
        "state_dict parameters named_parameters buffers named_buffers children named_children modules named_modules "
        "get_parameter get_buffer get_submodule"
    ).split()
)
"""Methods of models that give what they hold, and optimizers write to."""

_CALLED = ("forward", "__call__")
_ITERATED = ("__iter__", "__next__", "__getitem__")
_MAX_DEPTH = 6


class Aliases:
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
        parts = _parts(base)
        if parts:
            return any(self.is_kept(part, loop, depth + 1) for part in parts)
        if isinstance(base, cst.Call):
            return self._hands_out(base, loop, depth)
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

    def names_behind(self, value: cst.BaseExpression, loop: cst.CSTNode) -> frozenset[str]:
        """Return the names that a value is made of, and those of which a pass of a loop makes them."""
        found: set[str] = set()
        waiting = list(self._evaluator.tree.below(value, cst.Name))
        while waiting:
            name = waiting.pop()
            if name.value not in found:
                found.add(name.value)
                bound = (b for b in self._evaluator.flow.definitions(name) if self._evaluator.tree.within(b.node, loop))
                values = [b.value for b in bound if b.kind is BindingKind.ASSIGNMENT and b.value is not None]
                waiting += [other for made in values for other in self._evaluator.tree.below(made, cst.Name)]
        return frozenset(found)

    def _is_bound_to_kept(self, binding: Binding, loop: cst.CSTNode, depth: int) -> bool:
        if binding.value is None:
            return False
        if binding.kind is BindingKind.ITERATION:
            return self._yields_kept(binding.value, loop, depth)
        return binding.kind is BindingKind.ASSIGNMENT and self.is_kept(binding.value, loop, depth + 1)

    def _yields_kept(self, iterated: cst.BaseExpression, loop: cst.CSTNode, depth: int) -> bool:
        """Whether what a loop runs over gives the same memory again, as a generator does that fills a buffer."""
        if depth > _MAX_DEPTH or _parts(iterated):
            return True
        made = self._evaluator.value(iterated).definition
        if isinstance(made, cst.ClassDef):
            return self._reuses(made, _ITERATED, loop, depth, ())
        if not isinstance(iterated, cst.Call):
            return False
        if isinstance(self._evaluator.definitions.definition(iterated.func), cst.FunctionDef):
            return self._hands_out(iterated, loop, depth)
        return any(self._yields_kept(argument.value, loop, depth + 1) for argument in iterated.args)

    def _hands_out(self, call: cst.Call, loop: cst.CSTNode, depth: int) -> bool:
        """Whether a function gives what it, or another one, writes to again; of those outside the file few do."""
        name = self._evaluator.names.qualified(call.func)
        if name is not None and name.startswith("builtins."):
            return True  # `next`, `getattr`, `list`: they give what is there
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _HANDED_OUT:
            return True
        given = [argument.value for argument in call.args]
        function = self._evaluator.definitions.definition(call.func)
        if isinstance(function, cst.FunctionDef):
            return self._gives_kept(function, given, loop, depth)
        owner = self._evaluator.value(call.func.value).definition if isinstance(call.func, cst.Attribute) else None
        if isinstance(owner, cst.ClassDef) and isinstance(call.func, cst.Attribute):
            return self._reuses(owner, (call.func.attr.value,), loop, depth, given)
        called = self._evaluator.value(call.func).definition
        return isinstance(called, cst.ClassDef) and self._reuses(called, _CALLED, loop, depth, given)

    def _reuses(
        self,
        owner: cst.ClassDef,
        names: Sequence[str],
        loop: cst.CSTNode,
        depth: int,
        given: Sequence[cst.BaseExpression],
    ) -> bool:
        """Whether one of these methods of a class gives what is written to again."""
        methods = (self._evaluator.definitions.method(owner, name) for name in names)
        return any(method is not None and self._gives_kept(method, given, loop, depth) for method in methods)

    def _gives_kept(
        self, function: cst.FunctionDef, given: Sequence[cst.BaseExpression], loop: cst.CSTNode, depth: int
    ) -> bool:
        enclosing = self._evaluator.definitions.enclosing_function
        nodes: list[cst.Return | cst.Yield] = [*self._tree.nodes(cst.Return), *self._tree.nodes(cst.Yield)]
        own = [(node, node.value) for node in nodes if enclosing(node) is function]
        values = [(n, part) for n, v in own if isinstance(v, cst.BaseExpression) for part in _parts(v) or (v,)]
        if any(self._is_reused(node, value, function) for node, value in values):
            return True
        bases = [self.base(value) for _, value in values]
        made = (b for base in bases if isinstance(base, cst.Name) for b in self._evaluator.flow.definitions(base))
        if any(self._tree.within(b.node, function) and self._is_bound_to_kept(b, function, depth) for b in made):
            return True
        passes_on = any(isinstance(base, cst.Name) and self._is_parameter(base) for base in bases)
        return passes_on and any(self.is_kept(each, loop, depth + 1) for each in given)

    def _is_parameter(self, name: cst.Name) -> bool:
        return any(b.kind is BindingKind.PARAMETER for b in self._evaluator.flow.definitions(name))

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
        # What is added to in place stays what it was.
        made = [b for b in self._evaluator.scopes.bindings(base) if b.kind is not BindingKind.AUGMENTED]
        return not any(self._tree.within(binding.node, scope) for binding in made)

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


def _parts(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return what a value may be or holds: the branches of a conditional, the elements of a display."""
    if isinstance(value, cst.IfExp):
        return [value.body, value.orelse]
    if isinstance(value, (cst.Tuple, cst.List, cst.Dict)):
        return [element.value for element in value.elements]
    return []
