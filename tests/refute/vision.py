"""The torchvision that is installed, which need not have its compiled operators."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType

import torch

_OPERATORS = ("nms", "qnms")
"""What torchvision registers stand-ins for when it is imported, whether it has them or not."""


@cache
def load_torchvision() -> ModuleType:
    """Return torchvision, imported even where its operators cannot be loaded.

    Its wheels are built for CUDA: beside a torch for the CPU they have models, transforms and data sets, which are
    Python, and no operators. Two of them are declared then, without which the import ends in an error.
    """
    played = [name for name in sys.modules if name.partition(".")[0] == "torchvision"]
    for name in played:  # by a program that ran before
        del sys.modules[name]
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        _declared()
        return importlib.import_module("torchvision")


@cache
def _declared() -> torch.library.Library:
    """Return the library of the operators, which are there as long as it is."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library
