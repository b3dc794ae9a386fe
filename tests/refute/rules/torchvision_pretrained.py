"""Builders of models of torchvision with every way to say `pretrained`; what would be downloaded is noted instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search
from tests.refute.vision import load_torchvision
from tests.torch.stand_in import VALUES
from torchlint.semantics.tables.vision import PRETRAINED

_SMALL = ("squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf")
"""Models that are built on the CPU, with all their values; the others have none."""

_LARGE = sorted(name for name in set().union(*PRETRAINED.values()) if not name.startswith("regnet"))
"""Those that can be built without values: regnets compute their sizes with tensors."""

_FAMILIES = {
    "detection": "fasterrcnn fcos keypointrcnn maskrcnn retinanet ssd",
    "segmentation": "deeplab fcn_ lraspp",
    "optical_flow": "raft",
    "video": "mvit r3d mc3 r2plus1d s3d swin3d",
}
_FLAGS = ("True", "False", "flag", "None", "1", "0", "not flag", "bool(flag)")
_PLAIN_ARGUMENTS = (
    "{flag}",
    "{flag}, True",
    "{flag}, shown",
    "{flag}, noted(False)",
    "pretrained={flag}",
    "pretrained={flag}, progress=False",
    "progress=noted(True), pretrained={flag}",
    "pretrained={flag}, num_classes=3",
    "num_classes=noted(3), pretrained={flag}",
    "pretrained={flag}, progress=noted(False), num_classes=noted(4)",
    "{flag}, noted(False), num_classes=noted(4)",
)
_ARGUMENTS = (
    "",
    "pretrained={flag}, weights=None",
    "pretrained={flag}, **options",
    "*given, progress=False",
    "**{{'pretrained': {flag}}}",
    "{flag}, **{{'progress': False}}",
    "pretrained={flag}, pretrained_backbone={other}",
    "pretrained_backbone={flag}",
    "pretrained_backbone={flag}, num_classes=5",
    "pretrained_backbone={other}, pretrained={flag}, progress=noted(False)",
    "weights={flag}",
    "weights='DEFAULT'",
    "pretrained={flag}, weights_backbone=None",
    "(pretrained := {flag})",
    "pretrained=({flag}), ",
    "pretrained=(\n    {flag}  # as before\n)",
    "{flag},  # as before\n    progress=False,\n",
)
_SPELLINGS = ("torchvision.models.{path}", "models.{path}", "{name}", "vision.{path}", "getattr(models, '{name}')")
_SHAPES = (
    "net = {call}",
    "net = {call}",
    "net = {call}; n = 3",
    "net = [{call} for _ in range(n)]",
    "net = (lambda: {call})()",
    "net = {call} if flag else {call}",
    "net = {call}.eval()",
    "net = nn.Sequential({call}, nn.Flatten())",
    "seen.append(f'{{type({call}).__name__}}')",
    "net = functools.partial({maker}, pretrained=True)()",
    "net = build({maker}, {flag})",
    (
        "class Holder(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = {call}\n"
        "net = Holder()"
    ),
    "@noted\ndef build_one(net={call}): return net\nnet = build_one()",
    "try:\n    net = {call}\nexcept TypeError:\n    net = {maker}(weights=None)",
    "net = {call} \\\n    .train()",
)
_SETUP = (
    ["n = 2"],
    ["flag = True"],
    ["shown = False"],
    ["given = (True,)"],
    ["options = {'progress': False}"],
    ["def noted(value):", *indented(["print(value)", "return value"])],
    ["def build(maker, pretrained):", *indented(["return maker(pretrained=pretrained)"])],
)
_AFTER = (
    "x = torch.rand(2)",
    "seen.append(sum(p.numel() for p in net.parameters()))",
    "seen.append(type(net).__name__)",
    "seen.append(getattr(net, 'transform_input', None))",
    "seen.append(getattr(net, 'aux_logits', None))",
    "net.requires_grad_(False)",
    "seen.append([type(m).__name__ for m in net.children()])",
)


def program(choices: Choices) -> Program:
    """Return a program that builds models."""
    is_small = choices.chance(3)
    name = choices.of(*_SMALL) if is_small else choices.of(*_LARGE)
    family = next((family for family, starts in _FAMILIES.items() if name.startswith(tuple(starts.split()))), "")
    path = f"{family}.{name}" if family else name
    spelling = choices.of(*_SPELLINGS[:3]) if choices.chance() else choices.of(*_SPELLINGS)
    if family and spelling.startswith("getattr"):
        spelling = _SPELLINGS[0]
    maker = spelling.format(path=path, name=name)
    flag, other = (choices.of(*_FLAGS) if choices.chance(6) else choices.of("True", "False") for _ in range(2))
    arguments = choices.of(*_ARGUMENTS) if choices.chance(3) else choices.of(*_PLAIN_ARGUMENTS)
    arguments = arguments.format(flag=flag, other=other)
    shape = choices.of(*_SHAPES[:3]) if choices.chance() else choices.of(*_SHAPES)
    lines = shape.format(call=f"{maker}({arguments})", maker=maker, flag=flag).split("\n")
    head = ["import functools", "import torch, torchvision", "import torchvision as vision"]
    head += ["from torch import nn", "from torchvision import models"]
    if spelling == "{name}":
        head.append(f"from torchvision.models{f'.{family}' if family else ''} import {name}")
    if not is_small:
        head.append("torch.set_default_device('meta')")
    site: Lines = placed(choices, [*lines, *choices.some(_AFTER, 2)])
    return Program(text(head, needed(_SETUP, site), site), None if choices.chance(10) else choices.of("2.0", "1.12"))


@contextmanager
def noted_downloads(program: str) -> Iterator[None]:
    """Print which weights a program would load, in place of downloading them."""
    weights = load_torchvision().models.WeightsEnum
    real = torch.nn.Module.load_state_dict

    def get(self: Any, *given: Any, **named: Any) -> dict[str, str]:
        print("loads", self.url, given, sorted(named.items()))
        return {"noted": self.url}

    def load(self: torch.nn.Module, state: Any, *given: Any, **named: Any) -> Any:
        return None if "noted" in state else real(self, state, *given, **named)

    with (
        mock.patch.object(weights, "get_state_dict", get),
        mock.patch.object(torch.nn.Module, "load_state_dict", load),
    ):
        yield


search = Search("TL807", program, places=(VALUES,), played=noted_downloads, needs="torchvision")
