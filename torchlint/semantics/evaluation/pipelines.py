"""Pipelines of diffusion models: what they run when they are called, which only infers."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.roles import denoises
from torchlint.syntax.calls import method_call

_CALL = "__call__"
_DIFFUSERS = re.compile(r"^diffusers\..*Pipeline$|DiffusionPipeline$")
_OWN = re.compile(r"Pipeline(V?\d+)?$")
_OTHER_RUNTIME = re.compile(r"onnx|openvino|flax", re.IGNORECASE)
_OTHER_RUNTIMES = ("onnxruntime", "openvino", "tensorrt", "jax", "flax", "coremltools", "ctranslate2")
_MAX_DEPTH = 3
"""Through how many functions of a pipeline its call is followed."""


class Pipelines:
    """Finds the functions."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward

    @cached_property
    def exist(self) -> bool:
        """Whether the file defines a pipeline."""
        return bool(self._calls)

    def infers(self, function: cst.FunctionDef, depth: int = 0) -> bool:
        """Return whether a function is what a pipeline runs when it is called, or only serves that."""
        if id(function) in self._calls:
            return True
        calls = self._evaluator.callers(function) if self.exist and depth < _MAX_DEPTH else []
        around = [self._evaluator.definitions.enclosing_function(call) for call in calls]
        if not around or not all(f is not None and f is not function and self.infers(f, depth + 1) for f in around):
            return False
        owner = self._tree.enclosing(function, cst.ClassDef)
        return owner is not None and not self._backward.passes(owner)

    @cached_property
    def _calls(self) -> frozenset[int]:
        functions = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == _CALL)
        return frozenset(id(function) for function in functions if self._is_call(function))

    def _is_call(self, function: cst.FunctionDef) -> bool:
        """Whether a function is what a pipeline of diffusers runs, or a class of that name which takes its steps."""
        owner = self._evaluator.definitions.owner(function)
        if owner is None or _OTHER_RUNTIME.search(owner.name.value):
            return False
        if any(map(self._evaluator.scopes.imports, _OTHER_RUNTIMES)) or self._cuts_some_steps(function):
            return False
        if any(_DIFFUSERS.search(name) for name in self._evaluator.definitions.ancestry(owner)):
            return True
        steps = map(denoises, self._tree.below(function.body, cst.Call))
        return _OWN.search(owner.name.value) is not None and any(steps) and not self._backward.passes(owner)

    def _cuts_some_steps(self, function: cst.FunctionDef) -> bool:
        """Whether a pipeline detaches its latents in some steps only: others may be differentiated, by a reward."""
        cuts = (m for c in self._tree.below(function.body, cst.Call) if (m := method_call(c, "detach")) is not None)
        return any(isinstance(self._tree.enclosing(cut, cst.If, cst.FunctionDef), cst.If) for cut in cuts)
