"""Edits that write another name of the torch API in place of one, with what brings the new name into force."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.edits.operations import AddImport, Edit, Replace, ReplaceStatement
from torchlint.semantics.binding.scopes import dotted
from torchlint.semantics.references.symbols import Reference, Use, import_of, imports
from torchlint.semantics.tables.symbols import SymbolTable

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class Renaming(NamedTuple):
    """The edits, and whether a name that other files may import from this one goes."""

    edits: tuple[Edit, ...]
    drops_name: bool = False


def renamed(use: Use, table: SymbolTable, model: Model) -> Renaming | None:
    """Return the edits that write a symbol's replacement at one use, None if there are none that are right.

    What an import binds is renamed with the import, at all places at once.
    """
    if use.statement is not None and use.alias is not None:
        return _imported(use.statement, use.alias, table, model)
    if use.reference is None:
        return None
    found = import_of(use.reference, model)
    if found is not None:
        return _imported(*found, table, model)
    written = from_root(use.reference, use.symbol.replacement, model)
    return Renaming((Replace(use.reference, written.code), *written.imports)) if written is not None else None


class Spelling(NamedTuple):
    """How a place can write a name, and the import that it needs for that."""

    code: str
    imports: tuple[AddImport, ...] = ()


def from_root(reference: Reference, name: str, model: Model) -> Spelling | None:
    """Return how to write a qualified name in place of a reference: by way of the same module where that holds it."""
    root: cst.BaseExpression = reference
    while isinstance(root, cst.Attribute):
        root = root.value
    module = model.qualified_name(root)
    if isinstance(root, cst.Name) and root is not reference and module is not None and name.startswith(f"{module}."):
        return Spelling(root.value + name[len(module) :])
    return spelled(name, reference, model)


def spelled(name: str, node: cst.CSTNode, model: Model) -> Spelling | None:
    """Return how a node can write a qualified name, None where the name of its package means something else there.

    An import further down does not help what runs before it.
    """
    written = model.spelling(name, node)
    if written is not None:
        return Spelling(written) if _is_bound_before(written.partition(".")[0], node, model) else None
    package, beside = name.partition(".")[0], _import_behind(node, model)
    if beside is not None and _is_imported_beside(package, beside, node, model):
        return Spelling(name)
    if any(package == bound for bound in model.scopes.module.bindings):
        return None
    return Spelling(name, (AddImport(package, beside=beside),))


def _is_imported_beside(package: str, beside: cst.CSTNode, node: cst.CSTNode, model: Model) -> bool:
    """Return whether the block of an import brings the package in as well, so that both are there or none."""
    deciding = model.scopes.deciding(package, model.scopes.scope(node))
    bindings = deciding.bindings.get(package, []) if deciding is not None else []
    block = _block(beside, model)
    is_one = len(bindings) == 1 and bindings[0].imported == package
    if not is_one or model.order(bindings[0].node) > model.order(node):
        return False
    return _block(bindings[0].node, model) is block and deciding is model.scopes.scope(beside)


def _import_behind(node: cst.CSTNode, model: Model) -> cst.Import | cst.ImportFrom | None:
    """Return the import by which a node names what it names: the only one, or the last one that has run there."""
    root = node
    while isinstance(root, (cst.Attribute, cst.Call)):
        root = root.func if isinstance(root, cst.Call) else root.value
    bindings = model.bindings(root) if isinstance(root, cst.Name) else []
    if not bindings or bindings[0].scope.is_class:
        return None
    run = [binding for binding in bindings if _has_run(binding.node, node, model)] if len(bindings) > 1 else bindings
    statement = model.parent(run[-1].node) if run else None
    return statement if isinstance(statement, (cst.Import, cst.ImportFrom)) else None


def _has_run(alias: cst.CSTNode, node: cst.CSTNode, model: Model) -> bool:
    block = _block(alias, model)
    return model.order(alias) < model.order(node) and block is not None and model.within(node, block)


def _block(node: cst.CSTNode, model: Model) -> cst.CSTNode | None:
    return model.enclosing(node, cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)


def _is_bound_before(name: str, node: cst.CSTNode, model: Model) -> bool:
    scope = model.scopes.scope(node)
    deciding = model.scopes.deciding(name, scope)
    if deciding is None:
        return False
    runs_at_once = deciding is scope or model.enclosing_function(node) is None  # the body of a class does, too
    return not runs_at_once or deciding.bindings[name][0].order < model.order(node)


def _imported(statement: cst.ImportFrom, alias: cst.ImportAlias, table: SymbolTable, model: Model) -> Renaming | None:
    """Return the edits that import from where the replacements are, and what that renames in the file."""
    symbols = {id(a): table.symbols[name] for s, a, name in imports(model) if s is statement and name in table.symbols}
    module = symbols[id(alias)].replacement.rpartition(".")[0]
    moved = [
        a
        for a in _aliases(statement)
        if id(a) in symbols and symbols[id(a)].replacement.rpartition(".")[0] == module and module
    ]
    edits: list[Edit] = []
    names: dict[int, cst.ImportAlias] = {}
    drops_name = False
    for other in moved:
        old, new = other.evaluated_name, symbols[id(other)].replacement.rpartition(".")[2]
        names[id(other)] = other.with_changes(name=cst.Name(new))
        if other.asname is None and new != old:
            uses = _renamed_uses(other, new, model)
            if uses is None:
                names[id(other)] = names[id(other)].with_changes(asname=cst.AsName(cst.Name(old)))
            else:
                edits += uses
                drops_name = True
    return Renaming((ReplaceStatement(statement, _lines(statement, module, names, model)), *edits), drops_name)


def _aliases(statement: cst.ImportFrom) -> tuple[cst.ImportAlias, ...]:
    return () if isinstance(statement.names, cst.ImportStar) else tuple(statement.names)


def _lines(statement: cst.ImportFrom, module: str, names: dict[int, cst.ImportAlias], model: Model) -> tuple[str, ...]:
    """Return the statement with some of its names from another module, on a line of their own where others stay."""
    aliases = _aliases(statement)
    path = cst.parse_expression(module)
    assert isinstance(path, (cst.Name, cst.Attribute))
    stays = [alias for alias in aliases if id(alias) not in names]
    if not stays or dotted(statement.module) == module:
        shown = [names.get(id(alias), alias) for alias in aliases]
        changed = statement.with_changes(module=path, names=shown, semicolon=cst.MaybeSentinel.DEFAULT)
        return tuple(model.code(changed).splitlines())
    return (_line(dotted(statement.module), stays), _line(module, [names[id(a)] for a in aliases if id(a) in names]))


def _line(module: str, aliases: list[cst.ImportAlias]) -> str:
    shown = (
        f"{a.evaluated_name} as {a.evaluated_alias}" if a.evaluated_alias is not None else a.evaluated_name
        for a in aliases
    )
    return f"from {module} import {', '.join(shown)}"


def _renamed_uses(alias: cst.ImportAlias, new: str, model: Model) -> list[Edit] | None:
    """Return the edits that rename what an import binds.

    None where the new name is taken, where others bind the old one too, where it is an attribute of a class, and where
    a string or a line that only IPython understands speaks of it.
    """
    old = alias.evaluated_name
    names = model.nodes(cst.Name)
    declarations: list[cst.Global | cst.Nonlocal] = [*model.nodes(cst.Global), *model.nodes(cst.Nonlocal)]
    declared = (item.name.value for declaration in declarations for item in declaration.names)
    spoken = any(re.search(rf"\b{re.escape(old)}\b", text.value) for text in model.nodes(cst.SimpleString))
    if spoken or old in declared or model.scopes.scope(alias).is_class:
        return None
    if any(name.value == new for name in names):
        return None
    uses = [name for name in names if name.value == old]
    bindings = [model.bindings(use) for use in uses]
    if any(len(found) != 1 or found[0].node is not alias for found in bindings):
        return None
    if any(name.value == "get_ipython" for name in names) and any(_is_for_magic(use, model) for use in uses):
        return None
    return [Replace(use, new) for use in uses]


def _is_for_magic(name: cst.Name, model: Model) -> bool:
    """Return whether a name is an argument of what stands in for a line that only IPython understands."""
    call = next((node for node in model.ancestors(name) if isinstance(node, cst.Call)), None)
    return call is not None and model.code(call.func).startswith("get_ipython")
