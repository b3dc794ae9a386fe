"""Votes of many small models are added up in tables that NumPy makes."""

from types import SimpleNamespace

import numpy as np
import torch

CASE = {"code": "TL209", "equal": "bitwise", "needs": "numpy"}

MODELS, ROWS, CLASSES = 64, 512, 128


def setup(device):
    votes = torch.randint(0, CLASSES, (MODELS, ROWS), device="cpu")
    return SimpleNamespace(votes=votes, device=device)


def count(votes):
    table = torch.from_numpy(np.zeros((ROWS, CLASSES)).astype(np.float32))
    return table.scatter_(1, votes[:, None], 1.0)


def step(state):
    return {"tables": torch.stack([count(votes) for votes in state.votes])}
