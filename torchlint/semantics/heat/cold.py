"""What no program runs in each of its steps, whatever it is named: tests, tasks, checks, other libraries' functions."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.batch_sources import batch_evidence
from torchlint.semantics.process.testing import tests
from torchlint.semantics.tables.names import BUILT_ON_TORCH
from torchlint.syntax.calls import identifier

_COMPARING = ("allclose", "assert_allclose", "assert_close")
_LOOKING = frozenset(("eval", "register_forward_hook", "register_full_backward_hook", "register_backward_hook"))
_FOR_TRAINING = re.compile(r"train|fit|learn|update|optim|step|backward")
_FOR_UPDATES = re.compile(r"^step$|optim", re.IGNORECASE)
_OTHER_ARRAYS = ("jax", "flax", "mlx", "paddle", "tinygrad", "mxnet")
# Whose decorators leave it to others when a function is called; those of workflows and servers call it themselves.
_WRAPPING = BUILT_ON_TORCH | set(
    "builtins abc typing typing_extensions functools contextlib overrides tensordict".split()
)


def takes_no_steps(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is a test, one in a file of tests, or only called at the top level, in no loop."""
    given = [parameter for parameter in function.params.params if parameter.name.value != "self"]
    if tests(evaluator.scopes) or (function.name.value.startswith("test_") and not given):
        return True
    return evaluator.definitions.owner(function) is None and _runs_once(function, evaluator)


def _runs_once(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether a function is called at the top level, in no loop, and nothing else in the file speaks of it."""
    callers = evaluator.callers(function)
    for call in callers:
        if evaluator.definitions.enclosing_function(call) is not None or evaluator.tree.enclosing(call, *LOOPS):
            return False
    named = len(evaluator.tree.named(function.name.value)) if callers else 0
    return 0 < named == len(callers)


def explains(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether the gradients that a function computes are looked at, to explain a prediction, say.

    It is not named for training, and the file speaks of no optimizer and takes no step; or the function takes none, but
    sets its model to evaluate or hooks into it.
    """
    if _FOR_TRAINING.search(function.name.value):
        return False
    called = {identifier(call.func) for call in evaluator.tree.below(function.body, cst.Call)}
    if "step" not in called and not _LOOKING.isdisjoint(called):
        return True
    names = map(identifier, (*evaluator.tree.nodes(cst.Name), *evaluator.tree.nodes(cst.Attribute)))
    return not any(_FOR_UPDATES.search(name) for name in names)


def compares(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop holds the results of one computation against those of another: a check, no training."""
    calls = evaluator.tree.below(loop.body, cst.Call)
    return any(identifier(call.func) in _COMPARING for call in calls) and not any(
        identifier(call.func) in ("step", "zero_grad") for call in calls
    )


def is_of_others(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is of another library, or of what may call it once: a workflow, a server."""
    if any(map(evaluator.scopes.imports, _OTHER_ARRAYS)):
        return True
    owner = evaluator.definitions.owner(function)
    ancestry = evaluator.definitions.ancestry(owner) if owner is not None else ()
    if any(base.startswith("tensorflow.") for base in ancestry):
        return True
    decorators = (each.decorator for each in function.decorators)
    made = (one.func if isinstance(one, cst.Call) else one for one in decorators)
    named = (evaluator.names.qualified(one) for one in made)
    return any(name is not None and name.partition(".")[0] not in ("", *_WRAPPING) for name in named)


def waits_for_person(calls: Iterable[cst.Call], evaluator: Evaluator) -> bool:
    """Return whether one of the calls of a pass reads a line that somebody types: ``prompt = input("> ")``."""
    asking = (call for call in calls if isinstance(call.func, cst.Name) and call.func.value == "input")
    return any(evaluator.names.qualified(call.func) == "builtins.input" for call in asking)


def is_epoch(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is named for an epoch and backpropagates in a loop: it adds all of it to one step."""
    if "epoch" not in function.name.value:
        return False
    passes = (call for call in evaluator.tree.below(function.body, cst.Call) if identifier(call.func) == "backward")
    return any(evaluator.tree.enclosing(one, *LOOPS) is not None for one in passes)


def goes_through_loader(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function evaluates by a loop over batches of its own, so that it is no step of one."""
    loops = evaluator.tree.below(function.body, cst.For)
    return any(batch_evidence(evaluator.iterated(loop)) is not None for loop in loops)
