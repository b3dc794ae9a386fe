"""Where a file trains: backward passes and optimizer steps, also through the functions that it defines."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.remembered import remembered

_TRAINS = re.compile(r"(^|_)(train|fit|learn|fine_?tune|optimi[sz]e)(_|$)")
# What is run of these libraries answers requests, or is a model of another framework.
_RUNS_OTHERS = frozenset("flask quart sanic bottle dash aiohttp discord asyncio onnxruntime tensorflow".split())


class TrainingCode:
    """Answers whether running a node takes training steps."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._functions: dict[int, bool] = {}
        self._anywhere: bool | None = None

    def trains(self, node: cst.CSTNode) -> bool:
        """Return whether a training step stands below a node, or in a function of the file that is called there."""
        return any(isinstance(below, cst.Call) and self._call(below) for below in self._tree.descendants(node))

    def takes_step(self, call: cst.Call) -> bool:
        """Return whether a call is a training step, or runs a function of the file that takes one."""
        return self._call(call)

    @remembered
    def may_train(self, node: cst.CSTNode) -> bool:
        """Return whether something that is called below a node takes training steps, or may do so out of sight.

        A trainer that is told to ``fit``, a function of another file that is called after training or is given an
        optimizer.
        """
        return any(map(self.may_take_step, self._tree.below(node, cst.Call)))

    def may_take_step(self, call: cst.Call) -> bool:
        """Return whether a call takes training steps, or may do so out of sight."""
        return self._call(call) or self._is_left_to_others(call)

    def _is_left_to_others(self, call: cst.Call) -> bool:
        if isinstance(self._evaluator.definitions.definition(call.func), (cst.FunctionDef, cst.ClassDef)):
            return False
        name = self._evaluator.names.qualified(call.func)
        if name is not None and name.startswith(("torch.", "builtins.")):
            return False
        last = identifier(call.func)
        switches_mode = last == "train" and isinstance(call.func, cst.Attribute) and self._is_module(call.func.value)
        is_named = _TRAINS.search(last) is not None or (name is None and self._is_run(call))
        gets_optimizer = any(self._evaluator.value(a.value).kind is Kind.OPTIMIZER for a in call.args)
        return gets_optimizer or (is_named and not switches_mode)

    def _is_run(self, call: cst.Call) -> bool:
        """Whether an object is told to ``run`` that is no server: an engine, a trainer."""
        method = method_call(call, "run")
        if method is None or not isinstance(method.value, cst.Name):
            return method is not None
        owner = self._evaluator.value(method.value).definition
        own = self._evaluator.definitions.method(owner, "run") if isinstance(owner, cst.ClassDef) else None
        if own is not None:
            return self.trains(own.body)
        made = (b.value for b in self._evaluator.flow.definitions(method.value) if isinstance(b.value, cst.Call))
        names = [self._evaluator.names.qualified(value.func) or "" for value in made]
        return not any(name.partition(".")[0] in _RUNS_OTHERS for name in names)

    def _is_module(self, owner: cst.BaseExpression) -> bool:
        return self._evaluator.value(owner).kind is Kind.MODULE

    def anywhere(self) -> bool:
        """Return whether the file trains at all."""
        if self._anywhere is None:
            self._anywhere = any(map(self._is_step, self._tree.nodes(cst.Call)))
        return self._anywhere

    def updates(self) -> bool:
        """Return whether the file moves parameters by an optimizer."""
        return any(self._is_update(call) for call in self._tree.nodes(cst.Call))

    def _call(self, call: cst.Call) -> bool:
        if self._is_step(call):
            return True
        definition = self._evaluator.definitions.definition(call.func)
        if not isinstance(definition, cst.FunctionDef):
            return False
        key = id(definition)
        if key not in self._functions:
            self._functions[key] = False  # recursion adds nothing
            self._functions[key] = self.trains(definition.body)
        return self._functions[key]

    def _is_step(self, call: cst.Call) -> bool:
        return method_call(call, "backward", "manual_backward") is not None or self._is_update(call)

    def _is_update(self, call: cst.Call) -> bool:
        step = method_call(call, "step")
        return step is not None and self._evaluator.value(step.value).kind in (Kind.OPTIMIZER, Kind.SCALER)
