"""A debugging aid of CUDA stays on: it reports synchronisations, or records every allocation.

`torch.cuda.set_sync_debug_mode("warn")` or `("error")` that nothing takes back, and
`torch.cuda.memory._record_memory_history()` without `max_entries`, whose records nothing in the file reads.

## Why it costs

In the mode `"warn"` each operation that makes the host wait for the GPU also builds and issues a Python warning; in the
mode `"error"` it raises. The history of memory keeps a stack trace for each allocation and each release: several
kilobytes of host memory each, without a limit unless `max_entries` sets one, and some microseconds.

## What to write instead

Nothing: remove the call, or let a flag switch it on. Around the one place that is looked into, take it back:

```python
torch.cuda.set_sync_debug_mode("warn")
train_step(batch)
torch.cuda.set_sync_debug_mode("default")
```

The fix removes the statement. It is safe: a run that succeeded computes the same values. There is none where the file
asks for the mode, handles warnings, or could catch an error, and none where an argument calls something.

## When to ignore it

In a script that exists to find synchronisations or leaks. A history with `max_entries` costs little, and the rule is
silent about it.

Holds for torch 1.10 and newer, which have the mode, and for the history from 2.1 on. Read in the documentation of both
functions of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import RemoveStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal

MODE = "torch.cuda.set_sync_debug_mode"
HISTORY = "torch.cuda.memory._record_memory_history"
WARNS, RAISES = ("warn", 1), ("error", 2)
READS = ("_dump_snapshot", "_snapshot", "memory_snapshot", "attach_out_of_memory_observer", "_cuda_memorySnapshot")
READS_MODE = ("get_sync_debug_mode", "is_initialized", "captureWarnings")

rule = Rule(
    code="TL608",
    name="sync-debug-left-on",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="reports of synchronisations, or records of allocations, are left on",
    triggers=Triggers.all_of("cuda", ("set_sync_debug_mode", "_record_memory_history")),
    examples=(
        Example(
            bad='import torch\n\ntorch.cuda.set_sync_debug_mode("warn")\ntorch.ones(1)\n',
            good="import torch\n\ntorch.ones(1)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html",
        "https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
    ),
    documentation=__doc__,
    silences={
        "off": "The mode is the default, the history is stopped, or a variable decides.",
        "taken-back": "Another call in the file changes the mode, or stops the history.",
        "limited": "The history has a limit.",
        "read": "Something in the file reads the history.",
        "asked-for": "A flag or a caller asks for it.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.SAFE,),
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call that switches an aid on for good."""
    name = model.callee(call)
    if name not in (MODE, HISTORY):
        return
    if rule.silent("off", not _is_on(call, name, model)) or (name == HISTORY and _is_of_use(call, model)):
        return
    calls = (other for other in model.nodes(cst.Call) if model.callee(other) == name and other is not call)
    if rule.silent("asked-for", model.chosen(call)) or rule.silent("test", model.in_test(call)):
        return
    if not all(_is_on(other, name, model) for other in calls):
        return  # another call takes it back
    yield Finding(call, _message(call, name, model), _fix(call, model))


def _is_on(call: cst.Call, name: str, model: Model) -> bool:
    """Whether a call certainly switches its aid on."""
    if name == MODE:
        return literal(model.arguments(call, ("debug_mode",)).get("debug_mode")) in (*WARNS, *RAISES)
    given = model.arguments(call, ("enabled",))
    enabled = given.get("enabled")
    return not given.open and (enabled is None or literal(enabled) in ("all", "state", True))


def _is_of_use(call: cst.Call, model: Model) -> bool:
    """Whether a history is limited, or is read."""
    given = model.arguments(call, ("enabled", "context", "stacks", "max_entries"))
    limited = any(given.get(name) is not None for name in ("max_entries", "trace_alloc_max_entries"))
    return rule.silent("limited", limited) or model.speaks_of(*READS) or model.names_any_of(*READS)


def _message(call: cst.Call, name: str, model: Model) -> str:
    shown = model.shown(call, f"`{model.code(call.func)}`")
    if name == HISTORY:
        return (
            f"{shown} keeps a stack trace for every allocation of the run, and nothing here reads them. Remove it, "
            "or limit it by `max_entries`."
        )
    does = "raise" if _raises(call, model) else "issue a warning"
    return (
        f"{shown} makes every operation that waits for the GPU {does}, in all runs. Remove it, or set "
        '`"default"` again after the place that is looked into.'
    )


def _fix(call: cst.Call, model: Model) -> Fix | None:
    statement = model.parent(call)
    if not isinstance(statement, cst.Expr) or _sees(model):
        return None
    if model.nodes(cst.Try) or model.names_any_of("suppress") or model.speaks_of("suppress"):
        return None  # without CUDA the call raises, too
    if not all(model.is_plain(argument.value) for argument in call.args) or _shadows(call, model):
        return None
    return Fix("Remove the call", (RemoveStatement(statement),), Safety.SAFE)


def _shadows(call: cst.Call, model: Model) -> bool:
    """Whether another call sets the other mode, which would hold again without this one."""
    calls = (other for other in model.nodes(cst.Call) if model.callee(other) == MODE)
    return model.callee(call) == MODE and len({_raises(other, model) for other in calls}) > 1


def _raises(call: cst.Call, model: Model) -> bool:
    return literal(model.arguments(call, ("debug_mode",)).get("debug_mode")) in RAISES


def _sees(model: Model) -> bool:
    """Whether something in the file can see that an aid is on, or that CUDA was started for it."""
    if model.scopes.imports("warnings") or model.names_any_of(*READS_MODE) or model.speaks_of(*READS_MODE):
        return True
    texts = [text.raw_value for text in model.nodes(cst.SimpleString)]
    return any(name in text for name in (*READS_MODE, *READS) for text in texts)
