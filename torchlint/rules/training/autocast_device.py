"""`autocast` is given a device where it takes the type of one.

`torch.autocast("cuda:0")`, `torch.autocast(f"cuda:{rank}")`, and `torch.autocast(device)` where `device` is a
`torch.device`.

## Why it costs

The call raises. `autocast` covers all devices of a type and takes the name of that type: a `torch.device` is refused by
every version, a string with an index by those before torch 2.4, so that a program that runs here stops on another
machine: `RuntimeError: User specified an unsupported autocast device_type 'cuda:0'`.

## What to write instead

`torch.autocast("cuda")`, or `torch.autocast(device.type)` for a `torch.device`. The fix writes that. It is unsafe only
in that code that catches the error goes another way.

## When to ignore it

With an index, where no torch before 2.4 is used: state it (`torch>=2.4` in the project's metadata, or
`target-torch = "2.4"`), and the rule is silent about strings.

`torch.autocast` exists since torch 1.10. Read in the sources of torch 1.13 and 2.3 (which compare the string), 2.4 and
2.13 (which parse it), and tried with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model

TAKES_INDEX = (2, 4)
WHY = "Code that catches the error of the call goes another way."

rule = Rule(
    code="TL310",
    name="autocast-device",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`autocast` is given a device instead of the type of one",
    triggers=Triggers.all_of("autocast"),
    examples=(
        Example(
            bad='import torch\n\nwith torch.autocast("cuda:0"):\n    pass\n',
            good='import torch\n\nwith torch.autocast("cuda"):\n    pass\n',
        ),
        Example(
            bad='import torch\n\ndevice = torch.device("cuda")\nwith torch.autocast(device):\n    pass\n',
            good='import torch\n\ndevice = torch.device("cuda")\nwith torch.autocast(device.type):\n    pass\n',
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/amp.html#torch.autocast",),
    documentation=__doc__,
    silences={
        "type": "A string without an index, or the `type` of a device.",
        "newer-target": "A string with an index, where torch is at least 2.4.",
        "unknown": "Nothing shows that the variable holds a `torch.device`: it may be a string.",
        "survives": "A `try` catches the error and goes on.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report an autocast context that is given a device."""
    found = model.precision.autocast(call)
    place = found.place if found is not None else None
    if place is None:
        return
    device_type = _before_index(place)
    if device_type is not None:
        if rule.silent("newer-target", model.target.version >= TAKES_INDEX):
            return
        reason = f"raises before torch 2.4 (target-torch is {model.target}: {model.target.origin})"
    elif _is_device(place, model):
        device_type, reason = f"{model.code(place)}.type", "raises for a `torch.device`"
    else:
        return
    survives = any(model.choices.survives_error(call, error) for error in ("RuntimeError", "ValueError"))
    if rule.silent("survives", survives) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        place,
        f"`{model.code(call.func)}` {reason}: it takes the type of a device and covers all devices of that type. "
        f"Write `{device_type}`.",
        None
        if isinstance(place, cst.FormattedString)  # what it formats may be there for this alone
        else Fix(f"Pass `{device_type}`", (Replace(place, device_type),), Safety.UNSAFE, WHY),
    )


def _before_index(place: cst.BaseExpression) -> str | None:
    """Return the code of the type in a string with an index: ``"cuda"`` for ``"cuda:0"`` and ``f"cuda:{rank}"``."""
    if isinstance(place, cst.SimpleString) and not place.prefix:
        text = place.raw_value
    elif isinstance(place, cst.FormattedString) and isinstance(place.parts[0], cst.FormattedStringText):
        text = place.parts[0].value
    else:
        return None
    name, colon, _ = text.partition(":")
    return f'"{name}"' if colon and name.isalpha() else None


def _is_device(place: cst.BaseExpression, model: Model) -> bool:
    """Whether an expression is certainly a ``torch.device``: made by it, or the ``device`` of a tensor."""
    if isinstance(place, cst.Call):
        return model.callee(place) == "torch.device"
    if isinstance(place, cst.IfExp):
        return _is_device(place.body, model) and _is_device(place.orelse, model)
    if isinstance(place, cst.Attribute):
        owner = model.value(place.value)
        return place.attr.value == "device" and owner.is_tensor and owner.evidence >= Evidence.INFERRED
    if not isinstance(place, cst.Name):
        return False
    values = [b.value if b.kind is BindingKind.ASSIGNMENT and not b.path else None for b in model.reaching(place)]
    return bool(values) and all(v is not None and not isinstance(v, cst.Name) and _is_device(v, model) for v in values)
