"""Loops over the times of a process, as samplers of diffusion models and flows go through them."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.flow import last_statement
from torchlint.semantics.binding.scopes import targets
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import is_same

_BAR = re.compile(r"tqdm|[Pp]rogress|(^|_)p?bar$")
_PASSES_ON = frozenset(f"builtins.{name}" for name in "enumerate list tuple zip".split())
# Times of a process by their name, which schedules give from the last to the first.
_TIMES = re.compile(r"^(\w+_)?time_?steps$|^time_?pairs$")
_SHOWS_USE = re.compile(
    r"mse_?loss|l1_loss|huber_loss|l2_loss|save_image|make_grid|fromarray|guidance|cfg_scale|(^|_)sigmas$|alphas?_cum|denois",
    re.IGNORECASE,
)
_MAX_DEPTH = 3
"""Through how many variables what a loop goes over is followed."""


class TimeLoops:
    """Tells them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def are_gone_through(self, loop: cst.For) -> bool:
        """Return whether a loop counts backwards, or goes through the times of a schedule."""
        if isinstance(last_statement(loop.body), cst.Break):
            return False
        return self._is_backwards(loop.iter, 0) or self._goes_in_pairs(loop.iter) or self._counts_up_to_times(loop)

    def _goes_in_pairs(self, source: cst.BaseExpression) -> bool:
        """Whether each pass has one time and the next: ``enumerate(zip(times[:-1], times[1:]))``."""
        while isinstance(source, cst.Call) and source.args and identifier(source.func) != "zip":
            source = source.args[0].value
        if not isinstance(source, cst.Call) or len(source.args) != len(("this", "next")):
            return False
        this, following = (argument.value for argument in source.args)
        part = following.slice[0].slice if isinstance(following, cst.Subscript) else None
        if not isinstance(following, cst.Subscript) or not isinstance(part, cst.Slice) or literal(part.lower) != 1:
            return False
        return is_same(this.value if isinstance(this, cst.Subscript) else this, following.value)

    def _counts_up_to_times(self, loop: cst.For) -> bool:
        """Whether a loop over numbers takes the next of a schedule, ``times[i + 1]``, or computes ``i / steps``.

        In a file that shows how the model is trained, or what is made of its samples.
        """
        counted = {name.value for name, _ in targets(loop.target)} if self._is_numbered(loop.iter) else set()
        for sum_or_share in self._tree.below(loop.body, cst.BinaryOperation) if counted else ():
            if not _is_count(sum_or_share.left, counted):
                continue
            if isinstance(sum_or_share.operator, cst.Divide):
                return self._is_trained_otherwise
            is_next = isinstance(sum_or_share.operator, cst.Add) and literal(sum_or_share.right) == 1
            if is_next and isinstance(self._tree.parent(sum_or_share), cst.Index):
                return self._is_trained_otherwise
        return False

    @cached_property
    def _is_trained_otherwise(self) -> bool:
        """Whether the file speaks of a regression, of images that are kept, or of a schedule of noise.

        Integrators of differential equations and renderers go through times too, and are trained through them.
        """
        vocabulary = self._evaluator.vocabulary
        return any(map(_SHOWS_USE.search, (*vocabulary.identifiers, *vocabulary.attributes, *vocabulary.imported)))

    def _is_numbered(self, source: cst.BaseExpression) -> bool:
        while isinstance(source, cst.Call) and source.args and _BAR.search(identifier(source.func)):
            source = source.args[0].value
        return isinstance(source, cst.Call) and self._evaluator.names.qualified(source.func) == "builtins.range"

    def _is_backwards(self, source: cst.BaseExpression, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            return False
        if _TIMES.search(identifier(source)):
            return True
        if isinstance(source, cst.Name):
            bindings = self._evaluator.flow.definitions(source)
            made = [binding.value for binding in bindings if binding.value is not None and not binding.path]
            return len(made) == len(bindings) == 1 and self._is_backwards(made[0], depth + 1)
        if isinstance(source, cst.Subscript):
            part = source.slice[0].slice
            return isinstance(part, cst.Slice) and literal(part.step) == -1
        if not isinstance(source, cst.Call) or not source.args:
            return False
        name, first = self._evaluator.names.qualified(source.func), source.args[0].value
        if name == "builtins.range":
            step = source.args[2].value if len(source.args) > 2 else None
            return isinstance(step, cst.UnaryOperation) and isinstance(step.operator, cst.Minus)
        if name == "builtins.reversed":
            return self._counts(first)
        return (name in _PASSES_ON or _BAR.search(identifier(source.func)) is not None) and self._is_backwards(
            first, depth + 1
        )

    def _counts(self, source: cst.BaseExpression) -> bool:
        """Whether something is a range of numbers, perhaps by a variable, or the times of a process."""
        if isinstance(source, cst.Name):
            made = [binding.value for binding in self._evaluator.flow.definitions(source)]
            return bool(_TIMES.search(source.value)) or (len(made) == 1 and self._is_range(made[0]))
        return _TIMES.search(identifier(source)) is not None or self._is_range(source)

    def _is_range(self, made: cst.CSTNode | None) -> bool:
        while isinstance(made, cst.Call) and self._evaluator.names.qualified(made.func) in _PASSES_ON and made.args:
            made = made.args[0].value
        return isinstance(made, cst.Call) and self._evaluator.names.qualified(made.func) == "builtins.range"


def _is_count(expression: cst.BaseExpression, counted: set[str]) -> bool:
    """Return whether an expression is a counter, or ``i + 1``, ``steps - i``, ``float(i)``, a tensor of it."""
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, (cst.Add, cst.Subtract)):
        return _is_count(expression.left, counted) or _is_count(expression.right, counted)
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Multiply):
        sides = (expression.left, expression.right)
        return any(_is_count(side, counted) for side in sides) and any(map(_is_filled, sides))  # `torch.ones(n) * i`
    if isinstance(expression, cst.Call):
        return any(_is_count(a.value, counted) for a in expression.args[-1:])  # `float(i)`, `torch.full((n,), i)`
    return identifier(expression) in counted if isinstance(expression, cst.Name) else False


def _is_filled(expression: cst.BaseExpression) -> bool:
    """Return whether an expression makes a tensor of ones, which a time is multiplied by."""
    return isinstance(expression, cst.Call) and identifier(expression.func) in ("ones", "ones_like", "new_ones")
