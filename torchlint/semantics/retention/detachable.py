"""Whether ``.detach()`` can be written where a value is kept."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.narrowing import is_tensor_here
from torchlint.semantics.retention.maybe_numbers import MaybeNumbers
from torchlint.semantics.retention.records import Records
from torchlint.semantics.retention.stores import Retention
from torchlint.semantics.values import Graph
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import is_same


class Detachable:
    """Tells what may be detached as it stands, and what only where it is a tensor."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._numbers = MaybeNumbers(evaluator)
        self._records = Records(evaluator)

    def maybe_number(self, kept: Retention) -> cst.BaseExpression | None:
        """Return which value that is kept is a number or None, without ``detach``, on a way that the file shows.

        Also a term of a loss from a function out of sight that is given no tensor, or gives several things: a penalty
        may be switched off. And what a function takes out of a dictionary that it is given.
        """
        return next((v for v in kept.values if self._numbers.kinds(v) or self._may_be_other(v)), None)

    def _may_be_other(self, value: cst.BaseExpression) -> bool:
        function = self._evaluator.definitions.enclosing_function(value)
        if function is not None and isinstance(value, cst.Name) and self._is_asked(value, function):
            return True
        if function is None or self._evaluator.definitions.owner(function) is not None:
            return self._may_be_switched_off(value)  # what calls give a meter is looked at there
        return self._may_be_switched_off(value) or bool(self._records.given(value))

    def _is_asked(self, name: cst.Name, function: cst.FunctionDef) -> bool:
        """Whether a function asks elsewhere what a variable is: ``if isinstance(loss, Tensor): loss.backward()``."""
        calls = (call for call in self._tree.below(function.body, cst.Call) if call.args)
        asks = (call for call in calls if identifier(call.func) in ("isinstance", "is_tensor"))
        asked = any(isinstance(self._tree.parent(call), cst.If) and is_same(call.args[0].value, name) for call in asks)
        return asked and not is_tensor_here(name, self._evaluator)

    def _may_be_switched_off(self, value: cst.BaseExpression) -> bool:
        if not isinstance(value, cst.Name) or not self._evaluator.usage.is_loss_term(value):
            return False
        bindings = self._evaluator.flow.definitions(value)
        made = [(b.value, b.path) for b in bindings if isinstance(b.value, cst.Call)]
        unknown = [(call, path) for call, path in made if not self._evaluator.value(call).known]
        return any(
            path or not any(self._evaluator.value(a.value).is_tensor for a in call.args) for call, path in unknown
        )

    def starts_with_graph(self, kept: Retention) -> bool:
        """Return whether another branch of a conditional expression keeps its graph: ``a if x is None else x + b``."""
        assigned = getattr(self._evaluator.flow.statement(kept.values[0]), "value", None)
        branches = (assigned.body, assigned.orelse) if isinstance(assigned, cst.IfExp) else ()
        return any(self._keeps_graph(branch, kept) for branch in branches)

    def _keeps_graph(self, branch: cst.BaseExpression, kept: Retention) -> bool:
        if any(self._tree.within(v, branch) for v in kept.values) or is_same(branch, kept.variable):
            return False
        return self._evaluator.value(branch).graph is Graph.ATTACHED


def tensor_branches(value: cst.BaseExpression, evaluator: Evaluator) -> Iterator[cst.BaseExpression]:
    """Yield the parts of a conditional expression that are tensors; any other expression is its only part."""
    if not isinstance(value, cst.IfExp):
        yield value
        return
    for branch in (value.body, value.orelse):
        known = evaluator.value(branch)
        if isinstance(branch, cst.IfExp) or (known.is_tensor and known.graph is not Graph.DETACHED):
            yield from tensor_branches(branch, evaluator)
