"""Tensors that grow by concatenation in a loop, or from one call of a method to the next."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.semantics.dataflow.aliases import Aliases
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.hotness import Hotness
from torchlint.semantics.retention.beams import keeps_rows, reordered
from torchlint.semantics.retention.few_passes import FewPasses
from torchlint.semantics.retention.joins import own_part, part_of_row
from torchlint.semantics.retention.layers_in_place import may_change_in_place
from torchlint.semantics.roles import Role
from torchlint.semantics.values import Graph
from torchlint.syntax.calls import code, identifier, literal, method_call
from torchlint.syntax.canonical import canonical, is_same, places, root_of
from torchlint.syntax.remembered import remembered

_STORING: frozenset[type[cst.CSTNode]] = frozenset((cst.Assign, cst.IfExp, cst.Attribute, cst.Call))
"""What a call stands in directly, if its result is stored."""

_CATENATES = frozenset(("torch.cat", "torch.concat", "torch.concatenate"))
_STACKS = frozenset(("hstack", "vstack", "dstack", "row_stack", "column_stack"))
GROWING_TENSORS = _CATENATES | {"torch.stack"} | {f"torch.{name}" for name in _STACKS}
"""The functions that give a tensor with more elements."""

GROWING_ARRAYS = frozenset(f"numpy.{name}" for name in (*_STACKS, "concatenate", "append"))
"""The functions that give an array with more elements."""

_SIZES = frozenset(("len", "size", "shape", "numel"))
_STARTS = frozenset(("zeros", "empty", "tensor", "array"))
_SELECTS = frozenset(("topk", "narrow", "index_select", "gather"))
_COLLECTING = (Role.METRIC, Role.EVALUATION_LOOP, Role.STEP, Role.LOSS)
_SPIES = frozenset(("locals", "vars", "eval", "exec"))


class Growth(NamedTuple):
    """A tensor or array that is concatenated with itself in every pass of a loop, or in every call of a method."""

    variable: cst.BaseExpression
    root: cst.For | cst.While | cst.FunctionDef
    often: str
    """How often it grows, in words."""

    is_array: bool
    """Whether NumPy concatenates it."""

    few_passes: bool
    """Whether the loop runs over layers, or a small constant number of times."""

    rebuilt: bool
    """Whether each pass starts afresh, or cuts the tensor down again."""

    collected: Collected | None
    """How a list can take its place, None where the loop needs the tensor itself."""

    is_read: bool
    """Whether the loop also uses the tensor for something else."""

    @property
    def is_of_object(self) -> bool:
        """Whether an object keeps it from one call to the next."""
        return isinstance(self.root, cst.FunctionDef)

    def advice(self, once: str, kind: str) -> str:
        """Return what to write instead, given how all is joined at once and what is joined, as messages say it."""
        if self.is_of_object:
            return f"Append to a list and call {once} once when the result is asked for"
        if self.is_read:
            return f"The loop reads it as well: write into slices of {kind} that has the final size"
        return (
            f"Append to a list and call {once} once after the loop, or write into slices of one that has the final size"
        )


class Collected(NamedTuple):
    """The parts of ``x = torch.cat([x, a, b], dim)`` for a loop that does not read ``x``."""

    statement: cst.Assign
    parts: tuple[cst.BaseExpression, ...]
    function: str
    options: str
    """The arguments after the tensors, as code."""


class Growths:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness
        self._aliases = Aliases(evaluator)
        self._few_passes = FewPasses(evaluator)
        self._assigned: dict[int, dict[str, list[cst.Assign]]] = {}

    @remembered
    def find(self, call: cst.Call) -> Growth | None:
        """Return the growth that ``x = torch.cat([x, y])`` in a loop is, None if the result does not go back into x."""
        statement = self._statement(call)
        if statement is None or len(statement.targets) != 1:
            return None
        target = statement.targets[0].target
        own = own_part(call, target) or part_of_row(call, target, self._evaluator)
        if own is None:
            return None
        name = self._evaluator.names.qualified(call.func)
        is_array = name in GROWING_ARRAYS
        if not is_array and name not in GROWING_TENSORS:
            return None
        loop = self._loop(call, target)
        if loop is None:
            return self._in_method(statement, target, own, is_array=is_array)
        if isinstance(loop, cst.While) and isinstance(target, cst.Name) and self._mirrors(call, target.value, loop):
            return None  # it doubles, which copies each element once on average
        rebuilt = not self._is_carried(own, statement, loop) or self._is_cut_back(own, statement, loop)
        rebuilt = rebuilt or method_call(statement.value, "unique") is not None  # a set that closes over neighbours
        collected = self._collected(call, own, statement, loop) if name in _CATENATES else None
        is_read = collected is None and (self._is_reordered(own) or self._is_read(target, loop))
        return Growth(target, loop, "in this loop", is_array, self._few_passes.has(loop), rebuilt, collected, is_read)

    def _in_method(
        self, statement: cst.Assign, target: cst.BaseExpression, own: cst.BaseExpression, *, is_array: bool
    ) -> Growth | None:
        """The growth of an attribute in a method that is called for each batch: ``update`` of a metric."""
        heat = self._hotness.heat(statement)
        if heat is None or heat.role not in _COLLECTING:
            return None
        method = self._evaluator.definitions.enclosing_function(statement)
        root = heat.root if isinstance(heat.root, cst.FunctionDef) else method
        if root is None or (root is not heat.root and self._tree.within(statement, heat.root)):
            return None
        held: cst.BaseExpression = target  # also one of several: `self.scores[label]`
        while isinstance(held, cst.Subscript):
            held = held.value
        owner = held.value if isinstance(held, cst.Attribute) else None
        if not isinstance(owner, cst.Name) or self._evaluator.definitions.receiver(owner) is None:
            return None
        rebuilt = not self._is_carried(own, statement, root)
        return Growth(target, root, heat.often, is_array, False, rebuilt, None, False)

    def _statement(self, call: cst.Call) -> cst.Assign | None:
        """The assignment that stores a call, through ``.method()`` chains and the branches of a conditional."""
        node: cst.CSTNode = call
        parent = self._tree.parent(node)
        if parent.__class__ not in _STORING:
            return None
        while parent is not None and not isinstance(parent, cst.Assign):
            through = (
                (isinstance(parent, cst.IfExp) and node is not parent.test)
                or (isinstance(parent, cst.Attribute) and isinstance(self._tree.parent(parent), cst.Call))
                or (isinstance(parent, cst.Call) and node is parent.func)
            )
            if not through:
                return None
            node, parent = parent, self._tree.parent(parent)
        return parent if isinstance(parent, cst.Assign) and node is parent.value else None

    def _mirrors(self, call: cst.Call, name: str, loop: cst.While) -> bool:
        """Whether all that is joined comes out of one tensor: ``torch.cat([x, x.flip(0)[:n]])`` pads it."""
        parts = call.args[0].value
        if not isinstance(parts, (cst.Tuple, cst.List)):
            return False
        return all(self._comes_from(element.value, name, loop) for element in parts.elements)

    def _comes_from(self, part: cst.BaseExpression, name: str, loop: cst.While) -> bool:
        """Whether a part is of the variable, itself or by a name that the loop gives to a part of it."""
        if root_of(part) == name:
            return True
        bindings = self._evaluator.flow.definitions(part) if isinstance(part, cst.Name) else ()
        values = [b.value if self._tree.within(b.node, loop) and not b.path else None for b in bindings]
        return bool(values) and all(isinstance(v, cst.BaseExpression) and root_of(v) == name for v in values)

    def _is_read(self, target: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether a loop uses a variable for more than to concatenate it and to ask whether there is one yet."""
        nodes = list(self._tree.descendants(loop.body))
        if isinstance(loop, cst.While):
            nodes += self._tree.descendants(loop.test)
        stored = ((node, self._statement(node)) for node in nodes if isinstance(node, cst.Call))
        owns = [own_part(n, target) for n, into in stored if into and is_same(into.targets[0].target, target)]
        known = {id(own) for own in owns if own is not None}
        places = (node for node in nodes if id(node) not in known and is_same(node, target))
        return any(self._is_use(place) for place in places)

    def _is_use(self, place: cst.CSTNode) -> bool:
        parent = self._tree.parent(place)
        if isinstance(parent, (cst.AssignTarget, cst.Comparison)):
            return False
        return getattr(parent, "attr", None) is not place and getattr(parent, "keyword", None) is not place

    def _loop(self, node: cst.CSTNode, target: cst.BaseExpression) -> cst.For | cst.While | None:
        """The innermost loop whose passes all store into the same place: not ``for i in ...: parts[i] = ...``."""
        names = {n.value for n in self._tree.descendants(target) if isinstance(n, cst.Name)}
        names = set() if isinstance(target, cst.Name) else names
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, FUNCTIONS):
                return None
            if isinstance(ancestor, LOOPS) and child is ancestor.body and not names & self._bound_in(ancestor):
                return ancestor
            child = ancestor
        return None

    def _bound_in(self, loop: cst.For | cst.While | cst.FunctionDef) -> set[str]:
        """The names that every pass of a loop binds anew."""
        targets = [loop.target] if isinstance(loop, cst.For) else []
        targets += [node.target for node in self._tree.below(loop.body, cst.AssignTarget)]
        targets += [node.target for node in self._tree.below(loop.body, cst.AugAssign)]
        elements = (e for t in targets for e in (t.elements if isinstance(t, (cst.Tuple, cst.List)) else (t,)))
        places = (e.value if isinstance(e, cst.BaseElement) else e for e in elements)
        return {place.value for place in places if isinstance(place, cst.Name)}

    def _is_carried(
        self, own: cst.BaseExpression, statement: cst.Assign, loop: cst.For | cst.While | cst.FunctionDef
    ) -> bool:
        """Whether the value of one pass goes into the concatenation of the next."""
        if isinstance(own, cst.Name) and not isinstance(loop, cst.FunctionDef):
            return self._comes_back(own, statement, loop)
        if root_of(own) in self._bound_in(loop):
            return False
        others = (other for place in places(own) for other in self._assignments(loop).get(place, ()))
        return all(other is statement or self._is_start(other, statement) for other in others)

    def _assignments(self, loop: cst.For | cst.While | cst.FunctionDef) -> dict[str, list[cst.Assign]]:
        """The assignments in a loop or function by what they assign to."""
        if id(loop) not in self._assigned:
            found = self._assigned[id(loop)] = {}
            for assignment in self._tree.below(loop.body, cst.Assign):
                for target in assignment.targets:
                    found.setdefault(canonical(target.target), []).append(assignment)
        return self._assigned[id(loop)]

    def _comes_back(self, own: cst.Name, statement: cst.Assign, loop: cst.For | cst.While) -> bool:
        """Whether a variable can hold the result of a statement, through other concatenations of the loop."""
        waiting, seen = [own], {id(own)}
        while waiting:
            for binding in self._evaluator.flow.definitions(waiting.pop()):
                other = self._evaluator.flow.statement(binding.node)
                if other is statement:
                    return True
                if isinstance(other, cst.Assign) and self._tree.within(other, loop):
                    joined = [own_part(n, own) for n in self._tree.descendants(other.value) if isinstance(n, cst.Call)]
                    joined += [reordered(other.value)] if self._is_among_rows(own) else []
                    fresh = [n for n in joined if isinstance(n, cst.Name) and id(n) not in seen]
                    waiting += fresh
                    seen.update(id(n) for n in fresh)
        return False

    def _is_among_rows(self, own: cst.Name) -> bool:
        """Whether what joins a variable to another adds no rows."""
        joining = next((a for a in self._tree.ancestors(own) if isinstance(a, cst.Call)), None)
        return joining is not None and keeps_rows(joining)

    def _is_reordered(self, own: cst.BaseExpression) -> bool:
        place = self._tree.parent(own)
        place = self._tree.parent(place) if isinstance(place, cst.Attribute) else place
        return isinstance(place, cst.BaseExpression) and reordered(place) is own

    def _is_cut_back(self, own: cst.BaseExpression, statement: cst.Assign, loop: cst.For | cst.While) -> bool:
        """Whether each pass cuts the variable, or a branch that asks for a size: ``if len(x) > k: x = x[-k:]``."""
        here = [block for block, _ in self._evaluator.flow.blocks(statement)[:1]]
        for assignment in self._tree.below(loop.body, cst.Assign):
            starts = is_same(assignment.targets[0].target, own) and _is_start(assignment.value)
            if assignment is statement or not (starts or self._cuts(assignment, own)):
                continue
            if _is_slice(assignment.value) and self._evaluator.flow.blocks(assignment)[0][0] in here:
                return True
            branch = self._tree.enclosing(assignment, cst.If)
            if branch is not None and self._tree.within(branch, loop):
                asked = (n for n in self._tree.descendants(branch.test) if isinstance(n, (cst.Name, cst.Attribute)))
                if any(identifier(node) in _SIZES for node in asked):
                    return True
        return False

    def _cuts(self, assignment: cst.Assign, own: cst.BaseExpression) -> bool:
        target, value = assignment.targets[0].target, assignment.value
        bound = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        is_cut = isinstance(value, cst.Subscript) or identifier(getattr(value, "func", value)) in _SELECTS
        return is_cut and any(is_same(each, own) for each in bound) and self._mentions(value, own)

    def _mentions(self, value: cst.CSTNode, own: cst.BaseExpression) -> bool:
        return any(is_same(node, own) for node in self._tree.descendants(value))

    def _is_start(self, other: cst.Assign, statement: cst.Assign) -> bool:
        """Whether an assignment is the other branch of the concatenation: ``if x is None: x = y``."""
        return self._evaluator.flow.exclusive(other, statement)

    def _collected(
        self, call: cst.Call, own: cst.BaseExpression, statement: cst.Assign, loop: cst.For | cst.While
    ) -> Collected | None:
        parts = call.args[0].value if statement.value is call else None
        if not isinstance(parts, (cst.Tuple, cst.List)) or not isinstance(own, cst.Name) or loop.orelse is not None:
            return None
        rest = tuple(e.value for e in parts.elements[1:])
        options = call.args[1:]
        plain = all(not a.star and (literal(a.value) is not None) for a in options)
        named = all(a.keyword is None or a.keyword.value in ("dim", "axis") for a in options)
        first = parts.elements[0].value is own and all(isinstance(e, cst.Element) for e in parts.elements)
        if not (first and plain and named) or not self._is_private(own, statement, loop):
            return None
        if any(self._changes(part, loop) or self._aliases.is_kept(part, loop) for part in rest):
            return None
        if not all(self._is_made_in(part, block) for block in self._blocks(statement, loop) for part in rest):
            return None  # what `no_grad` cuts off there, the concatenation after the loop would not
        gradients = self._evaluator.gradients
        cuts_off = gradients.disabled(statement) and not gradients.disabled(loop)
        if cuts_off and self._evaluator.value(own).graph is not Graph.DETACHED:
            return None
        text = "".join(f", {code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT))}" for a in options)
        return Collected(statement, rest, code(call.func), text)

    def _blocks(self, statement: cst.Assign, loop: cst.For | cst.While) -> list[cst.With]:
        """The contexts around a statement in a loop."""
        return [a for a in self._tree.ancestors(statement) if isinstance(a, cst.With) and self._tree.within(a, loop)]

    def _is_made_in(self, part: cst.BaseExpression, block: cst.With) -> bool:
        base = self._aliases.base(part)
        bindings = self._evaluator.flow.definitions(base) if isinstance(base, cst.Name) else []
        return all(self._tree.within(binding.node, block) for binding in bindings)

    def _is_private(self, own: cst.Name, statement: cst.Assign, loop: cst.For | cst.While) -> bool:
        """Whether nobody but the concatenation uses the variable until the loop is over, and it has a value before."""
        scopes, flow = self._evaluator.scopes, self._evaluator.flow
        here = scopes.scope(own)
        if own.value in here.delegated or scopes.deciding(own.value, here) is not here:
            return False
        target = statement.targets[0].target
        uses = [n for n in self._tree.named(own.value) if n is not own and n is not target]
        uses = [n for n in uses if scopes.deciding(own.value, scopes.scope(n)) is here]
        if any(self._tree.within(n, loop) or scopes.scope(n) is not here for n in uses):
            return False
        if any(self._may_catch(ancestor) for ancestor in self._tree.ancestors(statement)):
            return False  # an error would leave what was collected so far, or pass over a part that does not fit
        if any(n.value in _SPIES for n in self._tree.nodes(cst.Name)):
            return False
        starts = [b for b in flow.definitions(own) if flow.statement(b.node) is not statement]
        inside = {id(block) for block, _ in flow.blocks(loop)}
        around = (block for b in starts for block, _ in flow.blocks(flow.statement(b.node))[:1])
        return any(id(block) in inside for block in around)

    def _may_catch(self, ancestor: cst.CSTNode) -> bool:
        """Whether a statement can go on after an error in it; the blocks of torch let errors through."""
        if isinstance(ancestor, cst.With):
            items = (item.item for item in ancestor.items)
            names = (self._evaluator.names.qualified(i.func if isinstance(i, cst.Call) else i) for i in items)
            return not all(name is not None and name.startswith("torch.") for name in names)
        return isinstance(ancestor, (cst.Try, cst.TryStar))

    def _changes(self, part: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether the loop may write into a part after it was collected: only fresh values of each pass are certain."""
        names = self._aliases.names_behind(part, loop)
        if may_change_in_place(names, loop, self._evaluator):
            return True
        for node in self._tree.descendants(loop.body):
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                method = node.func.attr.value
                if method.endswith("_") and not method.endswith("__") and root_of(node.func.value) in names:
                    return True
            is_place = isinstance(node, cst.AssignTarget) and not isinstance(node.target, cst.Name)
            is_place = is_place or isinstance(node, cst.AugAssign)
            if is_place and isinstance(node, (cst.AugAssign, cst.AssignTarget)) and root_of(node.target) in names:
                return True
            if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "out":
                return True
        return False


def _is_slice(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Subscript) and any(isinstance(part.slice, cst.Slice) for part in value.slice)


def _is_start(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and identifier(value.func) in _STARTS
