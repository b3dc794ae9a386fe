"""Whether a file trains on CUDA and leaves the precision as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import identifier

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_PRECISION = re.compile(
    r"autocast|tf32|precision|bf16|fp16|bfloat16|float16|(^|_)half|float64|(^|_)double|(^|_)amp(_|$)|GradScaler|apex|"
    r"accelerate|(?-i:Accelerator)|deepspeed|lightning|fabric|quant|gradgrad|create_graph|hvp",
    re.IGNORECASE,
)


def is_first_optimizer(call: cst.Call, model: Model) -> bool:
    """Return whether a call makes the first optimizer of the file."""
    made = (other for other in model.nodes(cst.Call) if model.value(other).kind is Kind.OPTIMIZER)
    return next(made, None) is call


def decides_precision(model: Model) -> bool:
    """Return whether anything in the file speaks of precision, or of a framework that decides about it."""
    names = (node for kind in (cst.Name, cst.Attribute) for node in model.nodes(kind))
    texts = (text.raw_value for text in model.nodes(cst.SimpleString) if len(text.raw_value) < 40)
    return any(_PRECISION.search(identifier(name)) for name in names) or any(map(_PRECISION.search, texts))


def trains_on_cuda(model: Model) -> bool:
    """Return whether the file moves what it computes with to CUDA, as far as it names a kind of device."""
    if model.moves.destination not in (Device.ACCELERATOR, Device.EITHER) or model.vocabulary.mentions_mps:
        return False
    return model.speaks_of("cuda") or any("cuda" in text.raw_value for text in model.nodes(cst.SimpleString))
