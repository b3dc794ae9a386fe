"""A file is loaded in a way that lets it run any code.

`torch.load` without `weights_only` where torch can be older than 2.6, with `weights_only=False` or with a
`pickle_module`, and `torch.package.PackageImporter`.

## Why it costs

These files are pickles: a program that Python runs while it loads. Whoever can change the file, a checkpoint from the
web or a bucket that others write to, runs code as you. With `weights_only=True` only tensors and plain containers are
read, and anything else is an error.

The argument exists since torch 1.13; its default became True in torch 2.6.

## What to write instead

`torch.load(path, weights_only=True)`. Save a state dict rather than a module; allow classes of your own by
`torch.serialization.add_safe_globals([...])` (torch 2.4). State the version that the project needs (`torch>=2.6`), and
the rule is silent about calls without the argument.

The fix passes True where something shows that the file holds tensors: a module loads its state from it, or it is used
as a tensor. It is unsafe: a file that holds more than tensors and plain containers no longer loads. There is none where
`weights_only=False` is written out, or with a `pickle_module`: that was a choice; nor in a `try` with handlers, where a
file that no longer loads could go unnoticed; nor where the program shows that it holds more: a model that is called or
saved as a whole, an array, the settings of a run.

## When to ignore it

Where the file certainly comes from yourself: then `weights_only=False` says so, with a `# torchlint: ignore[TL805]` and
the reason beside it. The rule is silent about a buffer that the same file fills, and in tests.

What `torch.distributed` pickles between processes of one job (`all_gather_object` and the like) is not reported: these
processes run the same program anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.references.handlers import may_be_caught
from torchlint.semantics.references.loaded_objects import loads_object, loads_tensors
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.syntax.calls import Arguments, is_none, literal

LOADERS = ("torch.load", "torch.serialization.load")
IMPORTERS = ("torch.package.PackageImporter", "torch.package.package_importer.PackageImporter")
SIGNATURE = ("f", "map_location", "pickle_module")
FIRST_CHOICE = (1, 13)
"""`weights_only` exists since then."""
SAFE_DEFAULT = (2, 6)
"""Its default is True since then."""

rule = Rule(
    code="TL805",
    name="pickle-load",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a file that is loaded can run any code",
    triggers=Triggers.all_of(("load", "PackageImporter")),
    examples=(
        Example(
            bad='import torch\n\nmodel = torch.nn.Linear(2, 2)\nmodel.load_state_dict(torch.load("weights.pt"))\n',
            good="import torch\n\nmodel = torch.nn.Linear(2, 2)\n"
            'model.load_state_dict(torch.load("weights.pt", weights_only=True))\n',
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only-security",
        "https://docs.pytorch.org/docs/stable/generated/torch.load.html",
    ),
    documentation=__doc__,
    silences={
        "default": "A call without the argument, where torch is at least 2.6.",
        "decided": "`weights_only` is True, or an expression decides.",
        "open": "A `**` argument may carry `weights_only`.",
        "version": "The code runs only with some versions: after a test of one, or where the argument is unknown.",
        "other-name": "The name means something else: of another library, of the project, or a method.",
        "own-buffer": "What is loaded is a buffer in memory that the same file makes.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=LOADERS)
def load(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a `torch.load` that unpickles whatever there is."""
    if model.callee(call) not in LOADERS:
        return
    given = model.arguments(call, SIGNATURE, through_names=True)
    choice, pickler = given.get("weights_only"), given.get("pickle_module")
    if rule.silent("open", choice is None and given.open_keywords):
        return
    if rule.silent("own-buffer", _is_own_buffer(given.get("f"), model)):
        return
    bare = choice is None or is_none(choice)
    if rule.silent("decided", not bare and literal(choice) is not False):
        return
    if rule.silent("default", bare and pickler is None and model.target.version >= SAFE_DEFAULT):
        return
    if rule.silent("version", depends_on_version(call, model)):
        return
    yield Finding(call, _message(call, bare, model), _fix(call, given, model) if choice is None else None)


@rule.check(cst.Call, called=IMPORTERS)
def imported(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report an importer of packages."""
    if model.callee(call) in IMPORTERS:
        yield Finding(
            call,
            "A package holds code and pickles: whoever can change the file runs code as you. Import packages from "
            "trusted places only, or save a state dict and load it with `weights_only=True`.",
        )


def _is_own_buffer(source: cst.BaseExpression | None, model: Model) -> bool:
    """Whether a name is bound to empty buffers only, which this file must have filled."""
    bindings = model.bindings(source) if isinstance(source, cst.Name) else []
    made = [b.value for b in bindings if isinstance(b.value, cst.Call) and not b.path]
    return bool(made) and all(
        len(made) == len(bindings) and model.qualified_name(value.func) == "io.BytesIO" and not value.args
        for value in made
    )


def _message(call: cst.Call, bare: bool, model: Model) -> str:
    version = model.target
    old = (
        f" before torch 2.6 (target-torch is {version}: {version.origin})" if bare and version.version < (2, 6) else ""
    )
    what = f"`{model.code(call.func)}` unpickles what it reads{old}: whoever can change the file runs code as you. "
    if version.lacks(FIRST_CHOICE):
        return what + "Pass `weights_only=True`, which needs torch 1.13."
    if bare:
        return what + "Pass `weights_only=True`, and `weights_only=False` only for files that you trust."
    return what + "Save a state dict and pass `weights_only=True`, or say beside the call why the file can be trusted."


def _fix(call: cst.Call, given: Arguments, model: Model) -> Fix | None:
    if "pickle_module" in given.named or given.open_positions or model.target.lacks(FIRST_CHOICE):
        return None
    if may_be_caught(call, model):
        return None  # a file that no longer loads may go unnoticed
    if loads_object(call, model.evaluator) or not loads_tensors(call, model.evaluator):
        return None
    needs = "" if model.target.version >= FIRST_CHOICE else " It needs torch 1.13."
    return Fix(
        "Pass `weights_only=True`",
        (AddKeyword(call, "weights_only", "True"),),
        Safety.UNSAFE,
        f"A file that holds more than tensors and plain containers no longer loads.{needs}",
    )
