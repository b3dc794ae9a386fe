"""Statements that keep a value: sums, lists, places in a container."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.container_methods import ADDS_TO_LIST, EXTENDS
from torchlint.syntax.calls import bind, identifier, method_call
from torchlint.syntax.canonical import is_same

_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack"))
_ADDS = frozenset(("add", "index_add", "scatter_add", "lerp"))
_SUMS = ("torch.add", "torch.lerp")
_IN_PLACE = ("add_", "index_add_", "scatter_add_", "lerp_")
_EXTREMES = frozenset(f"torch.{name}" for name in ("max", "maximum", "min", "minimum"))

Keeping = cst.AugAssign | cst.Assign | cst.Call | cst.ListComp | cst.GeneratorExp
"""What may keep a value: statements, and comprehensions over steps."""


@dataclass(frozen=True, slots=True)
class Store:
    """What a statement keeps, and where."""

    variable: cst.BaseExpression
    values: tuple[cst.BaseExpression, ...]
    is_stored: bool
    """Whether the object itself is kept, rather than a sum that is computed from it."""

    index: cst.BaseExpression | None = None
    """The place in the variable, where one is assigned to."""

    by_method: bool = False
    """Whether a method of the variable keeps it."""

    part: int | None = None
    """Which of several results of the value is kept."""


@dataclass(frozen=True, slots=True)
class Retention:
    """A value with a graph that each step adds to a variable from outside of it."""

    variable: cst.BaseExpression
    values: tuple[cst.BaseExpression, ...]
    """What carries the graph: of a conditional expression the branches that do."""

    evidence: Evidence
    is_backpropagated: bool
    """Whether the variable flows into a backward pass."""

    is_remade: bool
    """Whether each step starts the variable anew."""

    step_is_complete: bool
    """Whether each pass is a whole step, so that nobody can want the graph of an earlier one."""

    is_part: bool
    """Whether it is one of several results, which are unpacked where it is kept."""

    is_record: bool = False
    """Whether it is a dictionary of losses."""

    is_only_read_detached: bool = False
    """Whether all that is read of the variable is detached where it is read."""

    @property
    def is_reported(self) -> bool:
        """Whether memory grows by it, for nothing."""
        return self.step_is_complete and bool(self.values) and not self.is_backpropagated and not self.is_remade


def elements(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """Return the elements of a list, tuple or dictionary that is written out, what a comprehension makes of each."""
    if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        return (value.elt,)
    if isinstance(value, cst.Dict):
        return tuple(e.value for e in value.elements)
    if isinstance(value, (cst.List, cst.Tuple)):
        return tuple(e.value for e in value.elements if isinstance(e, cst.Element))
    return ()


def container(place: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return what holds ``container[key]`` or ``container.setdefault(key, [])``; None if it is something else."""
    if isinstance(place, cst.Subscript):
        return place.value
    method = method_call(place, "setdefault")
    return method.value if method is not None else None


def appended(call: cst.Call) -> Store | None:
    """Return what ``items.append(value)``, ``items.insert(0, value)`` or ``items.extend([value])`` keeps."""
    method = method_call(call, *ADDS_TO_LIST)
    wanted = ("index", "item") if method is not None and method.attr.value == "insert" else ("item",)
    if method is None or len(call.args) != len(wanted) or any(a.star or a.keyword is not None for a in call.args):
        return None
    given = call.args[-1].value
    found = elements(given)
    if method.attr.value in EXTENDS and not found:
        return None
    return Store(method.value, found or (given,), True)


def added(call: cst.Call) -> Store | None:
    """Return what ``total.add_(value)`` keeps, or ``mean.mul_(0.9).add_(value, alpha=0.1)``.

    ``sums.index_add_(0, place, value)``
    """
    method = method_call(call, *_IN_PLACE)
    given = _summand(call) if method is not None else None
    if method is None or given is None:
        return None
    variable = method.value
    while (inner := method_call(variable)) is not None and inner.attr.value.endswith("_"):
        variable = inner.value
    is_plain = isinstance(variable, (cst.Name, cst.Attribute, cst.Subscript))
    if not is_plain or (isinstance(variable, cst.Attribute) and variable.attr.value in ("data", "grad")):
        return None
    return Store(variable, (given,), False)


def _summand(call: cst.Call) -> cst.BaseExpression | None:
    """What a method adds to its tensor: the first of two for ``lerp``, the last of one or, by places, three."""
    if identifier(call.func).startswith("lerp"):
        return call.args[0].value if call.args and not call.args[0].star and call.args[0].keyword is None else None
    plain = [a for a in call.args if a.keyword is None or a.keyword.value != "alpha"]
    wanted = 1 if identifier(call.func).startswith("add") else len(("dim", "index", "value"))
    is_plain = len(plain) == wanted and not any(a.star or a.keyword is not None for a in plain)
    return plain[-1].value if is_plain else None


def summed(statement: cst.Assign) -> Store | None:
    """Return what ``x = x + value`` and ``x = 0.9 * x + 0.1 * value`` keep, also ``x = y if x is None else x + y``.

    ``x = (i * x + value) / (i + 1)``
    """
    value = statement.value
    branches = (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
    made = next((branch for branch in branches if isinstance(branch, cst.BinaryOperation)), None)
    if len(statement.targets) != 1 or made is None:
        return None
    target = statement.targets[0].target
    while isinstance(made.operator, cst.Divide) and isinstance(made.left, cst.BinaryOperation):
        made = made.left
    terms = _terms(made)
    rest = tuple(term for term in terms if not _scales(term, target))
    if not rest or len(rest) == len(terms):
        return None
    items = tuple(item for term in rest for item in elements(term))  # `x = x + [value]`
    return Store(target, items or rest, bool(items))


def stored(statement: cst.Assign) -> Store | None:
    """Return what ``items[i] = value`` keeps, or ``other, items[i] = values``.

    A part of a tensor takes what is computed there, as a sum does: ``rows[start:end] = value``
    """
    if len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, cst.Tuple):
        return _placed(target, elements(statement.value) or (statement.value,), None)
    given = elements(statement.value)
    for part, element in enumerate(target.elements):
        is_written_out = len(given) == len(target.elements)
        values = (given[part],) if is_written_out else (statement.value,)
        found = _placed(element.value, values, None if is_written_out else part)
        if found is not None:
            return found
    return None


def _placed(target: cst.BaseExpression, values: tuple[cst.BaseExpression, ...], part: int | None) -> Store | None:
    if not isinstance(target, cst.Subscript):
        return None
    places = [element.slice for element in target.slice]
    if len(places) == 1 and isinstance(places[0], cst.Index):
        return Store(target.value, values, True, places[0].value, part=part)
    bounds = [bound for place in places for bound in _bounds(place)]
    return Store(target.value, values, False, bounds[0], part=part) if bounds else None


def _bounds(place: cst.BaseSlice) -> list[cst.BaseExpression]:
    """The numbers that are written out in ``i`` or ``start:end``."""
    if isinstance(place, cst.Index):
        return [place.value]
    found = (place.lower, place.upper) if isinstance(place, cst.Slice) else ()
    return [bound for bound in found if bound is not None]


def _terms(expression: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, (cst.Add, cst.Subtract)):
        return [*_terms(expression.left), *_terms(expression.right)]
    return [expression]


def _scales(term: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """Whether a term is a multiple of the target."""
    if isinstance(term, cst.BinaryOperation) and isinstance(term.operator, (cst.Multiply, cst.Divide)):
        return _scales(term.left, target) or (isinstance(term.operator, cst.Multiply) and _scales(term.right, target))
    return is_same(term, target) or _looks_up(term, target)


def _looks_up(term: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """Whether a term is ``sums.get(key, 0)`` for the target ``sums[key]``."""
    method = method_call(term, "get")
    if method is None or not isinstance(term, cst.Call) or not term.args or not isinstance(target, cst.Subscript):
        return False
    place = target.slice[0].slice if len(target.slice) == 1 else None
    same_key = isinstance(place, cst.Index) and is_same(place.value, term.args[0].value)
    return same_key and is_same(method.value, target.value)


def combined(statement: cst.Assign, names: Names) -> Store | None:
    """Return what ``x = torch.cat([x, value])``, ``x = torch.maximum(x, value)`` keeps, None for others.

    ``x = [*x, value]``, ``x = y if x is None else torch.cat([x, y])``, ``x = torch.lerp(x, value, 0.1)``,
    ``x = torch.cat([x, value])[-size:]``, ``x = x.index_add(0, place, value)``
    """
    if len(statement.targets) != 1:
        return None
    target, value = statement.targets[0].target, statement.value
    branches = (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
    return next((found for branch in branches if (found := _combined(branch, target, names)) is not None), None)


def _combined(value: cst.BaseExpression, target: cst.BaseExpression, names: Names) -> Store | None:
    if isinstance(value, (cst.List, cst.Tuple)):
        parts = tuple(element.value for element in value.elements)
        is_stored = any(isinstance(e, cst.StarredElement) and is_same(e.value, target) for e in value.elements)
        return _rest(parts, target, is_stored) if is_stored else None
    if isinstance(value, cst.Subscript):
        return _combined(value.value, target, names) if isinstance(value.value, cst.Call) else None
    if not isinstance(value, cst.Call) or not value.args or value.args[0].star:
        return None
    name = names.qualified(value.func)
    given = tuple(argument.value for argument in value.args)
    method = method_call(value, *_ADDS)
    if method is not None and is_same(method.value, target) and (summand := _summand(value)) is not None:
        return Store(target, (summand,), False)
    if name in _JOINS:
        return _rest(elements(given[0]), target, False)
    if name in _EXTREMES and len(given) == len(("x", "value")):
        return _rest(given, target, False)
    return _rest(given[:2], target, False) if name in _SUMS else None


def _rest(parts: tuple[cst.BaseExpression, ...], target: cst.BaseExpression, is_stored: bool) -> Store | None:
    """What is put together with a target."""
    rest = tuple(part for part in parts if not is_same(part, target))
    return Store(target, rest, is_stored) if rest and len(rest) < len(parts) else None


def carried_on(statement: cst.Assign, evaluator: Evaluator) -> Store | None:
    """Return what an assignment puts together with what its target holds already, itself or by a function."""
    return summed(statement) or combined(statement, evaluator.names) or folded(statement, evaluator)


def folded(statement: cst.Assign, evaluator: Evaluator) -> Store | None:
    """Return what ``self.mean = self._average(self.mean, value)`` keeps, where that sums up what it is given."""
    target, call = statement.targets[0].target, statement.value
    function = evaluator.definitions.definition(call.func) if isinstance(call, cst.Call) else None
    if len(statement.targets) > 1 or not isinstance(function, cst.FunctionDef) or not isinstance(call, cst.Call):
        return None
    definitions = evaluator.definitions
    has_object = definitions.owner(function) is not None and not definitions.is_static(function)
    names = [parameter.name.value for parameter in parameters(function)][has_object:]
    given = bind(call.args, names).named
    own = next((name for name, value in given.items() if is_same(value, target)), None)
    returned = [r.value for r in evaluator.tree.below(function.body, cst.Return)]
    branches = [b for r in returned for b in ((r.body, r.orelse) if isinstance(r, cst.IfExp) else (r,))]
    sums = [_parameters_in(branch, evaluator) for branch in branches if isinstance(branch, cst.BinaryOperation)]
    added = {name for each in sums if own in each for name in each}
    rest = tuple(value for name, value in given.items() if name != own and name in added)
    quiet = evaluator.gradients.function_disabled(function)
    return Store(target, rest, False) if rest and not quiet else None


def _parameters_in(total: cst.BaseExpression, evaluator: Evaluator) -> set[str]:
    """Return the parameters that a sum or product is made of as they are, where it is computed with gradients on."""
    if evaluator.gradients.disabled(total):
        return set()
    if isinstance(total, cst.BinaryOperation):
        return _parameters_in(total.left, evaluator) | _parameters_in(total.right, evaluator)
    bound = evaluator.flow.definitions(total) if isinstance(total, cst.Name) else []
    is_given = bool(bound) and all(binding.kind is BindingKind.PARAMETER for binding in bound)
    return {total.value} if isinstance(total, cst.Name) and is_given else set()
