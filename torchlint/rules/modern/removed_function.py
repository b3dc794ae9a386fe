"""A function of torch is used that newer versions do not have any more.

`torch.solve`, `torch.symeig`, `torch.eig`, `torch.matrix_rank`, `torch.lstsq`, `torch.rfft`, `torch.irfft`,
`torch.ifft`, and the module `torch._six`.

## Why it costs

The call, or the import, is an error with any torch of the last years: the code cannot be run, or holds the whole
project on a version that gets no fixes.

## What to write instead

The message says it for each name. Where one expression replaces the call and what is taken from its result, the fix
writes it: `torch.solve(B, A).solution` becomes `torch.linalg.solve(A, B)`. It is unsafe, since another function
computes the result.

## When to ignore it

Where the code runs with an old torch only. The rule is silent behind tests of the version, and where an import that
fails is expected.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.rewriting import rewritten
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.process.target import shown
from torchlint.semantics.references.symbols import Use, symbol_uses
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.semantics.tables.symbols import REMOVED

rule = Rule(
    code="TL801",
    name="removed-function",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a function that newer torch does not have",
    triggers=Triggers.all_of("torch", REMOVED.last_names),
    examples=(
        Example(
            bad="import torch\n\nx = torch.solve(b, a).solution\n",
            good="import torch\n\nx = torch.linalg.solve(a, b)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/linalg.html", "https://docs.pytorch.org/docs/stable/fft.html"),
    documentation=__doc__,
    silences={
        "version": "The code runs only with some versions of torch: after a test of one, or where an import failed.",
        "other-name": "The name means something else: of another library, of the project, a parameter, or a method.",
        "new-form": "It is what the removed name became.",
    },
    fixes=(Safety.UNSAFE,),
    in_tests=True,
)


@rule.check(cst.Module)
def removed(module: cst.Module, model: Model) -> Iterator[Finding]:
    """Report the removed names that a file uses."""
    for use in symbol_uses(model, REMOVED):
        if not rule.silent("version", depends_on_version(use.node, model)):
            yield Finding(use.node, _message(use), _fix(use, model))


def _message(use: Use) -> str:
    symbol = use.symbol
    since = f" {shown(symbol.removed)}" if symbol.removed else ""
    gone = f"torch{since} and newer do not have `{use.name}`" if since else f"newer torch does not have `{use.name}`"
    instead = f"`{symbol.replacement}`" if symbol.replacement else symbol.instead
    return f"{gone[0].upper()}{gone[1:]}: the line is an error there. Write {instead}."


def _fix(use: Use, model: Model) -> Fix | None:
    found = rewritten(use, REMOVED, model)
    if found is None:
        return None
    instead = f"`{use.symbol.replacement}`" if use.symbol.replacement else use.symbol.instead
    return Fix(
        f"Write {instead}", found.edits, Safety.UNSAFE, found.why or "With a torch that has both, this is another name."
    )
