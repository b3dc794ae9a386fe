"""What writes its arguments out as text, for which a tensor comes to the host."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal, method_call

_FUNCTIONS = frozenset(("builtins.print", "builtins.str", "builtins.repr"))
_LOGGING = ("info", "warning", "error", "critical")
"""Methods of loggers whose messages are written unless somebody switches them off."""

WRITERS = frozenset((*_FUNCTIONS, *_LOGGING, "format"))
"""The names of what writes out."""


def writes_out(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call writes out what it is given: ``print(x)``, ``"{}".format(x)``, ``log.info("%s", x)``."""
    if not call.args:
        return False
    if evaluator.names.qualified(call.func) in _FUNCTIONS:
        return True
    method = method_call(call, *_LOGGING, "format")
    if method is None:
        return False
    if method.attr.value == "format":
        return evaluator.value(method.value).kind is Kind.STRING
    text = literal(call.args[0].value) if len(call.args) > 1 else None
    if not isinstance(text, str) or "%" not in text:
        return False
    return evaluator.value(method.value).definition is None  # a class of the file may only collect it
