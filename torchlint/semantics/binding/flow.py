"""Which bindings can reach a use, and what runs before what."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS, FUNCTIONS, Binding, BindingKind, Scopes
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree

LOOPS = (cst.For, cst.While)
_BLOCKS: frozenset[type] = frozenset((cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module))
_FRAMES: frozenset[type] = frozenset((cst.FunctionDef, cst.ClassDef))
_STATEMENTS: frozenset[type] = frozenset(
    (
        cst.AnnAssign, cst.Assert, cst.Assign, cst.AugAssign, cst.Break, cst.ClassDef, cst.Continue, cst.Del, cst.Expr,
        cst.For, cst.FunctionDef, cst.Global, cst.If, cst.Import, cst.ImportFrom, cst.Match, cst.Nonlocal, cst.Pass,
        cst.Raise, cst.Return, cst.Try, cst.TryStar, cst.TypeAlias, cst.While, cst.With,
    )
)  # fmt: skip
_FORKS: frozenset[type] = frozenset((cst.If, cst.IfExp))
_SWALLOWING = frozenset(("suppress", "raises", "assertRaises"))
JUMPS = (cst.Return, cst.Raise, cst.Continue, cst.Break)


class Flow:
    """Straight-line reasoning over blocks: dominance by nesting, loops by repetition."""

    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self._tree = tree
        self._scopes = scopes
        self._definitions: dict[int, list[Binding]] = {}
        self._blocks: dict[int, list[tuple[cst.CSTNode, cst.CSTNode]]] = {}
        self._loops: dict[int, list[cst.For | cst.While]] = {}
        self._forks: dict[int, dict[int, cst.CSTNode]] = {}

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the innermost statement (small or compound) that holds a node, or the node itself."""
        current: cst.CSTNode | None = node
        while current is not None:
            if current.__class__ in _STATEMENTS:
                return current
            current = self._tree.parent(current)
        return node

    def blocks(self, node: cst.CSTNode) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
        """Return (block, statement line in it) pairs around a node up to its function or module, innermost first."""
        parents = self._tree.parents
        start: cst.CSTNode | None = node
        while start is not None and start.__class__ not in _STATEMENTS and start.__class__ not in _BLOCKS:
            start = parents.get(id(start))
        if start is None or start.__class__ in _BLOCKS:
            return self._blocks_around(node)
        found = self._blocks.get(id(start))  # those of a statement are those of all that stands in it outside a block
        if found is None:
            found = self._blocks[id(start)] = self._blocks_around(start)
        return found

    def _blocks_around(self, node: cst.CSTNode) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
        found: list[tuple[cst.CSTNode, cst.CSTNode]] = []
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor.__class__ in _BLOCKS:
                found.append((ancestor, child))
            elif ancestor.__class__ in _FRAMES and isinstance(child, cst.BaseSuite):
                break
            child = ancestor
        return found

    def named_reads(self, value: cst.CSTNode) -> list[cst.Name]:
        """Return where the variable is read into which an assignment puts a value, and nothing else."""
        statement = self._tree.parent(value)
        if not isinstance(statement, cst.Assign) or statement.value is not value or len(statement.targets) != 1:
            return []
        target = statement.targets[0].target
        if not isinstance(target, cst.Name):
            return []
        same = (name for name in self._tree.named(target.value) if name is not target)
        return [name for name in same if any(binding.node is target for binding in self.definitions(name))]

    def definitions(self, name: cst.Name) -> list[Binding]:
        """Return the bindings whose value a name can have where it is read, in document order.

        A name of an outer scope can have any value that is bound there.
        """
        found = self._definitions.get(id(name))
        if found is None:
            bindings = self._scopes.bindings(name)
            local = bool(bindings) and self._same_frame(name, bindings[0].scope.node)
            found = self._definitions[id(name)] = self._reaching(name, bindings) if local else bindings
        return found

    def makers(self, name: cst.Name) -> list[Binding]:
        """Return the bindings that make what a variable holds: ``a -= 1`` works in place on an array or tensor."""
        found: list[Binding] = []
        pending, seen = list(self.definitions(name)), set[int]()
        while pending:
            binding = pending.pop()
            if binding.kind is not BindingKind.AUGMENTED or not isinstance(binding.node, cst.Name):
                found.append(binding)
            elif id(binding.node) not in seen:
                seen.add(id(binding.node))
                pending += self.definitions(binding.node)
        return found

    def _same_frame(self, node: cst.CSTNode, frame: cst.CSTNode) -> bool:
        orders = self._tree.orders
        place, start = orders.get(id(node)), orders[id(frame)]
        if place is None:
            return isinstance(frame, cst.Module)
        return start < place <= self._tree.last(frame) and self._called_at[place] <= start

    @cached_property
    def _called_at(self) -> list[int]:
        """The place of the innermost function or lambda above each node, by its own place; -1 if there is none."""
        found = [-1] * len(self._tree.ordered)
        functions = [function for node_type in FUNCTIONS for function in self._tree.nodes(node_type)]
        for function in sorted(functions, key=self._tree.order):  # what stands in another comes after it
            place = self._tree.order(function)
            above = found[place]
            self._tree.mark(found, function, place)
            found[place] = above
        return found

    def _reaching(self, name: cst.Name, bindings: list[Binding]) -> list[Binding]:
        place = self._tree.order(name)
        first = bindings[0]
        if len(bindings) == 1 and first.kind is BindingKind.PARAMETER and isinstance(first.scope.node, cst.FunctionDef):
            return bindings if first.order < place else []
        own_statement = self.statement(name)
        branches = self._branches(name)
        block_ids = {id(block) for block, _ in self.blocks(name)}
        loops = self._loops_around(name, own_statement)
        reaching: list[Binding] = []
        killer: Binding | None = None
        for index in range(bisect_left(bindings, place, key=_order) - 1, -1, -1):
            binding = bindings[index]
            if not self._before(binding, place, own_statement) or self._is_elsewhere(binding.node, branches):
                continue
            if binding.kind is not BindingKind.PARAMETER and self._leaves(binding.node, block_ids):
                continue  # the blocks around a parameter are those around its function
            reaching.append(binding)
            if self._dominates(binding, block_ids, own_statement):
                killer = binding
                break
        for binding in self._within(loops[-1], bindings) if loops else ():
            if binding in reaching or self._before(binding, place, own_statement):
                continue
            loop = next((loop for loop in loops if self._tree.within(binding.node, loop.body)), None)
            if loop is None or (killer is not None and self._tree.within(killer.node, loop)):
                continue
            if not self._rebound_later(binding, bindings, loop):
                reaching.append(binding)
        return sorted(reaching, key=lambda b: b.order)

    def _loops_around(self, name: cst.Name, statement: cst.CSTNode) -> list[cst.For | cst.While]:
        """Return the loops around a name, innermost first, given its statement: those of all names in it."""
        found = self._loops.get(id(statement))
        if found is None:
            found = [a for a in (statement, *self._tree.ancestors(statement)) if isinstance(a, LOOPS)]
            self._loops[id(statement)] = found
        return found

    def _within(self, ancestor: cst.CSTNode, bindings: list[Binding]) -> list[Binding]:
        """Return the bindings below a node."""
        first = bisect_left(bindings, self._tree.order(ancestor), key=_order)
        return bindings[first : bisect_right(bindings, self._tree.last(ancestor), key=_order)]

    def _rebound_later(self, binding: Binding, bindings: list[Binding], loop: cst.For | cst.While) -> bool:
        """Whether every pass of a loop binds the name again after this binding."""
        return any(
            other.order > binding.order
            and self.statement(other.node) is not self.statement(binding.node)
            and id(self.blocks(self.statement(other.node))[0][0]) == id(loop.body)
            for other in bindings
            if self._tree.within(other.node, loop.body)
        )

    def _before(self, binding: Binding, place: int, own_statement: cst.CSTNode) -> bool:
        if binding.order >= place:
            return False
        if isinstance(own_statement, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
            # The value is read before the target is bound; a comprehension or lambda in it binds names of its own.
            value = own_statement.value
            own = value is not None and self._tree.within(binding.node, value)
            return own or self.statement(binding.node) is not own_statement
        return True

    def _dominates(self, binding: Binding, block_ids: set[int], own_statement: cst.CSTNode) -> bool:
        """Whether every run that reaches the use has passed this binding."""
        statement = self.statement(binding.node)
        if statement is own_statement:
            return True
        if isinstance(statement, (cst.For, cst.With)) and not self._tree.within(binding.node, statement.body):
            if id(statement.body) in block_ids:
                return True
            if isinstance(statement, cst.For):
                return False
        if isinstance(self._tree.parent(binding.node), (cst.Param, *COMPREHENSIONS)):
            return True
        blocks = self.blocks(statement)
        for block, _ in blocks:
            if id(block) in block_ids:
                return True
            if not (_always_runs(self._tree.parent(block)) or self._covers(binding.name, block)):
                return False
        return not blocks

    def _covers(self, name: str, block: cst.CSTNode) -> bool:
        """Whether a block is the first branch of a statement all of whose branches bind the name or leave."""
        statement = self._tree.parent(block)
        if isinstance(statement, cst.If) and block is statement.body:
            branch: cst.If | cst.Else | None = statement.orelse
            while branch is not None:
                if not self._binds_or_leaves(name, branch.body):
                    return False
                if isinstance(branch, cst.Else):
                    return True
                branch = branch.orelse
            return False
        if isinstance(statement, cst.Try) and block is statement.body:
            return all(self._binds_or_leaves(name, handler.body) for handler in statement.handlers)
        return False

    def _binds_or_leaves(self, name: str, block: cst.BaseSuite) -> bool:
        return ends_in_jump(block) or any(self._binds(name, line) for line in block.body)

    def _binds(self, name: str, line: cst.CSTNode) -> bool:
        if isinstance(line, cst.SimpleStatementLine):
            return any(self._binds(name, small) for small in line.body)
        if isinstance(line, cst.With):
            return _always_runs(line) and self._binds_or_leaves(name, line.body)
        return isinstance(line, cst.Assign) and any(
            isinstance(node, cst.Name) and node.value == name
            for target in line.targets
            for node in self._tree.descendants(target)
        )

    def exclusive(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Return whether two nodes stand in different branches of one ``if``."""
        return self._is_elsewhere(first, self._branches(second))

    def _branches(self, node: cst.CSTNode) -> dict[int, cst.CSTNode]:
        """Return the branch in which a node stands for each ``if`` around it."""
        found: dict[int, cst.CSTNode] = {}
        child: cst.CSTNode = node
        while child.__class__ not in _STATEMENTS:
            ancestor = self._tree.parents.get(id(child))
            if ancestor is None:
                return found
            if ancestor.__class__ in _FORKS and child is not ancestor.test:  # type: ignore[attr-defined]
                found[id(ancestor)] = child
            child = ancestor
        around = self._forks.get(id(child))
        if around is None:  # the same for all that stands in a statement
            above = self._tree.parents.get(id(child))
            around = self._branches(above) if above is not None else {}
            if isinstance(above, cst.If):
                around = {**around, id(above): child}
            self._forks[id(child)] = around
        return {**found, **around} if found else around

    def _is_elsewhere(self, node: cst.CSTNode, branches: dict[int, cst.CSTNode]) -> bool:
        """Whether a node stands in another branch of an ``if`` than these."""
        if not branches:
            return False
        return any(branches.get(fork, branch) is not branch for fork, branch in self._branches(node).items())

    def _leaves(self, node: cst.CSTNode, block_ids: set[int]) -> bool:
        """Whether the block of a node ends in a jump before control can come to a use outside it."""
        for block, _ in self.blocks(node):
            if id(block) in block_ids:
                return False
            if ends_in_jump(block):
                return True
        return False

    def following(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the statements that come after a node's statement in its own block."""
        for block, line in self.blocks(node)[:1]:
            seen = False
            for statement in block.body:  # type: ignore[attr-defined]
                if seen:
                    yield statement
                seen = seen or statement is line


def _order(binding: Binding) -> int:
    return binding.order


def _always_runs(statement: cst.CSTNode | None) -> bool:
    """Return whether the body of a compound statement runs to its end whenever what follows it runs."""
    if not isinstance(statement, cst.With):
        return False
    made = (item.item for item in statement.items)
    return not any(isinstance(c, cst.Call) and identifier(c.func) in _SWALLOWING for c in made)


def last_statement(block: cst.CSTNode) -> cst.CSTNode | None:
    """Return the last statement, small or compound, of a block."""
    body = getattr(block, "body", ())
    last: cst.CSTNode | None = body[-1] if body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last


def ends_in_jump(block: cst.CSTNode) -> bool:
    """Return whether a block ends in return, raise, continue or break."""
    return isinstance(last_statement(block), JUMPS)
