"""An optimizer is left with the defaults that matter most.

## Why it costs

The learning rate, the weight decay and the momentum decide how training goes, and their defaults fit no task in
particular: `SGD` has no momentum, `Adam` no weight decay, `AdamW` 0.01 of it. What is not written cannot be found again
when somebody asks which values made a result, and defaults have changed between versions (the learning rate of `SGD`
had none before torch 2.0).

## What to write instead

Write them out, also where the default is meant: `torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)`.

## When to ignore it

In examples and tests, where no result depends on them.

Holds for all supported versions of torch. The defaults were read from `torch.optim` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import method_call

DEFAULTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "torch.optim.Adadelta": {"lr": "1.0", "weight_decay": "0"},
        "torch.optim.Adagrad": {"lr": "0.01", "weight_decay": "0"},
        "torch.optim.Adam": {"lr": "0.001", "weight_decay": "0"},
        "torch.optim.Adamax": {"lr": "0.002", "weight_decay": "0"},
        "torch.optim.AdamW": {"lr": "0.001", "weight_decay": "0.01"},
        "torch.optim.NAdam": {"lr": "0.002", "weight_decay": "0"},
        "torch.optim.RAdam": {"lr": "0.001", "weight_decay": "0"},
        "torch.optim.RMSprop": {"lr": "0.01", "weight_decay": "0", "momentum": "0"},
        "torch.optim.SGD": {"lr": "0.001", "momentum": "0", "weight_decay": "0"},
    }
)
POSITIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "torch.optim.Adadelta": ("params", "lr", "rho", "eps", "weight_decay"),
        "torch.optim.Adagrad": ("params", "lr", "lr_decay", "weight_decay"),
        "torch.optim.RMSprop": ("params", "lr", "alpha", "eps", "weight_decay", "momentum"),
        "torch.optim.SGD": ("params", "lr", "momentum", "dampening", "weight_decay"),
    }
)
MOST = ("params", "lr", "betas", "eps", "weight_decay")

rule = Rule(
    code="TL904",
    name="optimizer-defaults",
    family=Family.HYGIENE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="an optimizer without its learning rate, weight decay or momentum",
    triggers=Triggers.all_of("optim", frozenset(name.rpartition(".")[2] for name in DEFAULTS)),
    examples=(
        Example(
            bad="import torch\n\ndef make(model):\n    return torch.optim.Adam(model.parameters())\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/optim.html",),
    documentation=__doc__,
    silences={
        "given": "All of them are given.",
        "open": "`*` or `**` arguments may carry them.",
        "groups": "The parameters come in groups, which may carry them.",
        "other-name": "It is no optimizer of torch.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=DEFAULTS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report an optimizer with settings that are not written."""
    name = model.qualified_name(call.func)
    defaults = DEFAULTS.get(name or "")
    if name is None or defaults is None:
        return
    given = model.arguments(call, POSITIONS.get(name, MOST))
    if rule.silent("open", given.open):
        return
    missing = [setting for setting in defaults if setting not in given.named]
    if rule.silent("given", not missing) or rule.silent("test", model.in_test(call)):
        return
    if rule.silent("groups", not _takes_parameters(given.get("params"))):
        return
    left = ", ".join(f"`{setting}={defaults[setting]}`" for setting in missing)
    default = "default" if len(missing) == 1 else "defaults"
    yield Finding(
        call,
        f"`{model.code(call.func)}` is left with the {default} {left}: nobody chose that for this task, and it cannot "
        "be read here. Write out what is meant.",
    )


def _takes_parameters(parameters: cst.BaseExpression | None) -> bool:
    """Whether an optimizer is given the parameters of a module themselves: ``model.parameters()``."""
    return method_call(parameters, "parameters") is not None
