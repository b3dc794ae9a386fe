"""What the file does with a variable: the attributes it reads and the methods it calls on it."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.loss_terms import loss_terms
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import Scopes
from torchlint.semantics.tables.torch_api import LIKE_FACTORIES, LOSS_FUNCTIONS, OF_ARRAYS, STRING_ONLY, TENSOR_ONLY
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_TELLING = TENSOR_ONLY | OF_ARRAYS
_TAKERS = LIKE_FACTORIES | LOSS_FUNCTIONS
"""Functions whose first argument is a tensor."""
_SHAPED = frozenset(
    ("view", "reshape", "expand", "repeat", "unflatten", "new_zeros", "new_ones", "new_empty", "new_full")
)
"""Methods of tensors that are given sizes."""
_MOVES = ("to", "cuda")
# What may be moved, loaded and called, or set to evaluate, and is no model.
_NO_MODELS = re.compile(
    r"norm(ali[sz]\w*)?$|metrics?$|meter$|scaler$|stats?$|tokeni[sz]er$|(^|_)(data(set|loader)?|loader)s?$",
    re.IGNORECASE,
)
_NAMES_OF_TAKERS = frozenset(name.rpartition(".")[2] for name in _TAKERS)


class Usage:
    """Attribute names by variable, for local names and for attributes of ``self``."""

    def __init__(self, tree: Tree, scopes: Scopes, names: Names, definitions: Definitions) -> None:
        self._tree = tree
        self._scopes = scopes
        self._names = names
        self._definitions = definitions
        self._attributes: dict[tuple[int, str], set[str]] | None = None
        self._plain_backward: set[tuple[int, str]] = set()
        self._with_parameters: set[tuple[int, str]] = set()
        self._prepared: set[tuple[int, str]] = set()
        self._models: frozenset[str] | None = None
        self._loss_terms: frozenset[tuple[int, str]] | None = None
        self._appended: dict[tuple[int, str], list[cst.BaseExpression]] = {}
        self._stored: dict[tuple[int, str], list[cst.BaseExpression]] = {}
        self._told_apart: set[tuple[int, str]] = set()
        self._as_text: set[tuple[int, str]] = set()
        self._as_tensor: dict[tuple[int, str], list[cst.Name]] = {}
        self._as_array: dict[tuple[int, str], list[cst.Name]] = {}
        self._sizes: set[tuple[int, str]] = set()
        self._counted: set[tuple[int, str] | None] = set()
        self._given: dict[str, dict[tuple[int, str], list[cst.Name]]] = {}

    def attributes(self, variable: cst.CSTNode) -> frozenset[str]:
        """Return the names of all attributes that the file reads from a variable (``x`` or ``self.x``)."""
        key = self._key(variable)
        known = self._table().get(key) if key is not None else None
        return frozenset(known) if known is not None else frozenset()

    def appended(self, variable: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return the expressions that the file appends to a variable."""
        self._table()
        key = self._key(variable)
        return self._appended.get(key, []) if key is not None else []

    def stored(self, variable: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return the expressions that the file stores under keys of a variable: ``losses["total"] = loss``.

        Also by ``losses.setdefault("total", loss)``.
        """
        self._table()
        key = self._key(variable)
        return self._stored.get(key, []) if key is not None else []

    def tells_apart(self, variable: cst.CSTNode) -> bool:
        """Return whether the file stores at a place of a variable that is written out: ``counts[0] += right``."""
        self._table()
        return self._key(variable) in self._told_apart

    def as_tensor(self, variable: cst.Name, *, or_array: bool = False) -> list[cst.Name]:
        """Return the names of a variable on which the file calls a method that only tensors (or arrays) have."""
        self._table()
        key = self._key(variable) if self._as_tensor or or_array else None
        if key is None:
            return []
        return [*self._as_tensor.get(key, ()), *(self._as_array.get(key, ()) if or_array else ())]

    def is_text(self, variable: cst.Name) -> bool:
        """Return whether the file calls a method on a variable that only strings have."""
        self._table()
        return bool(self._as_text) and self._key(variable) in self._as_text

    def is_size(self, variable: cst.Name) -> bool:
        """Return whether the file gives a variable to a method of tensors as one of several sizes."""
        self._table()
        return self._key(variable) in self._sizes

    def given_to_torch(self, name: str) -> list[cst.Name]:
        """Return the variables of a name that are given to functions of torch which take nothing but tensors."""
        self._table()
        return [given for uses in self._given.get(name, {}).values() for given in uses]

    def is_counted(self, variable: cst.CSTNode) -> bool:
        """Return whether the file counts a variable up by a number that is written out."""
        self._table()
        key = self._key(variable) if self._counted else None
        return key is not None and key in self._counted

    def has_parameters(self, variable: cst.CSTNode) -> bool:
        """Return whether the file asks a variable for its parameters, as optimizers are given them."""
        self._table()
        return self._key(variable) in self._with_parameters

    def is_prepared_model(self, variable: cst.CSTNode) -> bool:
        """Return whether the file calls a variable, and ``variable.eval()``, or moves it and loads or trains it."""
        self._table()
        key = self._key(variable) if self._prepared and not _NO_MODELS.search(identifier(variable)) else None
        return key in self._prepared and key in self._called

    def is_called(self, variable: cst.CSTNode) -> bool:
        """Return whether the file calls a variable (``x`` or ``self.x``)."""
        key = self._key(variable)
        return key is not None and key in self._called

    @cached_property
    def _called(self) -> frozenset[tuple[int, str] | None]:
        return frozenset(self._key(call.func) for call in self._tree.nodes(cst.Call))

    def names_of_models(self) -> frozenset[str]:
        """Return the names of all variables that the file asks for their parameters, whatever scope they are in."""
        if self._models is None:
            self._table()
            self._models = frozenset(name for _, name in self._with_parameters)
        return self._models

    def is_backpropagated(self, variable: cst.CSTNode) -> bool:
        """Return whether the file calls ``variable.backward()`` without a positional argument."""
        self._table()
        return self._key(variable) in self._plain_backward

    def is_loss_term(self, variable: cst.Name) -> bool:
        """Return whether the file adds a variable up, be it scaled, to what it backpropagates."""
        if self._loss_terms is None:
            self._loss_terms = loss_terms(self._tree, self._key)
        return bool(self._loss_terms) and self._key(variable) in self._loss_terms

    def _table(self) -> dict[tuple[int, str], set[str]]:
        if self._attributes is None:
            self._attributes = {}
            readied: set[tuple[int, str]] = set()
            moved: set[tuple[int, str] | None] = set()
            for attribute in self._tree.nodes(cst.Attribute):
                key, call = self._key(attribute.value), self._tree.parent(attribute)
                if attribute.attr.value in _MOVES and isinstance(call, cst.Call):
                    moved.update((key, self._key_of_result(call)))
                if key is None:
                    continue
                self._attributes.setdefault(key, set()).add(attribute.attr.value)
                if isinstance(attribute.value, cst.Name) and attribute.attr.value in _TELLING and self._is_used(call):
                    used = self._as_tensor if attribute.attr.value in TENSOR_ONLY else self._as_array
                    used.setdefault(key, []).append(attribute.value)
                if attribute.attr.value in STRING_ONLY:
                    self._as_text.add(key)
                if attribute.attr.value == "append" and isinstance(call, cst.Call) and len(call.args) == 1:
                    self._appended.setdefault(key, []).append(call.args[0].value)
                if attribute.attr.value == "setdefault" and isinstance(call, cst.Call) and len(call.args) > 1:
                    self._stored.setdefault(key, []).append(call.args[1].value)
                if attribute.attr.value == "parameters" and isinstance(call, cst.Call) and not call.args:
                    self._with_parameters.add(key)
                if attribute.attr.value in _SHAPED and isinstance(call, cst.Call):
                    self._sizes.update(key for key in map(self._key, _names_of_sizes(call)) if key is not None)
                if attribute.attr.value == "eval" and isinstance(call, cst.Call) and not call.args:
                    self._prepared.add(key)
                if attribute.attr.value == "load_state_dict" and isinstance(call, cst.Call) and call.args:
                    readied.add(key)
                if attribute.attr.value == "train" and isinstance(call, cst.Call) and _sets_mode(call):
                    readied.add(key)
                if attribute.attr.value == "backward" and isinstance(call, cst.Call) and _is_keyword_only(call):
                    self._plain_backward.add(key)
            self._prepared |= readied & moved
            self._collect_added()
            self._collect_stored()
            self._collect_sliced()
            self._collect_given()
        return self._attributes

    def _is_used(self, call: cst.CSTNode | None) -> bool:
        """Whether something is done with the result of a method, or it is given anything.

        ``data.contiguous()`` alone says nothing of a tensor: batches of graphs change themselves so.
        """
        return not isinstance(call, cst.Call) or bool(call.args) or not isinstance(self._tree.parent(call), cst.Expr)

    def _key_of_result(self, call: cst.Call) -> tuple[int, str] | None:
        """The variable that an assignment gives the result of a call: ``net = Net().to(device)``."""
        statement = self._tree.parent(call)
        targets = statement.targets if isinstance(statement, cst.Assign) else ()
        return self._key(targets[0].target) if len(targets) == 1 else None

    def _collect_added(self) -> None:
        """Enter what ``items += [value]`` appends, and what ``self.updates += 1`` counts."""
        for statement in self._tree.nodes(cst.AugAssign):
            added = statement.value
            if isinstance(statement.operator, cst.AddAssign) and isinstance(added, cst.Integer):
                self._counted.add(self._key(statement.target))
            if isinstance(statement.operator, cst.AddAssign) and isinstance(added, (cst.List, cst.Tuple)):
                key = self._key(statement.target)
                if key is not None:
                    plain = (e.value for e in added.elements if isinstance(e, cst.Element))
                    self._appended.setdefault(key, []).extend(plain)

        for assigned in self._tree.nodes(cst.Assign):
            total = assigned.value
            if isinstance(total, cst.BinaryOperation) and isinstance(total.operator, cst.Add):
                target = assigned.targets[0].target  # self.updates = self.updates + 1
                if isinstance(total.right, cst.Integer) and is_same(total.left, target):
                    self._counted.add(self._key(target))

    def _collect_stored(self) -> None:
        """Enter what ``items[key] = value`` and ``items[key] += value`` store."""
        stores: list[cst.Assign | cst.AugAssign] = [*self._tree.nodes(cst.Assign), *self._tree.nodes(cst.AugAssign)]
        for statement in stores:
            target = statement.target if isinstance(statement, cst.AugAssign) else statement.targets[0].target
            if isinstance(target, cst.Subscript):
                key = self._key(target.value)
                if key is not None:
                    self._stored.setdefault(key, []).append(statement.value)
                    if isinstance(place := target.slice[0].slice, cst.Index) and isinstance(place.value, cst.Integer):
                        self._told_apart.add(key)

    def _collect_sliced(self) -> None:
        """Enter what is indexed as arrays are: ``x[:, 0]``."""
        for subscript in self._tree.nodes(cst.Subscript):
            if len(subscript.slice) > 1 and isinstance(subscript.value, cst.Name):
                key = self._key(subscript.value)
                if key is not None:
                    self._as_array.setdefault(key, []).append(subscript.value)

    def _collect_given(self) -> None:
        """Enter what functions of torch are given that take nothing but tensors."""
        for call in self._tree.nodes(cst.Call):
            given = call.args[0].value if call.args else None
            if isinstance(given, cst.Name) and not call.args[0].star and identifier(call.func) in _NAMES_OF_TAKERS:
                key = self._key(given) if self._names.qualified(call.func) in _TAKERS else None
                if key is not None:
                    self._given.setdefault(given.value, {}).setdefault(key, []).append(given)

    def _key(self, variable: cst.CSTNode) -> tuple[int, str] | None:
        if isinstance(variable, cst.Name):
            deciding = self._scopes.decider(variable)
            return (id(deciding), variable.value) if deciding is not None else None
        if isinstance(variable, cst.Attribute) and isinstance(variable.value, cst.Name):
            owner = self._definitions.receiver(variable.value)
            return (id(owner), variable.attr.value) if owner is not None else None
        return None


def _sets_mode(call: cst.Call) -> bool:
    """Return whether ``x.train()`` sets a mode, and is not given what to train by."""
    return all(isinstance(literal(argument.value), bool) for argument in call.args)


def _is_keyword_only(call: cst.Call) -> bool:
    return all(argument.keyword is not None for argument in call.args)


def _names_of_sizes(call: cst.Call) -> list[cst.Name]:
    """Return the variables that are sizes of their own in ``x.view(batch, heads, -1)``, not a whole shape."""
    given = [argument.value for argument in call.args if not argument.star and argument.keyword is None]
    if len(given) == 1 and isinstance(given[0], (cst.Tuple, cst.List)):
        given = [element.value for element in given[0].elements if isinstance(element, cst.Element)]
    return [size for size in given if isinstance(size, cst.Name)] if len(given) > 1 else []
