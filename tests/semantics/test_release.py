"""A released model lets the tree go without the garbage collector."""

from __future__ import annotations

import gc
import weakref

from torchlint.registry import rules
from torchlint.semantics.model import Options, build_model
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.source import source_from_text
from torchlint.syntax.parse import Parsed, parse

TEXT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x))


def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def alive_after_a_run(*, release: bool) -> bool:
    """Return whether the scopes of a model outlive it; the collector is off, so that only a cycle can keep them."""
    parsed = parse(source_from_text(TEXT))
    assert isinstance(parsed, Parsed)
    gc.collect()
    gc.disable()
    try:
        model = build_model(parsed.module, UNKNOWN_TARGET, Options())
        for rule in rules():
            for node_type, checks in rule.checks.items():
                for node in model.nodes(node_type):
                    for check in checks:
                        list(check(node, model))
        scopes = weakref.ref(model.scopes)
        if release:
            model.release()
        del model
        return scopes() is not None
    finally:
        gc.enable()


def test_a_released_model_is_freed_at_once() -> None:
    assert alive_after_a_run(release=False)
    assert not alive_after_a_run(release=True)
