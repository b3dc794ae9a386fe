"""Every CUDA kernel is waited for: `CUDA_LAUNCH_BLOCKING=1` is set from code.

## Why it costs

The variable makes each kernel launch return only when the kernel has finished. Python can no longer run ahead of the
GPU, which then idles between any two kernels. It exists so that the stack trace of a CUDA error points to the call that
caused it.

## What to write instead

Nothing: remove the line, and set the variable in the shell for the one run that needs it:
`CUDA_LAUNCH_BLOCKING=1 python train.py`. The fix removes the statement. It is safe: what is computed stays the same,
only errors of a failing run are reported later. There is no fix where the file reads the variable, looks through its
environment, or hands it to other programs.

## When to ignore it

In a script that exists to find an error. The rule is silent where a flag or an argument decides, where the variable is
set again further on, in functions that make runs repeatable on request, and in tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import RemoveStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import SETTERS
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.process.switches import Setting

NAME = "CUDA_LAUNCH_BLOCKING"
VARIABLE = f"os.environ[{NAME}]"

rule = Rule(
    code="TL606",
    name="launch-blocking",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="every CUDA kernel is waited for",
    triggers=Triggers.all_of("CUDA_LAUNCH_BLOCKING", ("environ", "putenv")),
    examples=(
        Example(
            bad='import os\n\nimport torch\n\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"\nos.getcwd()\ntorch.ones(1)\n',
            good="import os\n\nimport torch\n\nos.getcwd()\ntorch.ones(1)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",),
    documentation=__doc__,
    silences={
        "off": "The value is not the constant 1.",
        "asked-for": "A flag or a caller asks for it: also by calling a function that only sets switches.",
        "repeatable": "The function makes runs repeatable, or seeds generators, on request.",
        "restored": "The same function sets the variable to something else further on.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.SAFE,),
)


@rule.check(cst.Assign, cst.Call, called=SETTERS)
def blocking(node: cst.Assign | cst.Call, model: Model) -> Iterator[Finding]:
    """Report the statement that sets the variable."""
    for setting in model.switches.settings(node):
        if setting.name != VARIABLE or rule.silent("off", not _is_one(setting.value)):
            continue
        asked = model.chosen(node) or model.switches.is_setter(node)
        if rule.silent("asked-for", asked) or rule.silent("test", model.in_test(node)):
            continue
        if rule.silent("repeatable", model.switches.makes_repeatable(node)):
            continue
        if rule.silent("restored", model.switches.restored(setting)):
            continue
        message = (
            f"`{model.code(node).strip()}` makes Python wait for every CUDA kernel, so that nothing overlaps. "
            "Remove it, and set the variable in the shell when an error has to be found."
        )
        yield Finding(node, message, _fix(setting, model))


def _is_one(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call) and len(value.args) == 1:
        return literal(value.args[0].value) in (1, True)
    return literal(value) == "1"


def _fix(setting: Setting, model: Model) -> Fix | None:
    statement = setting.statement
    if isinstance(statement, cst.Call):
        parent = model.parent(statement)
        statement = parent if isinstance(parent, cst.Expr) else statement
    if not setting.alone or not isinstance(statement, (cst.Assign, cst.Expr)) or model.environment.may_be_read(NAME):
        return None
    keywords = {arg.keyword.value for arg in model.nodes(cst.Arg) if arg.keyword is not None}
    if model.mentions("Stream", "stream") or "non_blocking" in keywords:
        return None  # what runs on several streams, or is copied meanwhile, may count on the order
    return Fix("Remove the setting", (RemoveStatement(statement),), Safety.SAFE)
