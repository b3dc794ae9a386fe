"""A function or class of torch is used that is deprecated.

Calls, imports and other uses of the names in a table: `torch.cuda.amp.autocast`, `torch.cholesky`, `torch.qr`,
`torch.range`, `torch.ger`, `functorch.vmap`, `torch.nn.init.xavier_uniform` and others. Of `torch.cuda.amp` and
`torch.cpu.amp` all entries: `autocast`, `GradScaler`, `custom_fwd`, `custom_bwd`.

## Why it costs

Most of them warn on each run, all of them can go with a later release (torch 2.14 went without `torch.cholesky` and
`torch.qr`), and some are slower or less exact than what replaced them.

## What to write instead

The message says it for each name. The fix writes it where every argument keeps its meaning: positional arguments are
given by name where their order changed, `torch.range` gets an end that is one further and the dtype that it had, and
what the new name needs is imported. It is safe where both forms compute the same and the project's oldest torch has
the new one, unsafe otherwise. There is none where stars may carry arguments that would change. For
`torch.cuda.amp.autocast()` it is safe where the dtype is given: without one the old name takes float16, also for blocks
inside of one that is switched off, the new one that of an autocast around it, and a caller in another file may have
entered one.

## When to ignore it

Where the project supports a torch without the new form: the rule is silent if the settings or the metadata of the
project say so, and behind tests of the version.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.rewriting import rewritten
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.process.target import shown
from torchlint.semantics.references.handlers import may_be_caught
from torchlint.semantics.references.symbols import Use, is_spoken_of, is_type_test, moved_with, symbol_uses
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.semantics.tables.symbols import DEPRECATED
from torchlint.syntax.calls import literal

rule = Rule(
    code="TL802",
    name="deprecated-function",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a deprecated function or class of torch",
    triggers=Triggers.all_of(("torch", "functorch"), DEPRECATED.last_names),
    examples=(
        Example(bad="import torch\n\nq, r = torch.qr(a)\n", good="import torch\n\nq, r = torch.linalg.qr(a)\n"),
        Example(
            bad="import torch\n\nscores = torch.ger(a, b)\n",
            good="import torch\n\nscores = torch.outer(a, b)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/torch.html", "https://docs.pytorch.org/docs/stable/amp.html"),
    documentation=__doc__,
    silences={
        "older-target": "The oldest torch that the project supports does not have the new form.",
        "version": "The code runs only with some versions of torch: after a test of one, or where an import failed.",
        "type-test": "A type test asks for the class: nothing is made of it.",
        "other-name": "The name means something else: of another library, of the project, or a method of a tensor.",
        "not-used": "The name stands in a string or comment, or the file gives it a new meaning.",
        "listed": "A table lists the function under its own name, as what replaces functions for a while does.",
        "new-form": "It is what the deprecated name became.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    in_tests=True,
)


@rule.check(cst.Module)
def deprecated(module: cst.Module, model: Model) -> Iterator[Finding]:
    """Report the deprecated names that a file uses."""
    for use in symbol_uses(model, DEPRECATED):
        older = model.target.lacks(use.symbol.since)
        if rule.silent("older-target", older) or rule.silent("version", depends_on_version(use.node, model)):
            continue
        if rule.silent("type-test", is_type_test(use, model)):
            continue
        if rule.silent("listed", _is_listed(use, model)):
            continue
        yield Finding(use.node, _message(use), _fix(use, model))


def _is_listed(use: Use, model: Model) -> bool:
    """Whether a name is the value of a table under the key that is its last part: ``"normal": init.normal``."""
    holder = model.parent(use.node)
    return isinstance(holder, cst.DictElement) and literal(holder.key) == use.name.rpartition(".")[2]


def _message(use: Use) -> str:
    symbol = use.symbol
    since = f" since torch {shown(symbol.deprecated)}" if symbol.deprecated else ""
    if symbol.replacement:
        instead = f"Use `{symbol.replacement}`, which takes the same arguments."
    else:
        instead = f"Write {symbol.instead}."
    if symbol.removed:
        return f"`{use.name}` is deprecated{since}, and an error since torch {shown(symbol.removed)}. {instead}"
    return f"`{use.name}` is deprecated{since}: it warns, or a later release may go without it. {instead}"


def _fix(use: Use, model: Model) -> Fix | None:
    found = rewritten(use, DEPRECATED, model)
    if found is None:
        return None
    needs = f"It needs torch {shown(use.symbol.since)}, and nothing says which one is used."
    patched = "A string names the function, which may be replaced by something else." * _is_patched(use, model)
    is_caught = use.call is not None and may_be_caught(use.node, model)
    caught = "What is caught here may have another text, or not come." * is_caught
    needed = needs if model.target.version < use.symbol.since else ""
    why = " ".join(filter(None, (found.why, patched, caught, needed)))
    message = f"Use `{use.symbol.replacement}`" if use.symbol.replacement else f"Write {use.symbol.instead}"
    return Fix(message, found.edits, Safety.UNSAFE if why else Safety.SAFE, why)


def _is_patched(use: Use, model: Model) -> bool:
    return any(is_spoken_of(other, model) for other in moved_with(use, DEPRECATED, model))
