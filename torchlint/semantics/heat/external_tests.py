"""Tests that ask the world outside a program: a clock, the environment, whether something went wrong."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import FUNCTIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal

_CLOCKS = frozenset(
    (
        "time.time time.perf_counter time.monotonic time.process_time timeit.default_timer datetime.datetime.now "
        "datetime.datetime.utcnow"
    ).split()
)
# What lets something through now and then, by its name or by all that it is made with.
_PACES = re.compile(r"Every(?![a-z])|Throttle|RateLimit|Periodic|Cadence|Interval|^(rate_?limit|throttle|every)")
_INTERVAL = re.compile(r"(^|_)(freq|frequency|every|every_n|interval|period|seconds|secs|cadence)(_|$)")
_MAX_DEPTH = 3
_ENVIRONMENT = ("os.environ.get", "os.getenv")
_OFF = ("", "0", "false", "no", "off", "none")
# Variables that launchers and schedulers set for each of their programs.
_LAUNCHED = re.compile(r"RANK|WORLD|LOCAL|MASTER|SLURM|NODE|CUDA|DEVICE|GPU|TPU")


def reads_clock(code: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether some code asks for the time."""
    calls = evaluator.tree.below(code, cst.Call)
    return any(evaluator.names.qualified(call.func) in _CLOCKS for call in calls)


def is_time(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether an expression is worked out of what a clock says, by variables too: ``now - last``."""
    if reads_clock(expression, evaluator):
        return True
    bindings = (b for name in evaluator.tree.below(expression, cst.Name) for b in evaluator.flow.definitions(name))
    worked_out = (b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT and b.value is not None and not b.path)
    return depth < _MAX_DEPTH and any(
        isinstance(value, (cst.Call, cst.BinaryOperation)) and is_time(value, evaluator, depth + 1)
        for value in worked_out
    )


def lets_through(test: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call asks what says yes now and then: by a clock, or by an interval that it was made with."""
    return _limits_rate(test, evaluator) or _asks_for_turn(test, evaluator)


def _limits_rate(test: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call asks a function of the file that looks at a clock: ``if throttle.ready():``."""
    name = identifier(test.func)
    functions = (f for f in evaluator.tree.nodes(cst.FunctionDef) if f.name.value == name)
    asked = (f for f in functions if any(test is call for call in evaluator.callers(f)))
    return any(reads_clock(function.body, evaluator) for function in asked)


def is_timed(test: cst.Name | cst.Attribute, evaluator: Evaluator) -> bool:
    """Return whether an attribute is a property of a class of the file that reads a clock: ``if progress.is_due``."""
    if not isinstance(test, cst.Attribute):
        return False
    named = [f for f in evaluator.tree.nodes(cst.FunctionDef) if f.name.value == test.attr.value]
    return bool(named) and all(evaluator.definitions.is_property(f) and reads_clock(f.body, evaluator) for f in named)


def _asks_for_turn(test: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call asks an object of another file that was made with an interval, and with nothing else.

    ``every = Every(cfg.log_freq)``, ``limiter = RateLimiter(seconds=10)``: ``if every():``, ``if limiter.allows():``.
    """
    held = test.func.value if isinstance(test.func, cst.Attribute) else test.func
    bindings = evaluator.flow.definitions(held) if isinstance(held, cst.Name) else []
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    if not isinstance(made, cst.Call) or not made.args or evaluator.definitions.definition(made.func) is not None:
        return False
    name = evaluator.names.qualified(made.func) or ""
    is_named = _PACES.search(identifier(made.func)) is not None
    given = (identifier(a.keyword) if a.keyword is not None else identifier(a.value) for a in made.args)
    return not name.startswith(("torch.", "builtins.")) and (is_named or all(map(_INTERVAL.search, given)))


def asks_for_option(test: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a test holds only if a variable of the environment is set that is off by default."""
    wanted: str | None = None
    if isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, cst.Equal):
        value = literal(test.comparisons[0].comparator)
        test, wanted = test.left, str(value)
    while isinstance(test, cst.Call) and evaluator.names.qualified(test.func) in ("builtins.int", "builtins.bool"):
        test = test.args[0].value if test.args else test.func
    if not isinstance(test, cst.Call) or evaluator.names.qualified(test.func) not in _ENVIRONMENT or not test.args:
        return False
    variable = literal(test.args[0].value)
    default = literal(test.args[1].value) if len(test.args) > 1 else ""
    is_off = str(default).lower() in _OFF and (wanted is None or str(default) != wanted)
    return isinstance(variable, str) and not _LAUNCHED.search(variable) and is_off


def is_told_of_error(flag: cst.Name, evaluator: Evaluator) -> bool:
    """Return whether a flag is only raised where an exception is handled: ``except RuntimeError: ran_out = True``."""
    tree = evaluator.tree
    bindings = [b for b in evaluator.flow.definitions(flag) if b.kind is BindingKind.ASSIGNMENT]
    raised = [b.node for b in bindings if b.value is not None and literal(b.value) is not False]
    return bool(raised) and all(
        isinstance(tree.enclosing(n, cst.ExceptHandler, *FUNCTIONS), cst.ExceptHandler) for n in raised
    )
