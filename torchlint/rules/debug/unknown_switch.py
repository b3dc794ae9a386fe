"""A switch of torch is set that does not exist, so that nothing is switched.

A misspelt attribute (`torch.backends.cudnn.benckmark = True`), an attribute of another module
(`torch.backends.cuda.allow_tf32 = True`), a value assigned in place of a function that was to be called
(`torch.manual_seed = 42`), and a misspelt environment variable (`os.environ["CUDA_VISIBLE_DEVICE"] = "0"`).

## Why it costs

Python adds any attribute to a module without a word, and no library looks for variables that it does not know. cuDNN
goes on without its benchmark, matrix products without TF32, the generators without a seed, and nothing shows that.
Where a value takes the place of a function, the next call of it raises `TypeError`. `torch.backends.cuda.matmul` is
stricter: it raises `AttributeError` as soon as the line is reached.

## What to write instead

The switch as torch spells it, where torch keeps it:

```python
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.manual_seed(42)
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
```

The fix writes it where only one can be meant. It is unsafe, because what the line says begins to happen.

## When to ignore it

Where a build of torch of your own has that switch. The rule knows those of torch 2.13 and reports only names that are
like one of them; one that differs in its numbers only, or that the file reads back, is left alone.

Read in `torch/backends/` of torch 2.13, and each form tried with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import Edit, Replace, ReplaceStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.process.unknown_switches import Meant, meant
from torchlint.semantics.tables.switches import CALLED
from torchlint.semantics.tables.torch_api import SETTERS
from torchlint.syntax.calls import is_none, literal

if TYPE_CHECKING:
    from torchlint.semantics.process.switches import Setting

FUNCTIONS = tuple(sorted(name.rpartition(".")[2] for name in CALLED))
OWNERS = ("backends", "cudnn", "matmul", "mkldnn", "environ", "putenv", "allow_tf32", "benchmark", "deterministic")
WHY = "What the line says begins to happen."

rule = Rule(
    code="TL609",
    name="unknown-switch",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a switch of torch is set that does not exist: misspelt, or in the wrong place",
    triggers=Triggers.all_of("torch", (*OWNERS, *FUNCTIONS)),
    examples=(
        Example(
            bad="import torch\n\ntorch.backends.cudnn.benckmark = True\n",
            good="import torch\n\ntorch.backends.cudnn.benchmark = True\n",
        ),
        Example(
            bad="import torch\n\ntorch.backends.cuda.allow_tf32 = True\n",
            good="import torch\n\ntorch.backends.cuda.matmul.allow_tf32 = True\n",
        ),
        Example(
            bad="import torch\n\ntorch.manual_seed = 42\n",
            good="import torch\n\ntorch.manual_seed(42)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/backends.html",
        "https://docs.pytorch.org/docs/stable/cuda_environment_variables.html",
    ),
    documentation=__doc__,
    silences={
        "known": "Torch has the switch.",
        "unlike": "The name is like no switch, or differs from one in its numbers only: another version may have it.",
        "read": "The file reads the attribute or the variable back: it is one of its own.",
        "replaced": "Something that can be called is put in place of the function: a stand-in.",
        "other-object": "It is an attribute of something else.",
    },
    fixes=(Safety.UNSAFE,),
    in_tests=True,
    about_speed=False,
)


@rule.check(cst.Assign, cst.Call, called=SETTERS)
def check(node: cst.Assign | cst.Call, model: Model) -> Iterator[Finding]:
    """Report a setting of a switch that is none."""
    for setting in model.switches.settings(node):
        found = meant(setting.name)
        if found is None or setting.keyword:
            continue
        if rule.silent("read", not found.is_called and model.switches.read(setting)):
            continue
        is_value = literal(setting.value) is not None and not is_none(setting.value)
        if rule.silent("replaced", found.is_called and not is_value):
            continue
        yield Finding(node, _message(setting, found, model), _fix(setting, found, model))


def _message(setting: Setting, found: Meant, model: Model) -> str:
    value = model.code(setting.value)
    shown = [_spelled(name, setting, model) or name for name in found.names]
    if found.is_called:
        return (
            f"`{shown[0]}` is a function: the line puts {value} in its place and sets nothing. "
            f"Call `{shown[0]}({value})`."
        )
    names = " or ".join(f"`{name}`" for name in shown)
    if setting.name.endswith("]"):
        return f"Nothing reads `{_last(setting.name)}`: the line sets nothing. Write {names}."
    place = setting.place
    wrong = f"`{model.code(place) if isinstance(place, cst.Attribute) else setting.name}`"
    if found.raises:
        return f"{wrong} does not exist, and the line raises `AttributeError`. Write {names}."
    return f"Torch has no switch {wrong}: the line adds an attribute that nobody reads. Write {names}."


def _last(name: str) -> str:
    """Return the attribute of a qualified name; of a variable what stands between the brackets."""
    return name.rpartition("[")[2].rstrip("]") if name.endswith("]") else name.rpartition(".")[2]


def _spelled(name: str, setting: Setting, model: Model) -> str | None:
    """Return how the file can write a switch, with the names that the line uses where these will do."""
    if name.endswith("]"):
        return _last(name)
    owner = setting.name.rpartition(".")[0]
    if isinstance(setting.place, cst.Attribute) and name.startswith(f"{owner}."):
        return model.code(setting.place.value) + name[len(owner) :]
    return model.spelling(name, setting.statement)


def _fix(setting: Setting, found: Meant, model: Model) -> Fix | None:
    name = _spelled(found.names[0], setting, model) if len(found.names) == 1 else None
    edit = None if name is None else _edit(setting, found, name, model)
    return None if edit is None else Fix(f"Write `{name}`", (edit,), Safety.UNSAFE, WHY)


def _edit(setting: Setting, found: Meant, name: str, model: Model) -> Edit | None:
    place, right = setting.place, found.names[0]
    if found.is_called:
        if not isinstance(setting.statement, cst.Assign) or not setting.alone:
            return None
        return ReplaceStatement(setting.statement, (f"{name}({model.code(setting.value)})",))
    if isinstance(place, cst.SimpleString):
        is_same_object = setting.name.endswith("]") or setting.name.rpartition(".")[0] == right.rpartition(".")[0]
        return Replace(place, f"{place.quote}{_last(right)}{place.quote}") if is_same_object else None
    return Replace(place, name) if isinstance(place, cst.Attribute) else None
