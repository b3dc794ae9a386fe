"""Scopes and bindings: who gives a name its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

import libcst as cst

from torchlint.syntax.calls import element_at
from torchlint.syntax.walk import Tree

COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_OPENERS: tuple[type[cst.CSTNode], ...] = (cst.ClassDef, *COMPREHENSIONS, *FUNCTIONS)


class BindingKind(Enum):
    """What sort of code binds a name."""

    IMPORT = "import"
    ASSIGNMENT = "assignment"
    AUGMENTED = "augmented assignment"
    PARAMETER = "parameter"
    FUNCTION = "function"
    CLASS = "class"
    ITERATION = "iteration"
    CONTEXT = "with"
    EXCEPTION = "except"
    DELETION = "del"
    PATTERN = "match"


class Binding(NamedTuple):
    """One place that binds a name."""

    name: str
    kind: BindingKind
    node: cst.CSTNode
    """The bound name, parameter, import alias, function or class."""

    scope: Scope
    order: int
    value: cst.BaseExpression | None = None
    """What is assigned, iterated over, or entered; the default of a parameter."""

    path: tuple[int, ...] = ()
    """Where in the unpacked value this name sits: ``a, (b, c) = v`` gives c the path (1, 1); -1 below a star."""

    imported: str | None = None
    """The dotted name that an import binds."""

    @property
    def part(self) -> cst.BaseExpression | None:
        """The part of the value on the path, None where the value is not written out so far."""
        return element_at(self.value, self.path)


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function or comprehension with the names that it binds, in document order."""

    node: cst.CSTNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    delegated: dict[str, Scope] = field(default_factory=dict)
    """Names that ``global`` or ``nonlocal`` hand to another scope."""

    star_imports: list[str] = field(default_factory=list)

    @property
    def is_class(self) -> bool:
        """Whether nested functions cannot see the names of this scope."""
        return isinstance(self.node, cst.ClassDef)

    def module(self) -> Scope:
        """Return the outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Scopes:
    """All scopes of a tree, bound eagerly."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.module = Scope(tree.module, None)
        self._found: dict[int, list[Binding]] = {}
        self._made: dict[int, Binding] = {}
        self._deciding: dict[int, Scope | None] = {}
        self._packages: frozenset[str] | None = None
        self._by_node: dict[int, Scope] = {id(tree.module): self.module}
        self._at = self._opened()
        delegations: list[cst.Global | cst.Nonlocal] = [*tree.nodes(cst.Global), *tree.nodes(cst.Nonlocal)]
        for delegation in delegations:
            self._delegate(delegation)
        for binding in sorted(_bindings(tree, self), key=attrgetter("order")):
            binding.scope.bindings.setdefault(binding.name, []).append(binding)
        for statement in tree.nodes(cst.ImportFrom):
            if isinstance(statement.names, cst.ImportStar):
                self.scope(statement).star_imports.append(dotted(statement.module, len(statement.relative)))

    def scope(self, node: cst.CSTNode) -> Scope:
        """Return the scope in which a node's names are looked up.

        Decorators, defaults, annotations and base classes belong outside the definition that they stand on.
        """
        place = self._tree.orders.get(id(node))
        return self.module if place is None else self._at[place]

    def _opened(self) -> list[Scope]:
        """Return the scope of each node by its place, which is that around it until something opens another."""
        tree = self._tree
        found = [self.module] * len(tree.ordered)
        openers = [node for node_type in _OPENERS for node in tree.nodes(node_type)]
        for node in sorted(openers, key=tree.order):  # what stands in another comes after it
            around = found[tree.order(node)]
            scope = self._by_node[id(node)] = Scope(node, around)
            for inside in _inside(node):
                tree.mark(found, inside, scope)
            for outside in _outside(node):
                tree.mark(found, outside, around)
        return found

    def _scope_of(self, node: cst.CSTNode) -> Scope:
        scope = self._by_node.get(id(node))
        if scope is None:
            scope = self._by_node[id(node)] = Scope(node, self.scope(node))
        return scope

    def of_parameter(self, parameter: cst.Param) -> Scope:
        """Return the scope of the function or lambda that has a parameter."""
        function = self._tree.parent(self._tree.parents[id(parameter)])
        return self._scope_of(function) if function is not None else self.module

    def release(self) -> None:
        """Forget all bindings: they and their scopes refer to each other, which keeps the whole tree in memory."""
        self._made.clear()
        for scope in self._by_node.values():
            scope.bindings.clear()
            scope.delegated.clear()

    def inner(self, node: cst.FunctionDef | cst.Lambda | cst.ClassDef) -> Scope:
        """Return the scope that a function or class opens."""
        return self._scope_of(node)

    def deciding(self, name: str, scope: Scope) -> Scope | None:
        """Return the scope whose bindings give a name its meaning when it is read in ``scope``."""
        current: Scope | None = scope
        while current is not None:
            if name in current.delegated:
                return current.delegated[name]
            if name in current.bindings and (current is scope or not current.is_class):
                return current
            current = current.parent
        return None

    def decider(self, name: cst.Name) -> Scope | None:
        """Return the scope whose bindings give a name its meaning where it stands."""
        key = id(name)
        if key not in self._deciding:
            self._deciding[key] = self.deciding(name.value, self.scope(name))
        return self._deciding[key]

    def bindings(self, name: cst.Name) -> list[Binding]:
        """Return all bindings that a name can refer to, in document order; empty for built-ins and unknown names."""
        found = self._found.get(id(name))
        if found is None:
            deciding = self.decider(name)
            found = self._found[id(name)] = deciding.bindings.get(name.value, []) if deciding else []
        return found

    def made_by(self, name: cst.Name) -> Binding | None:
        """Return the binding that a name makes where it stands; None where it is read."""
        if not self._made:
            for binding in self.all_bindings():
                self._made.setdefault(id(binding.node), binding)
        return self._made.get(id(name))

    def aliases(self) -> frozenset[str]:
        """Return the names that may stand for something that has another name, or for no function of their own."""
        return frozenset(binding.name for binding in self.all_bindings() if not _is_plain(binding))

    def all_bindings(self) -> Iterator[Binding]:
        """Yield what every name of the file is bound to."""
        for scope in self._by_node.values():
            for found in scope.bindings.values():
                yield from found

    def imports(self, package: str) -> bool:
        """Return whether an import of the file names a package, or anything in it."""
        if self._packages is None:
            plain = (dotted(alias.name) for node in self._tree.nodes(cst.Import) for alias in node.names)
            partial = (dotted(node.module) for node in self._tree.nodes(cst.ImportFrom) if not node.relative)
            self._packages = frozenset(name.partition(".")[0] for name in (*plain, *partial))
        return package in self._packages

    def _delegate(self, statement: cst.Global | cst.Nonlocal) -> None:
        scope = self.scope(statement)
        for item in statement.names:
            name = item.name.value
            if isinstance(statement, cst.Global):
                scope.delegated[name] = self.module
            elif scope.parent is not None:
                scope.delegated[name] = scope.parent

    def home(self, name: str, node: cst.CSTNode) -> Scope:
        """Return the scope in which a binding of ``name`` at ``node`` takes effect."""
        scope = self.scope(node)
        return scope.delegated.get(name, scope)


def _inside(opener: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """Return the parts of a class, function or comprehension whose names are looked up in its own scope."""
    if isinstance(opener, (cst.FunctionDef, cst.Lambda)):
        return opener.params, opener.body
    if isinstance(opener, cst.ClassDef):
        return (opener.body,)
    if isinstance(opener, cst.DictComp):
        return opener.for_in, opener.key, opener.value
    return (opener.for_in, opener.elt) if isinstance(opener, cst.BaseSimpleComp) else ()


def _outside(opener: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of these that belong to the scope around it all the same."""
    if isinstance(opener, (cst.FunctionDef, cst.Lambda)):
        given = opener.params
        others = (each for each in (given.star_arg, given.star_kwarg) if isinstance(each, cst.Param))
        for parameter in (*given.posonly_params, *given.params, *given.kwonly_params, *others):
            yield from (part for part in (parameter.annotation, parameter.default) if part is not None)
    elif isinstance(opener, cst.BaseComp):
        yield opener.for_in.iter


def _is_plain(binding: Binding) -> bool:
    """Whether a name is that of what it is bound to."""
    if binding.kind is BindingKind.IMPORT:
        return binding.imported is not None and binding.imported.rpartition(".")[2] == binding.name
    return binding.kind in (BindingKind.FUNCTION, BindingKind.CLASS)


def dotted(expression: cst.BaseExpression | None, dots: int = 0) -> str:
    """Return the text of a dotted name, with the dots of a relative import; "" for anything else."""
    parts: list[str] = []
    current = expression
    while isinstance(current, cst.Attribute):
        parts.append(current.attr.value)
        current = current.value
    if isinstance(current, cst.Name):
        parts.append(current.value)
    elif current is not None:
        return ""
    return "." * dots + ".".join(reversed(parts))


def targets(expression: cst.BaseExpression) -> Iterator[tuple[cst.Name, tuple[int, ...]]]:
    """Yield the names that an assignment target binds, each with its path in the unpacked value."""
    for place, path in bound_places(expression):
        if isinstance(place, cst.Name):
            yield place, path


def bound_places(
    target: cst.BaseExpression, path: tuple[int, ...] = ()
) -> Iterator[tuple[cst.BaseExpression, tuple[int, ...]]]:
    """Yield the names, attributes and items that an assignment target binds, each with its path in the value."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        yield target, path
        return
    starred = False
    for index, element in enumerate(target.elements):
        starred = starred or isinstance(element, cst.StarredElement)
        yield from bound_places(element.value, (*path, -1 if starred else index))


def _bindings(tree: Tree, scopes: Scopes) -> Iterator[Binding]:
    def bind(
        name: str,
        kind: BindingKind,
        node: cst.CSTNode,
        value: cst.BaseExpression | None = None,
        path: tuple[int, ...] = (),
    ) -> Binding:
        return Binding(name, kind, node, scopes.home(name, node), tree.order(node), value, path)

    for assign in tree.nodes(cst.Assign):
        scope, value = scopes.scope(assign), assign.value
        for target in assign.targets:
            for name, path in targets(target.target):
                home = scope.delegated.get(name.value, scope)
                yield Binding(name.value, BindingKind.ASSIGNMENT, name, home, tree.order(name), value, path)
    for annotated in tree.nodes(cst.AnnAssign):
        if annotated.value is not None and isinstance(annotated.target, cst.Name):
            yield bind(annotated.target.value, BindingKind.ASSIGNMENT, annotated.target, annotated.value)
    for augmented in tree.nodes(cst.AugAssign):
        if isinstance(augmented.target, cst.Name):
            yield bind(augmented.target.value, BindingKind.AUGMENTED, augmented.target, augmented.value)
    for walrus in tree.nodes(cst.NamedExpr):
        if isinstance(walrus.target, cst.Name):
            yield _walrus(tree, scopes, walrus, walrus.target)
    loops: list[cst.For | cst.CompFor] = [*tree.nodes(cst.For), *tree.nodes(cst.CompFor)]
    for loop in loops:
        for name, path in targets(loop.target):
            yield bind(name.value, BindingKind.ITERATION, name, loop.iter, path)
    for item in tree.nodes(cst.WithItem):
        if item.asname is not None:
            for name, path in targets(item.asname.name):
                yield bind(name.value, BindingKind.CONTEXT, name, item.item, path)
    for parameter in tree.nodes(cst.Param):
        name, kind = parameter.name, BindingKind.PARAMETER
        yield Binding(name.value, kind, name, scopes.of_parameter(parameter), tree.order(name), parameter.default)
    for function in tree.nodes(cst.FunctionDef):
        yield bind(function.name.value, BindingKind.FUNCTION, function)
    for class_def in tree.nodes(cst.ClassDef):
        yield bind(class_def.name.value, BindingKind.CLASS, class_def)
    yield from _imports(tree, scopes)
    handlers: list[cst.ExceptHandler | cst.ExceptStarHandler] = [
        *tree.nodes(cst.ExceptHandler),
        *tree.nodes(cst.ExceptStarHandler),
    ]
    for handler in handlers:
        if handler.name is not None and isinstance(handler.name.name, cst.Name):
            yield bind(handler.name.name.value, BindingKind.EXCEPTION, handler.name.name)
    for deletion in tree.nodes(cst.Del):
        for name, _ in targets(deletion.target):
            yield bind(name.value, BindingKind.DELETION, name)
    patterns: list[cst.MatchAs | cst.MatchStar] = [*tree.nodes(cst.MatchAs), *tree.nodes(cst.MatchStar)]
    for pattern in patterns:
        if pattern.name is not None:
            yield bind(pattern.name.value, BindingKind.PATTERN, pattern.name)


def _walrus(tree: Tree, scopes: Scopes, walrus: cst.NamedExpr, target: cst.Name) -> Binding:
    scope = scopes.home(target.value, target)
    while isinstance(scope.node, COMPREHENSIONS) and scope.parent is not None:
        scope = scope.parent
    return Binding(target.value, BindingKind.ASSIGNMENT, target, scope, tree.order(target), walrus.value)


def _imports(tree: Tree, scopes: Scopes) -> Iterator[Binding]:
    for statement in tree.nodes(cst.Import):
        for alias in statement.names:
            full = dotted(alias.name)
            name = _as_name(alias)
            bound, imported = (name, full) if name else (full.partition(".")[0], full.partition(".")[0])
            yield Binding(
                bound, BindingKind.IMPORT, alias, scopes.home(bound, alias), tree.order(alias), imported=imported
            )
    for from_statement in tree.nodes(cst.ImportFrom):
        if isinstance(from_statement.names, cst.ImportStar):
            continue
        module = dotted(from_statement.module, len(from_statement.relative))
        for alias in from_statement.names:
            imported_name = dotted(alias.name)
            bound = _as_name(alias) or imported_name
            full = module + ("" if module.endswith(".") else ".") + imported_name
            yield Binding(bound, BindingKind.IMPORT, alias, scopes.home(bound, alias), tree.order(alias), imported=full)


def _as_name(alias: cst.ImportAlias) -> str:
    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
        return alias.asname.name.value
    return ""
