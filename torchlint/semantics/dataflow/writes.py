"""Variables that are written in place: ``a[0] = x``, ``a += x``, ``a.sort()``, ``f(out=a)``, ``dist.all_reduce(a)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind, bound_places
from torchlint.semantics.dataflow.shared_arrays import is_shared
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Origin
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import canonical

_OF_ARRAYS = frozenset("fill sort partition put resize itemset setfield byteswap shuffle".split())
_KEEPS = frozenset("append appendleft add extend insert put put_nowait push setdefault update register_buffer".split())
_MAKES = frozenset(("dict", "list", "tuple"))
_HOLDERS = (cst.Arg, cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Dict, cst.IfExp)
_WRITERS = frozenset(f"numpy.{name}" for name in "copyto put place putmask fill_diagonal put_along_axis".split())
_DRAWS = "rectangle line circle ellipse putText polylines fillPoly fillConvexPoly drawContours drawMarker arrowedLine"
_WRITERS |= {f"cv2.{name}" for name in _DRAWS.split()}
_VIEWS_OF_ARRAYS = frozenset("reshape transpose swapaxes squeeze ravel view numpy detach cpu".split())
_VIEWING = frozenset(
    f"numpy.{name}"
    for name in (
        "asarray ascontiguousarray asanyarray expand_dims squeeze transpose reshape swapaxes moveaxis flip "
        "broadcast_to atleast_1d atleast_2d ravel"
    ).split()
) | {"torch.from_numpy", "torch.as_tensor"}

_FILLS = re.compile(r"^(read|fill|recv|receive|retrieve|grab|capture|decode|render|load|unpack|copy)(_|$|into|to)")
_SHOWS = re.compile(r"print|log|show|plot|draw|save|write|dump|display|append|check|assert")
_LIBRARIES = ("builtins.", "torch.", "numpy.", "matplotlib.", "logging.", "wandb.")


class Writes:
    """Finds what writes to the memory of an array or a tensor."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._written: list[cst.BaseExpression] | None = None

    def keeps_apart(self, array: cst.BaseExpression, copy: cst.CSTNode, *, is_own: bool = True) -> bool:
        """Return whether a copy of an array is needed: one of them is written to while the other is still used.

        ``copy`` is the call that makes it. An attribute may be written to by any method of the file, and so may what
        several functions share. What is written to an array that is not the function's own (``is_own``) others see.
        """
        is_chosen = is_own and isinstance(array, cst.Subscript)  # NumPy has copied it already: nobody else has it
        root = self._root(array) if not is_chosen else None
        if not is_own and (self._is_changed_at_once(copy) or self.writes_to(copy)):
            return True
        if root is None:
            return False
        if self._is_reused(root) or self._is_refilled(root, copy):
            return True
        if is_shared(root, copy, self._outermost(copy), self._evaluator):
            return True
        if self._is_changed_at_once(copy) and (isinstance(root, cst.Attribute) or self._is_used_after(root, copy)):
            return True
        uses = self._uses_of_copy(copy)
        is_kept = any(self._is_kept(use) for use in (copy, *uses))
        last = max(map(self._tree.order, uses), default=0)
        places = list(self._places(root, copy))
        if is_kept and self._is_lent(root) and any(self._is_beside(place, copy) for place in places):
            return True  # the next call or pass writes to it again
        for place in places:
            is_seen = self._tree.order(copy) < self._tree.order(place) < last
            is_elsewhere = last > 0 and not self._is_beside(place, copy)
            if self._may_follow(place, copy, root) and (is_kept or is_seen or is_elsewhere):
                return True
        return self._copy_is_written(root, copy)

    def writes_to(self, copy: cst.CSTNode) -> bool:
        """Return whether the variable that holds a copy, or what else a call makes, is written to."""
        target = self._variable(copy)
        return target is not None and any(self._may_follow(place, copy, target) for place in self._places(target, copy))

    def changes_result(self, made: cst.CSTNode) -> bool:
        """Return whether what an expression gives is written to, where it is made or by the name that holds it."""
        return self._is_changed_at_once(made) or self.writes_to(made)

    def may_break_backward(self, made: cst.CSTNode, given: Iterable[cst.CSTNode] = ()) -> bool:
        """Return whether a result, or a tensor of which it is computed (``given``), is written to afterwards.

        Each function keeps some of them for the backward pass, which refuses those that have changed: another function
        in its place may keep others.
        """
        if self._evaluator.gradients.disabled(made):
            return False
        operands = (self._root(part) for part in given if isinstance(part, cst.BaseExpression))
        return self.changes_result(made) or any(
            self._may_follow(place, made, root)
            for root in operands
            if root is not None
            for place in self._places(root, made)
        )

    @cached_property
    def may_overtake_copies(self) -> bool:
        """Whether the file copies without waiting for it (``non_blocking``), and writes to a part of a batch."""
        told = {a.keyword.value for a in self._tree.nodes(cst.Arg) if a.keyword is not None}
        places = self.places() if "non_blocking" in told else []
        return any(self._evaluator.value(place).origin is Origin.BATCH for place in places)

    def is_stored(self, copy: cst.CSTNode) -> bool:
        """Return whether a copy is put at once where it stays: into a container or an attribute."""
        parent = self._tree.parent(self._outermost(copy))
        above = self._tree.parent(parent) if isinstance(parent, cst.Arg) else parent
        if isinstance(above, cst.Assign):
            return any(isinstance(target.target, (cst.Attribute, cst.Subscript)) for target in above.targets)
        return isinstance(above, cst.Call) and identifier(above.func) in _KEEPS

    def _is_reused(self, root: cst.BaseExpression) -> bool:
        """Whether a method of the file gave the array, and each time it gives one that it keeps and writes to."""
        if not isinstance(root, cst.Name):
            return False
        makers = self._evaluator.flow.makers(root)
        calls = [b.value.func for b in makers if isinstance(b.value, cst.Call) and not b.path]
        names = {function.attr.value for function in calls if isinstance(function, cst.Attribute)}
        written = {canonical(place) for place in self.places() if isinstance(place, cst.Attribute)} if names else set()
        methods = [f for f in self._tree.nodes(cst.FunctionDef) if f.name.value in names] if written else []
        results = (given for method in methods for given in self._evaluator.definitions.results(method))
        return any(held is not None and canonical(held) in written for held in map(self._root, results))

    def _is_refilled(self, root: cst.BaseExpression, copy: cst.CSTNode) -> bool:
        """Whether an array is given to a function that may write to it, later or in the next pass of a loop.

        ``reader(frame, i)``, ``stream.readinto(buffer)``: what it gives back is dropped.
        """
        frame = self._evaluator.definitions.enclosing_function(copy) or self._tree.module
        return isinstance(root, cst.Name) and any(
            isinstance(self._tree.parent(call), cst.Expr)
            and any(isinstance(a.value, cst.Name) and self._may_follow(a.value, copy, root) for a in call.args)
            and any(canonical(a.value) == root.value for a in call.args)
            and self._may_fill(call)
            for call in self._tree.below(frame, cst.Call)
        )

    def _may_fill(self, call: cst.Call) -> bool:
        name = self._evaluator.names.qualified(call.func) or ""
        if isinstance(call.func, cst.Attribute) and not name:
            return _FILLS.search(call.func.attr.value) is not None
        is_known = name.startswith(_LIBRARIES) or _SHOWS.search(identifier(call.func)) is not None
        return not is_known and not isinstance(self._evaluator.definitions.definition(call.func), cst.FunctionDef)

    def _is_lent(self, root: cst.BaseExpression) -> bool:
        """Whether a variable may hold what others hold as well: a parameter, or another name for something."""
        made = self._evaluator.flow.makers(root) if isinstance(root, cst.Name) else []
        held = [binding.value for binding in made if not binding.path and binding.value is not None]
        is_other = any(self._root(each) is not None and not self._is_cut_to_size(each, root) for each in held)
        return is_other or any(binding.kind is BindingKind.PARAMETER for binding in made)

    def _is_cut_to_size(self, part: cst.BaseExpression, root: cst.BaseExpression) -> bool:
        """Whether a variable holds a part of what it held, made anew beside where it is read: ``x = x[:n]``."""
        held = part.value if isinstance(part, cst.Subscript) else None
        if not isinstance(part, cst.Subscript) or not isinstance(held, cst.Name) or canonical(held) != canonical(root):
            return False
        if not all(isinstance(element.slice, cst.Slice) for element in part.slice):
            return False
        around = self._tree.enclosing(root, *LOOPS, cst.FunctionDef)
        made = self._evaluator.flow.makers(held)
        return bool(made) and all(
            isinstance(binding.value, cst.Call)
            and self._root(binding.value) is None
            and self._tree.enclosing(binding.node, *LOOPS, cst.FunctionDef) is around
            for binding in made
        )

    def _uses_of_copy(self, copy: cst.CSTNode) -> list[cst.Name]:
        """Return where the variable to which a copy is assigned is read and can still hold it."""
        binding = self._variable(copy)
        if binding is None:
            return []
        bound = self._evaluator.scopes.bindings(binding)
        return [
            name
            for name in self._tree.named(binding.value)
            if name is not binding
            and self._evaluator.scopes.bindings(name) is bound
            and any(each.node is binding for each in self._evaluator.flow.definitions(name))
        ]

    def _variable(self, copy: cst.CSTNode) -> cst.Name | None:
        """Return the name to which a copy, or a view of it, is assigned."""
        statement = self._evaluator.flow.statement(copy)
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            return None
        target = statement.targets[0].target
        return target if isinstance(target, cst.Name) and self._outermost(copy) is statement.value else None

    def _is_changed_at_once(self, copy: cst.CSTNode) -> bool:
        """Whether a method changes a copy in place where it is made: ``copy.add_(1)``."""
        current = self._outermost(copy)
        while current is not copy and isinstance(current, (cst.Call, cst.Subscript)):
            method = current.func if isinstance(current, cst.Call) else None
            if isinstance(method, cst.Attribute) and _changes(method.attr.value):
                return True
            current = current.value if isinstance(current, cst.Subscript) else getattr(method, "value", copy)
        return False

    def _is_used_after(self, root: cst.BaseExpression, copy: cst.CSTNode) -> bool:
        bound = self._evaluator.scopes.bindings(root) if isinstance(root, cst.Name) else []
        later = (name for name in self._tree.named(identifier(root)) if self._tree.order(name) > self._tree.last(copy))
        return any(self._evaluator.scopes.bindings(name) is bound for name in later)

    def _outermost(self, copy: cst.CSTNode) -> cst.CSTNode:
        """Return the longest chain of methods that begins with a copy: ``copy.unsqueeze(0).float()``."""
        current = copy
        while True:
            method = self._tree.parent(current)
            call = self._tree.parent(method) if isinstance(method, cst.Attribute) else None
            if isinstance(call, cst.Call) and call.func is method:
                current = call
            elif isinstance(method, cst.Subscript) and method.value is current:
                current = method
            else:
                return current

    def _is_kept(self, use: cst.CSTNode) -> bool:
        """Whether what is read here is given away or put where it stays."""
        child = self._outermost(use)
        for ancestor in self._tree.ancestors(child):
            if ancestor is child:
                continue
            if isinstance(ancestor, cst.Call):
                is_own = self._evaluator.definitions.definition(ancestor.func) is not None
                if identifier(ancestor.func) not in _MAKES:
                    return is_own or identifier(ancestor.func) in _KEEPS
            if isinstance(ancestor, (cst.Return, cst.Yield, cst.NamedExpr)):
                return True
            if isinstance(ancestor, cst.AugAssign):
                return isinstance(child, (cst.List, cst.Tuple))
            if isinstance(ancestor, cst.Assign):
                return child is ancestor.value and (isinstance(use, cst.Name) or self._variable(use) is None)
            joins = isinstance(ancestor, cst.BinaryOperation) and isinstance(child, (cst.List, cst.Tuple))
            if not isinstance(ancestor, _HOLDERS) and not joins and not isinstance(ancestor, cst.Call):
                return False
            child = self._outermost(ancestor) if isinstance(ancestor, cst.BaseExpression) else ancestor
        return False

    def _places(self, root: cst.BaseExpression, copy: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """Yield where the variable is written, in the function of a node, or anywhere for what several share."""
        texts = {canonical(root), *self._other_names(root)}
        for place in self.places():
            if canonical(place) not in texts:
                continue
            if isinstance(root, cst.Attribute) or self._is_beside(place, copy) or self._is_shared(place, root):
                yield place

    def _is_beside(self, place: cst.CSTNode, copy: cst.CSTNode) -> bool:
        enclosing = self._evaluator.definitions.enclosing_function
        return enclosing(place) is enclosing(copy)

    def _is_shared(self, place: cst.BaseExpression, root: cst.BaseExpression) -> bool:
        """Whether a place of another function names the same variable."""
        if not isinstance(place, cst.Name) or not isinstance(root, cst.Name) or place.value != root.value:
            return False
        bindings = self._evaluator.scopes.bindings
        return bool(bindings(root)) and bindings(place) is bindings(root)

    def _outlives(self, root: cst.BaseExpression, copy: cst.CSTNode) -> bool:
        """Whether a variable is bound outside the function that copies it, so that it is there in the next call."""
        if not isinstance(root, cst.Name):
            return False
        function = self._evaluator.definitions.enclosing_function(copy)
        bindings = self._evaluator.scopes.bindings(root)
        fresh = (each.node for each in bindings if each.kind is not BindingKind.AUGMENTED)  # `a += 1` keeps the memory
        return function is not None and not any(self._tree.within(node, function) for node in fresh)

    def _other_names(self, root: cst.BaseExpression) -> Iterator[str]:
        """Yield the names that plain assignments give to what a variable holds: ``other = root``, ``root = other``."""
        bindings = self._evaluator.scopes.bindings(root) if isinstance(root, cst.Name) else []
        held = [binding.value for binding in bindings if binding.value is not None and not binding.path]
        roots = [self._root(value) for value in held]
        yield from (value.value for value in roots if isinstance(value, cst.Name))
        for name, others in bindings[0].scope.bindings.items() if bindings else ():
            values = [other.value for other in others if not other.path and other.value is not None]
            given = [self._root(value) for value in values]
            is_given = any(isinstance(value, cst.Name) and value.value == identifier(root) for value in given)
            if is_given or any(value is other for value in values for other in held):
                yield name

    def _may_follow(self, place: cst.BaseExpression, copy: cst.CSTNode, root: cst.BaseExpression) -> bool:
        """Whether a place can run after the copy was made and before the variable is bound anew."""
        if isinstance(root, cst.Attribute) or self._outlives(root, copy) or not self._is_beside(place, copy):
            return True
        if self._tree.order(place) > self._tree.order(copy):
            return not self._is_rebound(root, copy, place)
        loops = [loop for loop in self._tree.ancestors(copy) if isinstance(loop, LOOPS)]
        shared = [loop for loop in self._tree.ancestors(place) if any(loop is other for other in loops)]
        return bool(shared) and not self._is_bound_in(root, shared[0])

    def _is_rebound(self, root: cst.BaseExpression, first: cst.CSTNode, last: cst.CSTNode) -> bool:
        """Whether the variable has another value at a later place than at an earlier one."""
        name = last if isinstance(last, cst.Name) else None
        if name is None or not isinstance(root, cst.Name):
            return False
        bindings = self._evaluator.flow.definitions(name)
        if name.value != root.value:
            held = [self._root(binding.value) for binding in bindings if binding.value is not None]
            if any(isinstance(each, cst.Name) and each.value == root.value for each in held):
                return False  # another name of the same memory, given to it later
        return all(binding.order > self._tree.order(first) for binding in bindings) and bool(bindings)

    def _is_bound_in(self, root: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        bindings = self._evaluator.flow.makers(root) if isinstance(root, cst.Name) else []
        return bool(bindings) and all(
            self._tree.order(loop) < binding.order <= self._tree.last(loop) for binding in bindings
        )

    def _copy_is_written(self, root: cst.BaseExpression, copy: cst.CSTNode) -> bool:
        """Whether the variable that holds the copy is written to, and the array is read after that."""
        target = self._variable(copy)
        if target is None:
            return False
        writes = [place for place in self._places(target, copy) if self._may_follow(place, copy, target)]
        first = min((self._tree.order(place) for place in writes), default=None)
        if first is None or not isinstance(root, cst.Name):
            return first is not None
        return any(
            self._tree.order(name) > first and not self._is_rebound(root, copy, name)
            for name in self._tree.named(root.value)
            if self._evaluator.scopes.bindings(name) is self._evaluator.scopes.bindings(root)
        )

    def places(self) -> list[cst.BaseExpression]:
        """Return the variables that something in the file is written into, each at its place."""
        if self._written is None:
            self._written = [root for place in self._targets() if (root := self._root(place)) is not None]
            self._written += [root for given in self._given() if (root := self._root(given)) is not None]
        return self._written

    def _given(self) -> Iterator[cst.BaseExpression]:
        """Yield what is given to functions of the file that write to it."""
        enclosing, definition = self._evaluator.definitions.enclosing_function, self._evaluator.definitions.definition
        names = {(id(enclosing(place)), place.value) for place in self._written or () if isinstance(place, cst.Name)}
        for call in self._tree.nodes(cst.Call):
            function = definition(call.func) if isinstance(call.func, cst.Name) and call.args else None
            if isinstance(function, cst.FunctionDef):
                for argument, parameter in zip(call.args, function.params.params, strict=False):
                    if argument.keyword is None and (id(function), parameter.name.value) in names:
                        yield argument.value

    def _root(self, expression: cst.BaseExpression) -> cst.Name | cst.Attribute | None:
        """Return the variable whose memory an expression names: ``a`` of ``a[1:]`` and of ``a.T``."""
        current: cst.BaseExpression | None = expression
        while current is not None:
            viewed = self._viewed(current)
            if viewed is None:
                break
            current = viewed
        if isinstance(current, cst.Name):
            return current
        is_member = isinstance(current, cst.Attribute) and isinstance(current.value, cst.Name)
        return current if is_member and isinstance(current, cst.Attribute) else None

    def _viewed(self, expression: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return what an expression is a view of, None if it is none."""
        if isinstance(expression, cst.Subscript):
            return expression.value
        if isinstance(expression, cst.Attribute):
            owner = expression.value if expression.attr.value in ("T", "flat") else None
            is_self = isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None
            return None if is_self else owner
        if not isinstance(expression, cst.Call):
            return None
        if self._evaluator.names.qualified(expression.func) in _VIEWING:
            return expression.args[0].value if expression.args else None
        is_view = isinstance(expression.func, cst.Attribute) and expression.func.attr.value in _VIEWS_OF_ARRAYS
        return expression.func.value if is_view and isinstance(expression.func, cst.Attribute) else None

    def _targets(self) -> Iterator[cst.BaseExpression]:
        for assign in self._tree.nodes(cst.AssignTarget):
            yield from (place for place, _ in bound_places(assign.target) if isinstance(place, cst.Subscript))
        for augmented in self._tree.nodes(cst.AugAssign):
            yield augmented.target
        for call in self._tree.nodes(cst.Call):
            if isinstance(call.func, cst.Attribute):
                name = call.func.attr.value
                if _changes(name):
                    yield call.func.value
            if identifier(call.func) == "shuffle" and call.args:
                yield call.args[0].value
            name = self._evaluator.names.qualified(call.func) or ""
            if name in _WRITERS and call.args:
                yield call.args[0].value
            communicates = name.startswith("torch.distributed.")
            for argument in call.args:
                if communicates or (argument.keyword is not None and argument.keyword.value == "out"):
                    yield argument.value


def _changes(method: str) -> bool:
    return method in _OF_ARRAYS or (method.endswith("_") and not method.startswith("_"))
