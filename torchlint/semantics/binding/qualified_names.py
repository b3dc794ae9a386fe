"""What a name or dotted expression refers to, as a qualified name."""

from __future__ import annotations

import builtins

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind, Scope, Scopes, dotted
from torchlint.semantics.tables.names import CONVENTIONAL_NAMES, STAR_EXPORTS, canonical
from torchlint.syntax.walk import Tree

_BUILTINS = frozenset(dir(builtins))
_LATER = (BindingKind.ASSIGNMENT, BindingKind.ITERATION)
_SWITCHES = ("torch.backends.", "os.environ")


class Names:
    """Qualified names, resolved lazily and remembered."""

    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self._tree = tree
        self._scopes = scopes
        self._known: dict[tuple[int, str], str | None] = {}
        self._qualified: dict[int, str | None] = {}
        self._mixed: set[tuple[int, str]] = set()
        self.by_convention = False
        """Whether a name was taken for what it is called, where a star import of another file binds or may bind it."""
        self.rebound: frozenset[str] = frozenset()
        """The names of attributes of imported objects that the file assigns to."""
        self.rebound = self._rebound_attributes()
        self._known.clear()
        self._qualified.clear()

    def qualified(self, expression: cst.CSTNode) -> str | None:
        """Return the canonical dotted name of what an expression refers to, None where that is not certain.

        A name resolves only if all its bindings in the deciding scope agree; built-ins are under ``builtins.``.
        Nothing is read through a call: ``f(x).g`` has no name.
        """
        key = id(expression)
        if key not in self._qualified:
            name = self._raw(expression)
            name = None if name is None else canonical(name)
            self._qualified[key] = None if name in self.rebound else name
        return self._qualified[key]

    def qualified_at(self, dotted_name: str, node: cst.CSTNode) -> str | None:
        """Return what a dotted name, as in a quoted annotation, refers to in the scope of a node."""
        first, _, rest = dotted_name.partition(".")
        owner = self._resolve(first, self._scopes.scope(node))
        name = canonical(f"{owner}.{rest}" if rest else owner) if owner is not None else None
        return None if name in self.rebound else name

    def _raw(self, expression: cst.CSTNode) -> str | None:
        if expression.__class__ is cst.Call:  # most often, and isinstance() is slow where the answer is no
            return None
        if isinstance(expression, cst.Name):
            scope = self._scopes.scope(expression)
            found = self._resolve(expression.value, scope)
            is_mixed = found is None and (id(scope), expression.value) in self._mixed
            return self._before_rebinding(expression, scope) if is_mixed else found
        if isinstance(expression, cst.Attribute):
            owner = self._raw(expression.value)
            return None if owner is None else f"{owner}.{expression.attr.value}"
        if isinstance(expression, cst.Subscript):
            owner = self._raw(expression.value)
            return owner if owner is not None and owner.rpartition(".")[2][:1].isupper() else None
        return None

    def _resolve(self, name: str, scope: Scope) -> str | None:
        key = (id(scope), name)
        if key not in self._known:
            self._known[key] = None  # a cycle of assignments resolves to nothing
            self._known[key] = self._lookup(name, scope)
        return self._known[key]

    def _lookup(self, name: str, scope: Scope) -> str | None:
        deciding = self._scopes.deciding(name, scope)
        if deciding is None or name not in deciding.bindings:  # a `global` that nothing binds
            return self._from_star(name, scope) or (f"builtins.{name}" if name in _BUILTINS else None)
        found = {self._target(binding) for binding in deciding.bindings[name] if not self._is_fallback(binding)}
        if len(found) > 1 and deciding is scope and any(b.imported is not None for b in deciding.bindings[name]):
            self._mixed.add((id(scope), name))
        return found.pop() if len(found) == 1 else None

    def _before_rebinding(self, name: cst.Name, scope: Scope) -> str | None:
        """What a name stands for while only imports have bound it: ``for data in data.DataLoader(...)`` comes later."""
        loops = [a for a in self._tree.ancestors(name) if isinstance(a, (cst.For, cst.While, cst.Lambda))]
        place, found = self._tree.order(name), set()
        for binding in scope.bindings[name.value]:
            is_before = self._tree.order(binding.node) < place
            if binding.imported is not None and is_before:
                found.add(canonical(binding.imported))
            elif (
                is_before or binding.kind not in _LATER or any(self._tree.within(binding.node, loop) for loop in loops)
            ):
                return None
        return found.pop() if len(found) == 1 else None

    def spelling(self, name: str, node: cst.CSTNode) -> str | None:
        """Return how the file can write a qualified name at a node, by its imports; None if it cannot.

        The import has run there for certain: it comes first, and no branch leads past it. Of several modules that hold
        the name the nearest to it is taken.
        """
        scope: Scope | None = self._scopes.scope(node)
        here = scope
        while scope is not None and here is not None:
            found: list[tuple[str, str]] = []
            for bound, bindings in scope.bindings.items():
                target = canonical(bindings[0].imported) if bindings[0].imported is not None else None
                if target is None or not (name == target or name.startswith(f"{target}.")):
                    continue
                if self._scopes.deciding(bound, here) is not scope or self._resolve(bound, here) != target:
                    continue
                if _begins(node) == bound or any(self._has_run(binding, node) for binding in bindings):
                    found.append((target, bound + name[len(target) :]))
            if found and found[0][0] == name:
                return found[0][1]
            if found:
                return max((one for one in found if one[0] != name), key=lambda one: len(one[0]))[1]
            scope = scope.parent
        return None

    def _has_run(self, binding: Binding, node: cst.CSTNode) -> bool:
        """Whether an import stands before a node, in a block that the node stands in too."""
        block = self._tree.enclosing(binding.node, cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)
        is_first = self._tree.order(binding.node) < self._tree.order(node)
        return binding.imported is not None and is_first and block is not None and self._tree.within(node, block)

    def _is_fallback(self, binding: Binding) -> bool:
        """Whether a binding stands in for a failed import: ``except ImportError: x = None``."""
        if binding.kind is not BindingKind.ASSIGNMENT or not isinstance(binding.value, cst.Name):
            return False
        handler = self._tree.enclosing(binding.node, cst.ExceptHandler)
        return binding.value.value in ("None", "False") and handler is not None

    def _target(self, binding: Binding) -> str | None:
        if binding.imported is not None:
            return canonical(binding.imported)
        if binding.kind is BindingKind.CLASS:
            return None
        if binding.kind is BindingKind.ASSIGNMENT and binding.value is not None and not binding.path:
            return self.qualified(binding.value)
        return None

    def _from_star(self, name: str, scope: Scope) -> str | None:
        current: Scope | None = scope
        found: set[str] = set()
        unseen = False
        while current is not None:
            for module in current.star_imports:
                if name in STAR_EXPORTS.get(module, ()):
                    found.add(canonical(f"{module}.{name}"))
                unseen = unseen or module not in STAR_EXPORTS
            current = current.parent
        if not found and unseen and name in CONVENTIONAL_NAMES:
            self.by_convention = True
            return CONVENTIONAL_NAMES[name]
        self.by_convention = self.by_convention or (unseen and bool(found))
        return found.pop() if len(found) == 1 else None

    def _rebound_attributes(self) -> frozenset[str]:
        """What is assigned to, as in ``torch.zeros = mine``; switches are meant to be set."""
        rebound = set()
        for target in self._tree.nodes(cst.AssignTarget):
            if isinstance(target.target, cst.Attribute):
                base: cst.BaseExpression = target.target
                while isinstance(base, cst.Attribute):
                    base = base.value
                if isinstance(base, cst.Name) and dotted(target.target):
                    name = self._raw(target.target)
                    if name is not None and "." in name and not name.startswith(_SWITCHES):
                        rebound.add(canonical(name))
        return frozenset(rebound)


def _begins(expression: cst.CSTNode) -> str:
    """Return the name that is read first where an expression is evaluated, empty if it begins with something else."""
    while isinstance(expression, (cst.Call, cst.Attribute, cst.Subscript)):
        expression = expression.func if isinstance(expression, cst.Call) else expression.value
    return expression.value if isinstance(expression, cst.Name) else ""
