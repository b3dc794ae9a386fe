"""A classifier is trained for an epoch of small batches; its loss is read in every step to keep a running total."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL202",
    "equal": "tolerance",
    "tolerance": 1e-5,
    "why": "a total of float32 losses is summed on the device and not in Python's float64",
}

BATCHES, BATCH, WIDTH = 64, 64, 128


def setup(device):
    model = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = [
        (torch.randn(BATCH, WIDTH, device=device), torch.randint(0, 10, (BATCH,), device=device)) for _ in range(BATCHES)
    ]
    return SimpleNamespace(model=model, optimizer=optimizer, batches=batches)


def train_epoch(model, optimizer, batches):
    total = 0.0
    for inputs, targets in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def step(state):
    return {"loss": train_epoch(state.model, state.optimizer, state.batches)}
