"""Statements that keep something, as far as they show it themselves, or the method that they call."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.meters import Meters
from torchlint.semantics.retention.stores import Store, added, appended, carried_on, elements, stored
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier
from torchlint.syntax.remembered import remembered

_RECORDS = frozenset(("builtins.dict", "types.SimpleNamespace"))


class Statements:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, meters: Meters) -> None:
        self._evaluator = evaluator
        self._meters = meters

    @remembered
    def kept(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Store | None:
        """Return what a statement keeps, and where; None if it keeps nothing."""
        if isinstance(node, cst.AugAssign):
            if not isinstance(node.operator, cst.AddAssign):
                return None
            items = elements(node.value)
            return Store(node.target, items or (node.value,), bool(items))
        if isinstance(node, cst.Call):
            holder = self._evaluator.value(_receiver(node)).kind
            is_list = holder is Kind.SEQUENCE if identifier(node.func) == "insert" else holder is not Kind.INSTANCE
            found = appended(node) if is_list else None
            return self._of_record(found) if found is not None else added(node) or self._handed_over(node)
        return carried_on(node, self._evaluator) or stored(node)

    def _of_record(self, kept: Store) -> Store:
        """``records.append(Record(step, loss))``, where that makes a data class, a named tuple or a dictionary."""
        record = kept.values[0]
        if len(kept.values) > 1 or not isinstance(record, cst.Call) or not self._makes_record(record.func):
            return kept
        given = tuple(a.value for a in record.args if not a.star)
        return replace(kept, values=given) if given else kept

    def _makes_record(self, function: cst.BaseExpression) -> bool:
        named = self._evaluator.names.qualified(function)
        definition = self._evaluator.definitions.definition(function)
        if not isinstance(definition, cst.ClassDef):
            return named in _RECORDS
        makers = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in definition.decorators)
        is_plain = any(self._evaluator.names.qualified(maker) == "dataclasses.dataclass" for maker in makers)
        own = self._evaluator.definitions
        is_checked = any(own.method(definition, name) is not None for name in ("__post_init__", "__init__", "__new__"))
        return not is_checked and (is_plain or "typing.NamedTuple" in own.ancestry(definition))

    def _handed_over(self, call: cst.Call) -> Store | None:
        """``meter.update(value)``, where the file shows that the method adds it up or appends it."""
        given = self._meters.given(call)
        return Store(given.keeper, given.values, True, by_method=True) if given is not None else None


def _receiver(call: cst.Call) -> cst.BaseExpression:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func
