"""Functions of other files that move weights by what they are given."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.vocabulary import in_words
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import is_same

_FUNCTION = re.compile(r"(^|_)(update|step|backward|backprop|optimi[sz]e|train|learn|finish)(_|$)")
_METHOD = re.compile(r"(^|_)(step|backward|backprop|optimi[sz]e|train|learn)(_|$)")
_SHOWS = re.compile(
    r"(^|_)(plots?|vis|viz|visuali[sz]\w*|log|logs|logger|print|bar|progress|display|show|metrics?|meters?|stats|statistics|history|"
    r"tensorboard|writer|figures?|curves?|lr|lrs|sched\w*|learning_rate|csv|results?|summary|report)(_|$)"
)
# Objects with a method `step` that looks at a loss and computes no gradients of it.
_SCHEDULES = re.compile(
    r"(^|_)(sch|(lr_?)?sched\w*|lrs?|plateau|decay|warm\w*|early\w*|es|stop|stopper|stopping|bar|pbar|"
    r"progress\w*|profiler|prof|recorder|tracker|monitor|meter|log|logger|writer|timer|checkpoint\w*|saver|envs?)(_|$)"
)
_LIBRARIES = ("torch.", "builtins.", "numpy.", "wandb.", "logging.", "tqdm.", "math.", "pandas.", "matplotlib.")


def is_schedule(held: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether an object with a method ``step`` is a schedule or the like by its name, or that of its class."""
    made = (value.func for value in evaluator.held_by(held) if isinstance(value, cst.Call))
    return any(_SCHEDULES.search(in_words(identifier(each))) for each in (held, *made))


class Updates:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def learn_from(self, variable: cst.BaseExpression, frame: cst.CSTNode) -> bool:
        """Return whether a call below ``frame`` may update weights by a variable: ``optimize(optimizer, losses)``."""
        calls = (call for call in self._tree.below(frame, cst.Call) if self._may_learn(call))
        return any(is_same(n, variable) for call in calls for a in call.args for n in self._tree.descendants(a.value))

    def _may_learn(self, call: cst.Call) -> bool:
        name = self._evaluator.names.qualified(call.func)
        if (name is not None and name.startswith(_LIBRARIES)) or not call.args:
            return False
        if isinstance(self._evaluator.definitions.definition(call.func), (cst.FunctionDef, cst.ClassDef)):
            return False  # what it does is in the file
        last = identifier(call.func)
        if not isinstance(call.func, cst.Attribute):
            moves = _METHOD.search(last) or (_FUNCTION.search(last) and not _SHOWS.search(last))
            return bool(moves) or any(self._is_optimizer(a.value) for a in call.args)
        return bool(_METHOD.search(last)) and not is_schedule(call.func.value, self._evaluator)

    def _is_optimizer(self, argument: cst.BaseExpression) -> bool:
        return self._evaluator.value(argument).kind is Kind.OPTIMIZER
