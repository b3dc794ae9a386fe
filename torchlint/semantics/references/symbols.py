"""Where a file uses names that a table speaks of: in imports, calls and other references."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from torchlint.semantics.binding.scopes import dotted
from torchlint.semantics.tables.names import canonical
from torchlint.semantics.tables.symbols import Symbol, SymbolTable
from torchlint.syntax.calls import bind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

Reference: TypeAlias = cst.Name | cst.Attribute
_TYPE_TESTS = frozenset(("builtins.isinstance", "builtins.issubclass"))


class Use(NamedTuple):
    """One use of a symbol: an import of it, or a reference to it."""

    name: str
    symbol: Symbol
    statement: cst.ImportFrom | None = None
    """The import, of which ``alias`` is a part; None for a reference."""

    alias: cst.ImportAlias | None = None
    reference: Reference | None = None
    call: cst.Call | None = None
    """The call whose function the reference is, if it is called."""

    @property
    def node(self) -> cst.CSTNode:
        """The node that is reported: the call, the reference, or the name in the import."""
        found = self.call or self.reference or self.alias
        assert found is not None
        return found


def symbol_uses(model: Model, table: SymbolTable) -> Iterator[Use]:
    """Yield the uses of a table's symbols, imports first; an assigned alias counts where it is assigned.

    What an import binds counts there, where it is called and where it decorates.
    """
    local: set[str] = set()
    for statement, alias, name in imports(model):
        if name in table.symbols:
            local.add(alias.evaluated_alias or alias.evaluated_name)
            yield Use(name, table.symbols[name], statement, alias)
    names = (name for name in model.nodes(cst.Name) if name.value in local)
    attributes = (found for found in model.nodes(cst.Attribute) if found.attr.value in table.last_names)
    references: Iterator[Reference] = chain(names, attributes)
    for reference in references:
        qualified = model.qualified_name(reference)
        if qualified is not None and qualified in table.symbols:
            parent = model.parent(reference)
            call = parent if isinstance(parent, cst.Call) and parent.func is reference else None
            if isinstance(reference, cst.Name) and call is None and not isinstance(parent, cst.Decorator):
                continue
            yield Use(qualified, table.symbols[qualified], reference=reference, call=call)


def moved_with(use: Use, table: SymbolTable, model: Model) -> list[Use]:
    """Return the imports that get another module together with a use's own: one statement brings them in."""
    own = (use.statement, use.alias) if use.reference is None else import_of(use.reference, model)
    module = use.symbol.replacement.rpartition(".")[0]
    found = [
        Use(name, table.symbols[name], statement, alias)
        for statement, alias, name in imports(model)
        if own is not None and statement is own[0] and name in table.symbols
    ]
    return [other for other in found if other.symbol.replacement.rpartition(".")[0] == module] or [use]


def import_of(reference: Reference, model: Model) -> tuple[cst.ImportFrom, cst.ImportAlias] | None:
    """Return the import that binds the very name that a reference is, if there is only one."""
    if not isinstance(reference, cst.Name):
        return None
    bindings = model.bindings(reference)
    alias = bindings[0].node if len(bindings) == 1 else None
    if not isinstance(alias, cst.ImportAlias):
        return None
    return next(((s, a) for s, a, _ in imports(model) if a is alias), None)


def imports(model: Model) -> Iterator[tuple[cst.ImportFrom, cst.ImportAlias, str]]:
    """Yield each name that the file imports from a module, with its canonical name."""
    for statement in model.nodes(cst.ImportFrom):
        if not statement.relative and not isinstance(statement.names, cst.ImportStar) and statement.module is not None:
            module = dotted(statement.module)
            for alias in statement.names:
                yield statement, alias, canonical(f"{module}.{alias.evaluated_name}")


def is_type_test(use: Use, model: Model) -> bool:
    """Return whether a class is only asked for, as in ``isinstance``: nothing is made of it."""
    if use.reference is not None:
        return use.call is None and _is_asked_for(use.reference, model)
    names = [name for name in model.nodes(cst.Name) if _is_bound_by(name, use.alias, model)]
    return bool(names) and all(_is_asked_for(name, model) for name in names)


def is_asked_for(use: Use, model: Model) -> bool:
    """Return whether something in the file asks if an object is of the class, which its successor makes none of."""
    last = use.name.rpartition(".")[2]
    local = {a.evaluated_alias or a.evaluated_name for _, a, name in imports(model) if name == use.name}
    references: list[Reference] = [name for name in model.nodes(cst.Name) if name.value in local]
    references += model.tree.attributes_named(last)
    return any(_is_asked_for(found, model) and model.qualified_name(found) == use.name for found in references)


def takes_all(use: Use, model: Model) -> bool:
    """Return whether the replacement has every parameter that a call in the file gives the symbol."""
    lost, most = use.symbol.lost, use.symbol.positions
    if not lost:
        return True
    calls = (call for call in model.nodes(cst.Call) if model.qualified_name(call.func) == use.name)
    given = [bind(call.args) for call in calls]
    if most is not None and any(len(found.extra) > most for found in given):
        return False
    return all(not found.open and lost.isdisjoint(found.named) for found in given)


def is_only_called(use: Use, model: Model) -> bool:
    """Return whether a function is called, or decorates, wherever the file names it: nobody sees which one it is."""
    alias = use.alias
    if alias is None and use.reference is not None:
        found = import_of(use.reference, model)
        if found is None:
            return _is_called(use.reference, model)
        alias = found[1]
    return all(_is_called(name, model) for name in model.nodes(cst.Name) if _is_bound_by(name, alias, model))


def is_spoken_of(use: Use, model: Model) -> bool:
    """Return whether a string names a symbol, so that something may be put in its place: ``patch("torch.ger")``."""
    last = use.name.rpartition(".")[2]
    texts = (text.raw_value for text in model.nodes(cst.SimpleString))
    return any(text == last or text.endswith(use.name) for text in texts)


def _is_called(reference: Reference, model: Model) -> bool:
    parent = model.parent(reference)
    return isinstance(parent, cst.Decorator) or (isinstance(parent, cst.Call) and parent.func is reference)


def _is_bound_by(name: cst.Name, alias: cst.ImportAlias | None, model: Model) -> bool:
    if alias is None or name.value != (alias.evaluated_alias or alias.evaluated_name):
        return False
    return not model.within(name, alias) and any(binding.node is alias for binding in model.bindings(name))


def _is_asked_for(reference: Reference, model: Model) -> bool:
    """Whether ``isinstance``, a comparison of types or a pattern asks for a class."""
    asking = model.enclosing(reference, cst.Call, cst.Comparison, cst.MatchClass)
    if isinstance(asking, cst.Call):
        return len(asking.args) == 2 and model.qualified_name(asking.func) in _TYPE_TESTS
    if isinstance(asking, cst.Comparison):
        return not model.within(reference, asking.left)
    return isinstance(asking, cst.MatchClass) and model.within(reference, asking.cls)
