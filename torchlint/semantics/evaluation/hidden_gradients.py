"""Code that differentiates in functions and methods of the file that it calls, wherever their objects come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_modes import mode_set
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.evaluation.model_classes import AUTOGRAD
from torchlint.syntax.calls import identifier, method_call

_MAX_FUNCTIONS = 30
"""How many functions of the file are looked at: more than a step calls."""


class HiddenGradients:
    """Follows calls by their names."""

    def __init__(self, evaluator: Evaluator, gradient_uses: GradientUses) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._gradient_uses = gradient_uses

    def below(self, calls: Iterable[cst.Call]) -> bool:
        """Return whether calls, or functions of the file that may be behind them, compute gradients or switch them."""
        waiting = list(calls)
        seen: set[int] = set()
        for call in waiting:
            if self._differentiates(call):
                return True
            for function in self._behind(call):
                if id(function) not in seen and len(seen) < _MAX_FUNCTIONS:
                    seen.add(id(function))
                    waiting += self._tree.below(function.body, cst.Call)
        return False

    def _differentiates(self, call: cst.Call) -> bool:
        name = self._evaluator.names.qualified(call.func) or ""
        if name.startswith(AUTOGRAD):
            return True
        if identifier(call.func) == "set_grad_enabled" and isinstance(self._tree.parent(call), cst.Expr):
            return True
        if method_call(call, "backward") is not None:
            return True
        return self._gradient_uses.says_so(call)

    def _behind(self, call: cst.Call) -> Iterator[cst.FunctionDef]:
        """The functions and methods of the file that a call may run."""
        if mode_set(call):
            return
        yield from self._evaluator.definitions.functions_by_name.get(identifier(call.func), ())
        made = self._evaluator.value(call.func).definition
        methods = self._evaluator.definitions.methods(made) if isinstance(made, cst.ClassDef) else {}
        yield from (method for name, method in methods.items() if name in ("__call__", "forward"))
