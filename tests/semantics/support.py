"""Models of small programs, and the marked places in them."""

from __future__ import annotations

import textwrap

import libcst as cst

from torchlint.semantics.model import Model, Options
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.syntax.walk import walk


def model_of(program: str) -> Model:
    """Return the model of a (dedented) program."""
    return Model(walk(cst.parse_module(textwrap.dedent(program))), UNKNOWN_TARGET, Options())


def marked(model: Model) -> list[cst.BaseExpression]:
    """Return the arguments of the calls of ``mark``, in document order."""
    return [
        call.args[0].value
        for call in model.nodes(cst.Call)
        if isinstance(call.func, cst.Name) and call.func.value == "mark"
    ]


def calls(model: Model, method: str) -> list[cst.Call]:
    """Return the calls of a method by name, in document order."""
    return [
        call
        for call in model.nodes(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == method
    ]
