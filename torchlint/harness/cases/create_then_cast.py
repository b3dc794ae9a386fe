"""Causal masks for a batch of sentences of several lengths."""

from types import SimpleNamespace

import torch

CASE = {"code": "TL219", "equal": "bitwise"}

LENGTHS = (256, 384, 512, 640, 768, 896, 1024)


def setup(device):
    return SimpleNamespace(device=device)


def mask(length, device):
    return torch.ones(length, length, device=device).bool()


def step(state):
    return {"masks": [mask(length, state.device) for length in LENGTHS]}
