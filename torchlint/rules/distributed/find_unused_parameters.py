"""`DistributedDataParallel` searches the graph of every step for parameters that got no gradient.

`find_unused_parameters=True`, given to `DistributedDataParallel` itself or to a framework that passes it on:
Accelerate's `DistributedDataParallelKwargs`, Lightning's `DDPStrategy` and `"ddp_find_unused_parameters_true"`,
ignite's `auto_model`, `TrainingArguments(ddp_find_unused_parameters=True)`.

## Why it costs

After each forward pass the whole autograd graph is walked from the outputs, to find the parameters that it does not
reach, and the processes exchange which of them were used. A model that uses all its parameters in every step gains
nothing from it. The option is needed only where parameters that require gradients take no part in a step: branches,
dropped layers, experts, parts that are trained in turn. It is often copied from a script that was such a case, or kept
after the parameters in question were frozen.

## What to write instead

Leave it out and train a few steps: if it is needed, PyTorch says so ("Expected to have finished reduction in the prior
iteration"), and with `TORCH_DISTRIBUTED_DEBUG=DETAIL` in the environment it names the parameters. Then

- freeze for good what is never trained, `parameter.requires_grad_(False)` before the model is wrapped;
- or, where the same parameters are used in every step, pass `static_graph=True` (torch 1.11 and newer), which searches
  once.

There is no fix: the file seldom shows whether it is needed.

## When to ignore it

Where different steps use different parameters.

Holds for all supported versions of torch. Read in the documentation of `DistributedDataParallel` of torch 2.13, which
says "setting this flag to True will make DDP slower" of a model without unused parameters, and in the warning that it
prints then.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal

OPTION = "find_unused_parameters"
WRAPPER = "torch.nn.parallel.DistributedDataParallel"
TAKERS = {
    WRAPPER: OPTION,
    "accelerate.DistributedDataParallelKwargs": OPTION,
    "accelerate.utils.DistributedDataParallelKwargs": OPTION,
    "accelerate.utils.dataclasses.DistributedDataParallelKwargs": OPTION,
    "lightning.pytorch.strategies.DDPStrategy": OPTION,
    "lightning.pytorch.strategies.ddp.DDPStrategy": OPTION,
    "lightning.fabric.strategies.DDPStrategy": OPTION,
    "ignite.distributed.auto_model": OPTION,
    "ignite.distributed.auto.auto_model": OPTION,
    "transformers.TrainingArguments": f"ddp_{OPTION}",
    "transformers.Seq2SeqTrainingArguments": f"ddp_{OPTION}",
}
RUNNERS = ("lightning.pytorch.Trainer", "lightning.fabric.Fabric")
BRANCHES = (cst.If, cst.IfExp, cst.Match, cst.BooleanOperation)

rule = Rule(
    code="TL702",
    name="find-unused-parameters",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.ADVICE,
    summary="every step is searched for parameters without a gradient",
    triggers=Triggers.all_of(
        (OPTION, f"ddp_{OPTION}", "strategy"),
        ("distributed", *sorted({name.rpartition(".")[2] for name in (*TAKERS, *RUNNERS)})),
    ),
    examples=(
        Example(
            bad="from torch.nn.parallel import DistributedDataParallel\n\n"
            "model = DistributedDataParallel(net, find_unused_parameters=True)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        "https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design",
    ),
    documentation=__doc__,
    silences={
        "chosen": "It is off, or a variable, a flag or a caller decides.",
        "branches": "The file shows the model, and its forward pass has branches.",
        "static": "The graph is declared static, which needs no search.",
        "other": "The class is of another library.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=(*TAKERS, *RUNNERS))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call that asks for the search."""
    name = model.callee(call)
    if name not in TAKERS and name not in RUNNERS:
        return
    given = model.arguments(call, ("module",) if name == WRAPPER else ())
    if rule.silent("chosen", not _is_asked(given.get(TAKERS.get(name or "", "strategy"))) or model.chosen(call)):
        return
    if rule.silent("static", literal(given.get("static_graph")) is True) or rule.silent("test", model.in_test(call)):
        return
    if rule.silent("branches", _branches(given.get("module"), model)):
        return
    yield Finding(
        call,
        "Every step searches the graph of the model for parameters that got no gradient. Leave the option out unless "
        "steps differ in the parameters that they use: freeze what is never trained before the model is wrapped, or "
        "pass `static_graph=True` where it is always the same ones.",
    )


def _is_asked(value: cst.BaseExpression | None) -> bool:
    found = literal(value)
    return found is True or (isinstance(found, str) and found.endswith(f"{OPTION}_true"))


def _branches(module: cst.BaseExpression | None, model: Model) -> bool:
    """Whether the file shows that a forward pass can go different ways."""
    class_def = model.value(module).definition if module is not None else None
    forward = model.definitions.method(class_def, "forward") if isinstance(class_def, cst.ClassDef) else None
    return forward is not None and any(isinstance(node, BRANCHES) for node in model.descendants(forward.body))
