"""A module together with another one of its project, as one text in which they see each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.text import Rows, apply_edits, comments, merged
from torchlint.edits.verify import place_of
from torchlint.project.modules import Link, Module, links

_DEFINITION = re.compile(r"(?:async\s+)?(?:def|class)\s+")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_OTHERS = "_of_the_other"
"""What a name of the other module ends in that both have."""


def joined(own: Module, other: Module, new: frozenset[str] = frozenset()) -> str | None:
    """Return the text of a module, in which all keeps its place, and that of another one below it.

    What one imports from the other are plain names in it, and names that both define differ, as do those that the other
    has and the first may be given by a fix (``new``). None if that cannot be done.
    """
    mine, theirs = links(own, other), links(other, own)
    taken, bound = _bound(own, mine), _bound(other, theirs)
    both = {name for name in taken.keys() & bound.keys() if taken[name] != bound[name] or not taken[name]}
    if any(both & set(node.names) for node in ast.walk(other.tree) if isinstance(node, ast.Global)):
        return None
    first = _text(own, _unlinked(own, mine, other, frozenset(both), keeps_length=True))
    parted = _unlinked(other, theirs, own, frozenset())
    places = [edit.range for edit in parted]
    told = [place for place in comments(other.text) or () if not any(p.start <= place.start < p.end for p in places)]
    second = _text(other, [*parted, *_Names(other, both).edits, *(TextEdit(place, "") for place in told)])
    if first is None or second is None or len(first) != len(own.text):
        return None
    if new:
        second = re.sub(rf"\b(?:{'|'.join(sorted(new))})\b", rf"\g<0>{_OTHERS}", second)
    return "\n".join((first, *_aliases(theirs), second, *_aliases(mine), ""))


def _text(module: Module, edits: Iterable[TextEdit]) -> str | None:
    whole = merged(sorted(set(edits)))
    return apply_edits(module.text, whole) if whole is not None else None


def _aliases(given: Sequence[Link]) -> list[str]:
    """The lines that give things of the other module the names that they have here."""
    named = [link for link in given if not link.is_module and not link.is_package]
    renamed = [link for link in named if link.name != link.alias.name]
    return [f"{link.name} = {link.alias.name}" for link in renamed]


def _unlinked(
    module: Module, given: Sequence[Link], other: Module, hidden: frozenset[str], *, keeps_length: bool = False
) -> list[TextEdit]:
    """Return the edits that take out imports, and the module before what is read of it: ``losses.dice`` is ``dice``."""
    rows = Rows(module.text)
    edits = []
    taken = [link for link in given if not link.is_package]
    for statement in {id(link.statement): link.statement for link in taken}.values():
        gone = [link.alias for link in taken if link.statement is statement]
        place = place_of(rows, statement)
        left = _without(statement, gone)
        edits.append(TextEdit(place, left.ljust(place.end - place.start) if keeps_length else left))
    modules = {link.name for link in given if link.is_module}
    packages = {link.name for link in given if link.is_package}
    for node in ast.walk(module.tree):
        owner = node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
        if isinstance(node, ast.Attribute) and (owner in modules or (owner in packages and node.attr in other.defined)):
            place = place_of(rows, node)
            if node.attr not in hidden:
                edits.append(TextEdit(place, node.attr.ljust(place.end - place.start) if keeps_length else node.attr))
    return edits


def _without(statement: ast.Import | ast.ImportFrom, gone: Sequence[ast.alias]) -> str:
    """Return an import without some of its names."""
    left = [alias for alias in statement.names if alias not in gone]
    if not left:
        return "pass"
    names = ", ".join(f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in left)
    if isinstance(statement, ast.Import):
        return f"import {names}"
    return f"from {'.' * statement.level}{statement.module or ''} import {names}"


def _bound(module: Module, given: Sequence[Link]) -> dict[str, str]:
    """Return what a module binds at its top, each with the import that does, empty for everything else."""
    links_of = {id(link.alias) for link in given if not link.is_package}
    found: dict[str, str] = {}
    for node in _own_nodes(module.tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source = f"{'.' * node.level}{node.module or ''}:" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if id(alias) not in links_of:
                    name = alias.asname or alias.name.partition(".")[0]
                    found.setdefault(name, source + (alias.name if alias.asname or source else name))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = ""
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = ""
    return found


def _own_nodes(body: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield the nodes of a scope, with the functions and classes in it but not what is in those."""
    for node in body:
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from _own_nodes(ast.iter_child_nodes(node))


class _Names(ast.NodeVisitor):
    """Gives names of a module another end where they stand for what the module binds at its top."""

    def __init__(self, module: Module, names: set[str]) -> None:
        self.edits: list[TextEdit] = []
        self._names = names
        self._rows = Rows(module.text)
        self._text = module.text
        self._hidden: list[set[str]] = []
        if names:
            self.visit(module.tree)

    def visit_Name(self, node: ast.Name) -> None:
        if self._is_renamed(node.id):
            self.edits.append(TextEdit(place_of(self._rows, node), node.id + _OTHERS))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._rename_definition(node)
        for outside in (*node.decorator_list, node.args, *([node.returns] if node.returns is not None else ())):
            self.visit(outside)
        self._scope(node.body, {*_parameters(node.args), *_stored(node.body)})

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._scope([node.body], set(_parameters(node.args)))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._rename_definition(node)
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        bound = set(_stored(node.body))
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.visit(statement)  # which does not see the names of its class
            else:
                self._scope([statement], bound)

    def visit_alias(self, node: ast.alias) -> None:
        name = node.asname or node.name
        if self._is_renamed(name):
            self.edits.append(TextEdit(place_of(self._rows, node), f"{node.name} as {name}{_OTHERS}"))

    def _scope(self, body: Sequence[ast.AST], bound: set[str]) -> None:
        self._hidden.append(bound)
        for node in body:
            self.visit(node)
        self._hidden.pop()

    def _rename_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if self._is_renamed(node.name) and not self._hidden and node.col_offset == 0:
            start = self._rows.offset(node.lineno, node.col_offset)
            head = _DEFINITION.match(self._text, start)
            if head is not None:
                self.edits.append(TextEdit(Range(head.end(), head.end() + len(node.name)), node.name + _OTHERS))

    def _is_renamed(self, name: str) -> bool:
        return name in self._names and not any(name in bound for bound in self._hidden)


def _parameters(arguments: ast.arguments) -> list[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [each.arg for each in every if each is not None]


def _stored(body: Iterable[ast.AST]) -> Iterable[str]:
    """Yield the names that a function binds itself."""
    for node in _own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)
