"""A name is used that torch keeps for itself, where there is a public one.

Such as `torch.utils.data._utils.collate.default_collate`, `torch.optim.lr_scheduler._LRScheduler`,
`torch._dynamo.reset` or `torch.distributed._tensor.DTensor`.

## Why it costs

What a leading underscore keeps private moves, changes or goes with any release, without a warning before. The public
name has the same function behind it, is documented and stays.

`_LRScheduler` is a subclass of `LRScheduler` since torch 2.0, and torch's own schedulers no longer derive from it:
`isinstance(scheduler, _LRScheduler)` is False for all of them.

## What to write instead

The public name, which the message gives; the fix writes it, and the import that it needs. It is safe where both names
are of one object and the project's oldest torch has the public one, unsafe otherwise.

## When to ignore it

Where the project supports a torch that does not have the public name: the rule is silent if the settings or the
metadata of the project say so, and behind tests of the version.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.renaming import renamed
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.process.target import shown
from torchlint.semantics.references.symbols import Use, is_spoken_of, moved_with, symbol_uses
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.semantics.tables.symbols import NONPUBLIC

rule = Rule(
    code="TL806",
    name="nonpublic-import",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a private name of torch that has a public one",
    triggers=Triggers.all_of(NONPUBLIC.last_names, ("_utils", "_LRScheduler", "_dynamo", "_tensor", "_composable")),
    examples=(
        Example(
            bad="import torch\n\ntorch.utils.data._utils.worker.get_worker_info()\n",
            good="import torch\n\ntorch.utils.data.get_worker_info()\n",
        ),
    ),
    references=("https://github.com/pytorch/pytorch/wiki/Public-API-definition-and-documentation",),
    documentation=__doc__,
    silences={
        "older-target": "The oldest torch that the project supports does not have the public name.",
        "version": "The code runs only with some versions of torch: after a test of one, or where an import failed.",
        "public": "It is the public name.",
        "no-public": "The name is private, and torch has no public one for it.",
        "other-name": "The name means something else: of another library, of the project, or in a string.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    in_tests=True,
)


@rule.check(cst.Module)
def nonpublic(module: cst.Module, model: Model) -> Iterator[Finding]:
    """Report the private names of a file."""
    for use in symbol_uses(model, NONPUBLIC):
        older = model.target.lacks(use.symbol.since)
        if rule.silent("older-target", older) or rule.silent("version", depends_on_version(use.node, model)):
            continue
        public = use.symbol.replacement
        yield Finding(
            use.node,
            f"`{use.name}` is private to torch: it can change or go with any release. Use `{public}`, which is public"
            f"{_since(use)}.",
            _fix(use, model),
        )


def _since(use: Use) -> str:
    return f" since torch {shown(use.symbol.since)}" if use.symbol.since > (1, 8) else ""


def _fix(use: Use, model: Model) -> Fix | None:
    found = renamed(use, NONPUBLIC, model)
    if found is None:
        return None
    reasons, moved = [], moved_with(use, NONPUBLIC, model)
    if not all(other.symbol.same for other in moved):
        reasons.append("They are not one object: what compares them, or derives from one, can notice.")
    if model.target.version < use.symbol.since:
        reasons.append(f"It needs torch {shown(use.symbol.since)}, and nothing says which one is used.")
    if any(is_spoken_of(other, model) for other in moved):
        reasons.append("A string names it, so that something else may be put in its place.")
    if found.drops_name:
        reasons.append("Other files may import the old name from this one.")
    return Fix(
        f"Use `{use.symbol.replacement}`", found.edits, Safety.UNSAFE if reasons else Safety.SAFE, " ".join(reasons)
    )
