"""Memory of the host that is certainly not pinned."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import FACTORIES, LEGACY_CONSTRUCTORS
from torchlint.semantics.values import Device
from torchlint.syntax.calls import bind, literal, method_call

_JOINS = frozenset(f"torch.{name}" for name in "from_numpy stack cat concat hstack vstack".split())
_MAKERS = FACTORIES | LEGACY_CONSTRUCTORS | _JOINS
# Methods whose results lie in the same memory, or in new memory that is not pinned.
KEEPING = frozenset(
    "view reshape unsqueeze squeeze permute transpose t flatten contiguous clone detach float half double long int "
    "bool byte bfloat16 expand repeat narrow".split()
)
_MAX_DEPTH = 6


class Pinned:
    """Tells pageable memory from memory of which nothing is known."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def is_pageable(self, tensor: cst.BaseExpression, depth: int = 0) -> bool:
        """Return whether a tensor was visibly made in ordinary memory of the host, and never pinned since."""
        if depth > _MAX_DEPTH:
            return False
        value = self._evaluator.value(tensor)
        if not value.is_tensor or value.device is not Device.CPU or value.evidence < Evidence.INFERRED:
            return False
        if isinstance(tensor, cst.Name):
            bindings = self._evaluator.flow.definitions(tensor)
            return bool(bindings) and all(
                b.kind is BindingKind.ASSIGNMENT
                and not b.path
                and b.value is not None
                and self.is_pageable(b.value, depth + 1)
                for b in bindings
            )
        if isinstance(tensor, cst.Subscript):
            return self.is_pageable(tensor.value, depth + 1)
        return isinstance(tensor, cst.Call) and self._makes(tensor, depth)

    def _makes(self, call: cst.Call, depth: int) -> bool:
        name = self._evaluator.names.qualified(call.func)
        if name in _MAKERS:
            given = bind(call.args)
            pinned = given.get("pin_memory")
            is_own = not given.open_keywords and (pinned is None or literal(pinned) is False)
            return is_own and given.get("out") is None and name != "torch.as_tensor"
        method = method_call(call, *KEEPING)
        return name is None and method is not None and self.is_pageable(method.value, depth + 1)
