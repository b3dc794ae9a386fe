"""Where operations are cast to a lower precision: ``autocast`` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import FUNCTIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.signatures import SIGNATURES
from torchlint.syntax.calls import bind, literal

# The device type of each entry, where its name says it.
AUTOCASTS = {
    "torch.autocast": "",
    "torch.amp.autocast": "",
    "torch.cuda.amp.autocast": "cuda",
    "torch.cpu.amp.autocast": "cpu",
}
_DTYPES = {"torch.half": "torch.float16"}


class Autocast(NamedTuple):
    """One call that makes an autocast context."""

    call: cst.Call
    device: str | None
    """The device type, None where it is chosen at run time."""

    place: cst.BaseExpression | None
    """The expression that is given as the device type."""

    dtype: str | None
    """The qualified name of the type that is asked for, "" where none is, None where that cannot be seen."""

    enabled: bool | None
    """None where a variable decides."""


class AutocastBlock(NamedTuple):
    """A ``with`` statement that enters an autocast context."""

    statement: cst.With
    autocast: Autocast


class Precision:
    """Recognises autocast contexts and what runs in them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def autocast(self, call: cst.Call) -> Autocast | None:
        """Return the context that a call makes, None if it makes something else."""
        name = self._evaluator.names.qualified(call.func)
        if name not in AUTOCASTS:
            return None
        given = bind(call.args, SIGNATURES[name])
        place, written = given.get("device_type"), literal(given.get("device_type"))
        device = AUTOCASTS[name] or (written if isinstance(written, str) else None)
        on = True if given.absent("enabled") else literal(given.get("enabled"))
        dtype = "" if given.absent("dtype") else self._dtype(given.get("dtype"))
        return Autocast(call, device, place, dtype, on if isinstance(on, bool) else None)

    def _dtype(self, expression: cst.BaseExpression | None) -> str | None:
        name = self._evaluator.names.qualified(expression) if expression is not None else None
        return _DTYPES.get(name, name) if name is not None else None

    def around(self, node: cst.CSTNode) -> AutocastBlock | None:
        """Return the innermost autocast block that a node runs in; blocks around its function do not count."""
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor.__class__ in FUNCTIONS:
                return None
            if isinstance(ancestor, cst.With) and child is ancestor.body:
                for item in reversed(ancestor.items):
                    entered = next(self.entered(item.item), None)
                    if entered is not None:
                        return AutocastBlock(ancestor, entered)
            child = ancestor
        return None

    def entered(self, context: cst.BaseExpression) -> Iterator[Autocast]:
        """Yield the autocasts that a context can be: made in place, held by a variable, or one of two choices."""
        if isinstance(context, cst.Call):
            found = self.autocast(context)
            if found is not None:
                yield found
        elif isinstance(context, cst.IfExp):
            yield from self.entered(context.body)
            yield from self.entered(context.orelse)
        elif isinstance(context, cst.Name):
            for binding in self._evaluator.flow.definitions(context):
                value = binding.value if binding.kind is BindingKind.ASSIGNMENT and not binding.path else None
                if isinstance(value, (cst.Call, cst.IfExp)):
                    yield from self.entered(value)
