"""Photographs that NumPy has decoded become tensors, of which the mean colour is computed."""

from types import SimpleNamespace

import numpy as np
import torch

CASE = {"code": "TL208", "equal": "bitwise", "needs": "numpy"}

PHOTOGRAPHS, SIZE = 8, 256


def setup(device):
    generator = np.random.default_rng(0)
    raw = generator.integers(0, 256, (PHOTOGRAPHS, SIZE, SIZE, 3), dtype=np.uint8)
    return SimpleNamespace(raw=raw, device=device)


def mean_colour(raw):
    scaled = (raw / np.float32(255)).astype(np.float32)
    pixels = torch.tensor(scaled)
    return pixels.mean(dim=(0, 1))


def step(state):
    return {"colours": torch.stack([mean_colour(raw) for raw in state.raw])}
