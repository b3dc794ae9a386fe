"""Functions that are handed to what runs them at once: ``checkpoint(self.inner, x)``, ``map(self.one, xs)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.guards import Guards
from torchlint.syntax.calls import identifier

_RUNS = frozenset(
    ("builtins.map", "torch.utils.checkpoint.checkpoint", "mmdet.core.multi_apply", "mmdet.models.utils.multi_apply")
)


class HandedOn:
    """Tells which calls are given a function of the file first, and then what that is to be run with."""

    def __init__(self, evaluator: Evaluator, guards: Guards) -> None:
        self._evaluator = evaluator
        self._guards = guards
        self._calls: dict[int, list[cst.Call]] | None = None

    def to(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the calls that run a function which they are given."""
        if self._calls is None:
            self._calls = {}
            for call in self._evaluator.tree.nodes(cst.Call):
                given = self._given(call)
                if given is not None:
                    self._calls.setdefault(id(given), []).append(call)
        return self._calls.get(id(function), [])

    def _given(self, call: cst.Call) -> cst.FunctionDef | None:
        if len(call.args) < 2 or call.args[0].keyword is not None or call.args[0].star:
            return None
        first, definitions = call.args[0].value, self._evaluator.definitions
        given = definitions.definition(first) if isinstance(first, (cst.Name, cst.Attribute)) else None
        if not isinstance(given, cst.FunctionDef):
            return None
        runs = self._evaluator.names.qualified(call.func) in _RUNS or self._is_run_by(call)
        return given if runs else None

    def _is_run_by(self, call: cst.Call) -> bool:
        """Whether a function of the file always calls the first of its parameters, or maps it, with more or less."""
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef) or not function.params.params:
            return False
        is_method = self._evaluator.definitions.owner(function) is not None
        parameters = function.params.params[1:] if is_method else function.params.params
        name = parameters[0].name.value if parameters else ""
        below = self._evaluator.tree.below(function.body, cst.Call)
        inside = [each for each in below if self._guards.guard(each, function) is None]
        return any(identifier(each.func) == name for each in inside) or any(
            identifier(each.func) in ("map", "partial")
            and each.args
            and isinstance(each.args[0].value, cst.Name)
            and each.args[0].value.value == name
            for each in inside
        )
