"""Functions of this file that `torch.compile` traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_COMPILE = "torch.compile"
_OPAQUE = frozenset(
    f"{home}.{name}"
    for home in ("torch.compiler", "torch._dynamo")
    for name in ("disable", "allow_in_graph", "assume_constant_result", "skip", "substitute_in_graph")
) | {"torch.jit.ignore", "torch.library.custom_op"}


def traced_functions(model: Model) -> dict[int, cst.FunctionDef]:
    """Return what is handed to `torch.compile`, and what of this file that calls, by its ids."""
    return _Search(model).functions()


class _Search:
    def __init__(self, model: Model) -> None:
        self._model = model

    def functions(self) -> dict[int, cst.FunctionDef]:
        """Return the functions by their ids."""
        found: dict[int, cst.FunctionDef] = {}
        pending = [function for function in self._roots() if function is not None]
        while pending:
            function = pending.pop()
            if id(function) not in found and not self._is_opaque(function):
                found[id(function)] = function
                pending += self._called(function)
        return found

    def _roots(self) -> list[cst.FunctionDef | None]:
        model = self._model
        found: list[cst.FunctionDef | None] = []
        for decorator in model.nodes(cst.Decorator):
            function = model.parent(decorator)
            if isinstance(function, cst.FunctionDef) and self._is_compile(decorator.decorator):
                found.append(function)
        for call in model.nodes(cst.Call):
            if method_call(call, "compile") is None and model.callee(call) != _COMPILE:
                continue
            if model.in_test(call):
                continue
            if model.callee(call) == _COMPILE:
                given = model.arguments(call, ("model",))
                target = given.get("model")
                if target is not None and literal(given.get("disable")) is not True:
                    found.append(self._run_by(target))
            elif isinstance(call.func, cst.Attribute) and model.qualified_name(call.func) is None:
                found.append(self._forward(call.func.value))
        return found

    def _is_compile(self, decorator: cst.BaseExpression) -> bool:
        if not isinstance(decorator, cst.Call):
            return self._model.qualified_name(decorator) == _COMPILE
        given = self._model.arguments(decorator, ("model",))
        return self._model.callee(decorator) == _COMPILE and literal(given.get("disable")) is not True

    def _run_by(self, target: cst.BaseExpression) -> cst.FunctionDef | None:
        """Return the function that calling an expression runs."""
        named = self._model.definition(target)
        if isinstance(named, cst.FunctionDef):
            return named
        method = self._model.own_method(target) if isinstance(target, cst.Attribute) else None
        return method if method is not None else self._forward(target)

    def _forward(self, module: cst.BaseExpression) -> cst.FunctionDef | None:
        value = self._model.value(module)
        if value.kind is not Kind.MODULE or value.evidence < Evidence.INFERRED:
            return None
        owner = value.definition
        return self._model.definitions.method(owner, "forward") if isinstance(owner, cst.ClassDef) else None

    def _called(self, function: cst.FunctionDef) -> list[cst.FunctionDef]:
        calls = (node for node in self._model.descendants(function.body) if isinstance(node, cst.Call))
        found = (self._run_by(call.func) for call in calls)
        return [called for called in found if called is not None]

    def _is_opaque(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator keeps a function out of the graph."""
        names = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators)
        return any(self._model.qualified_name(name) in _OPAQUE for name in names)
