"""Displays, comprehensions and subscripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS
from torchlint.semantics.evaluate import entries, hints, items_put_back
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import NUMBER, UNKNOWN, Kind, Origin, Value, join, of, sequence, tensor
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

__all__ = ["COMPREHENSIONS", "evaluate"]


def evaluate(expression: cst.CSTNode, evaluator: Evaluator) -> Value:
    """Return the value of a display, a comprehension or a subscript."""
    if isinstance(expression, (cst.Tuple, cst.List, cst.Set)):
        if any(isinstance(element, cst.StarredElement) for element in expression.elements):
            return Value(Kind.SEQUENCE)
        return sequence(*(evaluator.value(element.value) for element in expression.elements))
    if isinstance(expression, cst.Dict):
        values = [evaluator.value(e.value) for e in expression.elements if isinstance(e, cst.DictElement)]
        joined = join(values) if values else UNKNOWN
        joined = joined if joined.known else _mostly_tensors(values)
        return of(Kind.MAPPING, joined) if joined.known else Value(Kind.MAPPING)
    if isinstance(expression, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
        element = evaluator.value(expression.elt)
        kind = Kind.ITERATOR if isinstance(expression, cst.GeneratorExp) else Kind.SEQUENCE
        return of(kind, element) if element.known else Value(kind)
    if isinstance(expression, cst.DictComp):
        element = evaluator.value(expression.value)
        return of(Kind.MAPPING, element) if element.known else Value(Kind.MAPPING)
    if isinstance(expression, cst.Subscript):
        return _subscript(expression, evaluator)
    return UNKNOWN


def _mostly_tensors(values: list[Value]) -> Value:
    """Return a tensor, on weak evidence, where some values are tensors and nothing is known of the others."""
    known = [value for value in values if value.known]
    return tensor(Evidence.NAMED) if known and all(value.is_tensor for value in known) else UNKNOWN


def mapping(call: cst.Call, evaluator: Evaluator) -> Value:
    """Return what ``dict(key=value)`` or ``dict(zip(keys, values))`` makes, or ``defaultdict(Meter)`` of the file.

    A dictionary in the parentheses is as good as its items: ``OrderedDict({name: Meter() for name in names})``.
    """
    given = [argument.value for argument in call.args]
    named = [argument.value for argument in call.args if argument.keyword is not None]
    held = join([evaluator.value(value) for value in named]) if len(named) == len(given) and named else UNKNOWN
    if len(given) == 1 and not named and evaluator.names.qualified(call.func) == "collections.defaultdict":
        made = (
            given[0].body.func if isinstance(given[0], cst.Lambda) and isinstance(given[0].body, cst.Call) else given[0]
        )
        definition = evaluator.definitions.definition(made)
        if isinstance(definition, cst.ClassDef):
            held = Value(evaluator.definitions.class_kind(definition), definition=definition)
    elif len(given) == 1 and not named and isinstance(given[0], (cst.GeneratorExp, cst.ListComp)):
        pair = given[0].elt  # `dict((name, Meter()) for name in names)`
        if isinstance(pair, cst.Tuple) and len(pair.elements) == len(("key", "value")):
            held = evaluator.value(pair.elements[1].value)
    elif len(given) == 1 and not named and isinstance(given[0], (cst.Dict, cst.DictComp)):
        element = evaluator.value(given[0]).element or UNKNOWN
        held = element if element.kind is not Kind.NONE else UNKNOWN  # places that are filled later
    elif len(given) == 1 and isinstance(given[0], cst.Call) and not named:
        is_zip = evaluator.names.qualified(given[0].func) == "builtins.zip"
        held = evaluator.value(given[0]).iterated().item(1) if is_zip else UNKNOWN
    return of(Kind.MAPPING, held) if held.known else Value(Kind.MAPPING)


def _subscript(expression: cst.Subscript, evaluator: Evaluator) -> Value:
    owner, key = evaluator.value(expression.value), entries.key_of(expression)
    if owner.kind in (Kind.TENSOR, Kind.NDARRAY):
        if owner.origin is Origin.OUTPUT and key == "loss":
            return owner._replace(origin=Origin.LOSS)
        return NUMBER.weakened(owner.evidence) if _reads_loss(expression, owner) else owner
    if owner.kind is Kind.PENDING:
        return owner
    if owner.kind is Kind.BATCH:
        item = items_put_back.item(owner.iterated(), expression, key, evaluator)
        listed = isinstance(key, str) and _is_collated_as_list(key, evaluator)
        return of(Kind.SEQUENCE, item.weakened(Evidence.NAMED)) if listed else item
    if owner.kind in (Kind.SEQUENCE, Kind.ITERATOR):
        if isinstance(key, int):
            return owner.item(key)
        return owner if isinstance(expression.slice[0].slice, cst.Slice) else owner.iterated()
    if owner.kind is Kind.MAPPING:
        entry = entries.held(expression, key, evaluator) if isinstance(key, str) else UNKNOWN
        return entry if entry.kind is not Kind.UNKNOWN else element(expression.value, owner, evaluator)
    if owner.kind is Kind.MODULE:
        return Value(Kind.MODULE, owner.evidence)
    if owner.kind is Kind.DATALOADER:
        return owner  # several of them by name or number: a loader itself has no items
    return hints.named_device(key) if isinstance(key, str) else UNKNOWN


def element(dictionary: cst.BaseExpression, known: Value, evaluator: Evaluator) -> Value:
    """Return what the items of a dictionary are, also of one that is empty until objects of one class are put in."""
    if known.element is not None:
        return known.element
    made = evaluator.held_by(dictionary)
    if not made or not all(_is_empty(each, evaluator) for each in made):
        return UNKNOWN
    values = [evaluator.value(put) for put in evaluator.usage.stored(dictionary)]
    found = join(values) if values else UNKNOWN
    is_object = found.kind is Kind.INSTANCE and isinstance(found.definition, cst.ClassDef)
    return found.weakened(Evidence.INFERRED) if is_object else UNKNOWN


def _is_empty(made: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    if isinstance(made, cst.Dict):
        return not made.elements
    return isinstance(made, cst.Call) and not made.args and evaluator.names.qualified(made.func) in entries.DICTIONARIES


def _reads_loss(expression: cst.Subscript, owner: Value) -> bool:
    """Return whether this is ``loss.data[0]``, by which torch before 0.4 gave the number that a loss holds."""
    of_data = isinstance(expression.value, cst.Attribute) and expression.value.attr.value == "data"
    return owner.is_tensor and owner.origin is Origin.LOSS and of_data and entries.key_of(expression) == 0


def _is_collated_as_list(key: str, evaluator: Evaluator) -> bool:
    """Return whether a collate function of the file puts a list of the items' values under a key."""
    return any(
        literal(element.key) == key and _is_list(element.value, evaluator)
        for function in evaluator.tree.nodes(cst.FunctionDef)
        if "collate" in function.name.value
        for element in evaluator.tree.below(function.body, cst.DictElement)
    )


def _is_list(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    if isinstance(expression, cst.Name):
        bindings = evaluator.flow.definitions(expression)
        return len(bindings) == 1 and isinstance(bindings[0].value, cst.ListComp) and not bindings[0].path
    return isinstance(expression, cst.ListComp)
