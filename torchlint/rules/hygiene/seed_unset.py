"""A training program draws its weights and batches from a generator that nobody seeds.

## Why it costs

Weights, dropout, shuffling and augmentation come from random number generators. Without a seed two runs of the same
program differ, so that neither a bug nor a gain can be told from chance.

## What to write instead

`torch.manual_seed(seed)` before the model is made, which seeds CUDA and the workers of every `DataLoader` as well, and
`random.seed(seed)` and `numpy.random.seed(seed)` where these are used in the main process. Report results over several
seeds.

## When to ignore it

Where every run is meant to differ, or whoever starts the program seeds it.

Holds for all supported versions of torch. Read in "Reproducibility" of the notes of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import OPTIMIZERS
from torchlint.semantics.training.full_precision import is_first_optimizer
from torchlint.syntax.calls import identifier
from torchlint.syntax.statements import is_main_guard

SEEDS = re.compile(r"seed|rng_state|determinis|generator|reproduc", re.IGNORECASE)

rule = Rule(
    code="TL901",
    name="seed-unset",
    family=Family.HYGIENE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a training program that seeds no random number generator",
    triggers=Triggers.all_of("backward", "step", "__main__"),
    examples=(
        Example(
            bad="""
import torch

def main(loader):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad(set_to_none=True)
        model(x).mean().backward()
        optimizer.step()

if __name__ == "__main__":
    main(torch.randn(8, 4))
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/notes/randomness.html",),
    documentation=__doc__,
    silences={
        "seeds": "The file speaks of seeds, of generators or of determinism.",
        "elsewhere": "Another module of the project takes part, and may seed.",
        "no-training": "The file does not make the optimizer, or does not train.",
        "no-program": "The file is no program: whoever imports it may seed.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=OPTIMIZERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the optimizer of a program without a seed, once for a file."""
    if model.qualified_name(call.func) not in OPTIMIZERS or not is_first_optimizer(call, model):
        return
    if model.in_test(call) or not _is_run(model) or _imports_own(model):
        return
    if (
        not model.training_code.updates()
        or not model.backward.passes()
        or rule.silent("seeds", _speaks_of_seeds(model))
    ):
        return
    yield Finding(
        call,
        "This program trains, and seeds no random number generator, so that no two runs can be compared. Call "
        "`torch.manual_seed(seed)` before the model is made.",
    )


def _is_run(model: Model) -> bool:
    """Whether the file is meant to be run by itself."""
    return any(isinstance(statement, cst.If) and is_main_guard(statement) for statement in model.tree.module.body)


def _imports_own(model: Model) -> bool:
    """Whether a module beside this one is imported."""
    return any(statement.relative for statement in model.nodes(cst.ImportFrom))


def _speaks_of_seeds(model: Model) -> bool:
    names = (node for kind in (cst.Name, cst.Attribute) for node in model.nodes(kind))
    texts = (text.raw_value for text in model.nodes(cst.SimpleString) if len(text.raw_value) < 40)
    return any(SEEDS.search(identifier(name)) for name in names) or any(map(SEEDS.search, texts))
