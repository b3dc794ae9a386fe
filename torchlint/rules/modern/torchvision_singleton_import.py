"""A module of torchvision is imported under its own name by `as`.

`import torchvision.models as models`, and the same for the other modules of torchvision.

## Why it costs

Nothing at run time. The line says the name twice, and `from torchvision import models` says the same once.

## What to write instead

`from torchvision import models`. The fix is safe: both bind the same module to the same name. It is unsafe where a
module that is missing is waited for, since the two raise different errors then, and in a file that changes
`sys.modules`.

## When to ignore it

Where the import style is settled elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import ReplaceStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.references.version_guards import depends_on_version

PACKAGE = "torchvision"
MODULES = ("datasets", "io", "models", "ops", "transforms", "utils")

rule = Rule(
    code="TL809",
    name="torchvision-singleton-import",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`import torchvision.models as models`",
    triggers=Triggers.all_of(PACKAGE, MODULES),
    examples=(
        Example(
            bad="import torchvision.models as models\n\nnet = models.resnet18()\n",
            good="from torchvision import models\n\nnet = models.resnet18()\n",
        ),
    ),
    references=("https://docs.pytorch.org/vision/stable/models.html",),
    documentation=__doc__,
    silences={
        "other-name": "The module gets another name.",
        "other-package": "It is another package, or no module that stands right in torchvision.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    in_tests=True,
)


@rule.check(cst.Import)
def singleton(statement: cst.Import, model: Model) -> Iterator[Finding]:
    """Report each module that is imported under its own name."""
    found = [alias for alias in statement.names if _module(alias)]
    for alias in found:
        module = _module(alias)
        if rule.silent("other-name", alias.evaluated_alias != module):
            continue
        yield Finding(
            alias,
            f"`import {PACKAGE}.{module} as {alias.evaluated_alias}` says one name twice. "
            f"Write `from {PACKAGE} import {module}`.",
            _fix(statement, model),
        )


def _module(alias: cst.ImportAlias) -> str:
    """Return which module of the package an import gives a name to, empty for none."""
    package, _, module = alias.evaluated_name.partition(".")
    return module if package == PACKAGE and module in MODULES and alias.asname is not None else ""


def _fix(statement: cst.Import, model: Model) -> Fix:
    moved = [alias for alias in statement.names if _module(alias) == alias.evaluated_alias]
    others = [alias for alias in statement.names if all(alias is not other for other in moved)]
    shown = (f"{a.evaluated_name} as {a.evaluated_alias}" if a.asname else a.evaluated_name for a in others)
    first = (f"import {', '.join(shown)}",) if others else ()
    lines = (*first, f"from {PACKAGE} import {', '.join(_module(alias) for alias in moved)}")
    why = ""
    if depends_on_version(statement, model):
        why = "Where the module is missing, another error is raised."
    elif _changes_modules(model):
        why = "The file looks at `sys.modules`, from which only the old form takes the module."
    return Fix(
        f"Import from `{PACKAGE}`",
        (ReplaceStatement(statement, lines),),
        Safety.UNSAFE if why else Safety.SAFE,
        why,
    )


def _changes_modules(model: Model) -> bool:
    if not (model.speaks_of("modules") or model.names_any_of("modules")):
        return False
    nodes: list[cst.Attribute | cst.Name] = [*model.nodes(cst.Attribute), *model.nodes(cst.Name)]
    return any(model.qualified_name(node) == "sys.modules" for node in nodes)
