"""A function that is compiled does something in the middle that `torch.compile` cannot put into a graph.

`print`, logging and warnings, clocks, Python's `random`, files, and `copy.deepcopy` of a tensor, in a function that the
file hands to `torch.compile`, or that such a function calls.

## Why it costs

The graph ends there: what comes before is one compiled function, then Python runs, and what comes after is compiled as
another one. Nothing is fused across the gap, and each part starts its kernels by itself. Within a loop torch gives up:
nothing of the function is compiled. With `fullgraph=True` it is an error.

## What to write instead

Do it outside, around the call of the compiled function; for random numbers take `torch.rand`, for copies `clone()`.
`torch.compiler.is_compiling()` tells whether the function is traced.
`TORCH_LOGS=graph_breaks` shows all breaks of a run with their reasons.

## When to ignore it

Where the function runs once. Values that the host waits for (`.item()`, a tensor in an `if`) break the graph too: TL202
and TL204 report them.

Each of the calls was tried with torch 2.13; what that traces (`random.randint`, `random.uniform`, `assert` of a tensor,
f-strings) is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.syntax.calls import method_call

LEVELS = ("debug", "info", "warning", "warn", "error", "exception", "critical", "log")
SHOWS = frozenset(("builtins.print", "warnings.warn", *(f"logging.{level}" for level in LEVELS)))
CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "sleep")
DRAWS = ("random", "choice", "choices", "shuffle", "sample", "gauss")
FILES = frozenset(("builtins.open", "torch.save", "torch.load"))
BREAKS = SHOWS | FILES | {f"time.{name}" for name in CLOCKS}
RANDOM = frozenset(f"random.{name}" for name in DRAWS)
COPY = "copy.deepcopy"
REORDERED = "reorderable_logging_functions"
OUTSIDE = "Do it outside of the compiled function"

rule = Rule(
    code="TL416",
    name="graph-break-in-compiled",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a call that ends the graph in a function that is compiled",
    triggers=Triggers.all_of(
        "torch", "compile", ("print", "warn", *LEVELS, *CLOCKS, *DRAWS, "open", "save", "load", "deepcopy")
    ),
    examples=(
        Example(
            bad="""
import torch

@torch.compile
def step(x):
    y = x + 1
    print("step")
    return y * 2
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/torch.compiler_faq.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    ),
    documentation=__doc__,
    silences={
        "not-compiled": "Nothing in the file compiles the function, or a decorator keeps it out of the graph.",
        "traced": "torch traces the call: `random.randint`, a copy of something else than a tensor.",
        "chosen": "It runs only if a condition asks for it, `is_compiling()` among them, or after an error.",
        "leaves": "The function ends there: nothing is left to be fused with.",
        "another-rule": "TL203 reports the tensor that a training step prints.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=(*BREAKS, *RANDOM, *LEVELS, COPY))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call that ends the graph of a compiled function."""
    cure = _cure(call, model)
    if cure is None or rule.silent("not-compiled", not model.is_traced(call)):
        return
    if rule.silent("chosen", model.chosen(call)):
        return
    if rule.silent("leaves", _leaves(call, model)) or rule.silent("test", model.in_test(call)):
        return
    if model.speaks_of(REORDERED) or rule.silent("another-rule", _is_printed_tensor(call, model)):
        return
    function = model.enclosing_function(call)
    name = f"`{function.name.value}`" if function is not None else "the function"
    loop = model.enclosing(call, cst.For, cst.While)
    in_loop = loop is not None and function is not None and model.within(loop, function)
    effect = "in a loop, nothing of it is" if in_loop else "what follows is compiled by itself"
    yield Finding(
        call,
        f"`{model.code(call.func)}` ends the graph of {name}, which is to be compiled: {effect}, and nothing is fused "
        f"across. {cure}.",
    )


def _cure(call: cst.Call, model: Model) -> str | None:
    """Return what to do instead of a call that ends a graph, None for all others."""
    name = model.qualified_name(call.func) or ""
    if name in BREAKS or _logs(call, model):
        return OUTSIDE
    if name in RANDOM:
        return "Draw from torch's generator, by `torch.rand` or `torch.randint`"
    if name != COPY or not call.args:
        return None
    value = model.value(call.args[0].value)
    is_tensor = value.is_tensor and value.evidence >= Evidence.INFERRED
    return None if rule.silent("traced", not is_tensor) else "Write `clone()`"


def _logs(call: cst.Call, model: Model) -> bool:
    """Whether a call is a method of a logger of Python's."""
    method = method_call(call, *LEVELS)
    if method is None or not isinstance(method.value, cst.Name):
        return False
    made = [binding.value for binding in model.bindings(method.value) if not binding.path]
    return len(made) == 1 and isinstance(made[0], cst.Call) and model.callee(made[0]) == "logging.getLogger"


def _leaves(call: cst.Call, model: Model) -> bool:
    """Whether a return or raise follows that computes nothing, or the end of the function."""
    following = next(iter(model.following(call)), None)
    if following is None:
        function = model.enclosing_function(call)
        line = model.parent(model.statement(call))
        return function is not None and line is not None and model.parent(line) is function.body
    last = following.body[0] if isinstance(following, cst.SimpleStatementLine) else None
    if isinstance(last, cst.Return):
        return last.value is None or isinstance(last.value, (cst.Name, cst.Attribute))
    return isinstance(last, cst.Raise)


def _is_printed_tensor(call: cst.Call, model: Model) -> bool:
    heat = model.heat(call)
    return heat is not None and heat.role is not Role.FORWARD and model.host_reads.copied(call) is not None
