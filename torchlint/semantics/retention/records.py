"""Dictionaries of losses that are kept whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, method_call

_REDUCES = re.compile(r"detach|reduce|to_host|to_cpu|item")


class Records:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def holds_loss(self, value: cst.BaseExpression, losses: list[cst.BaseExpression]) -> bool:
        """Return whether a variable is a dictionary of which some losses that are differentiated are items.

        ``out["loss"].backward()``, ``sum(out.values()).backward()``
        """
        if not isinstance(value, cst.Name):
            return False
        held = (name for loss in losses for name in self._held(loss))
        return any(self._is_one(name, value) for name in held) and not self._is_detached(value)

    def _is_one(self, name: cst.BaseExpression, other: cst.Name) -> bool:
        """Whether two names read the same variable, as the same statements bound it."""
        if not isinstance(name, cst.Name) or name.value != other.value:
            return False
        here, there = ({id(b.node) for b in self._evaluator.flow.definitions(each)} for each in (name, other))
        return bool(here) and here == there

    def _held(self, loss: cst.BaseExpression) -> Iterator[cst.Name]:
        """The dictionaries that a loss is taken from."""
        if isinstance(loss, cst.Name):
            definitions = self._evaluator.flow.definitions(loss)
            made = definitions[0] if len(definitions) == 1 else None
            is_plain = made is not None and made.kind is BindingKind.ASSIGNMENT and not made.path
            given = made.value if made is not None and is_plain else None
            if not isinstance(given, cst.BaseExpression) or isinstance(given, cst.Name):
                return
            loss = given
        if isinstance(loss, cst.Subscript) and isinstance(loss.value, cst.Name):
            index = loss.slice[0].slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                yield loss.value
        elif isinstance(loss, cst.Call) and self._evaluator.names.qualified(loss.func) == "builtins.sum" and loss.args:
            summed = loss.args[0].value
            items = method_call(summed, "values")
            if isinstance(summed, (cst.GeneratorExp, cst.ListComp)):
                items = method_call(summed.for_in.iter, "values", "items")
            if items is not None and isinstance(items.value, cst.Name):
                yield items.value

    def _is_detached(self, record: cst.Name) -> bool:
        """Whether an item is replaced by what may carry no graph, or a function may do so."""
        function = self._evaluator.definitions.enclosing_function(record) or self._tree.module
        for target in self._tree.below(function, cst.AssignTarget):
            if isinstance(target.target, cst.Subscript) and self._is_one(target.target.value, record):
                return True
        calls = (call for call in self._tree.below(function, cst.Call) if _REDUCES.search(identifier(call.func)))
        return any(self._is_one(argument.value, record) for call in calls for argument in call.args)
