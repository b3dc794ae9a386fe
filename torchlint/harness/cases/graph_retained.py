"""A network is trained while its loss on held-out batches is summed up with all of its graphs."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL302", "equal": "bitwise", "quantity": "memory"}

BATCHES, BATCH, WIDTH = 24, 64, 256


def setup(device):
    model = nn.Sequential(
        nn.Linear(WIDTH, 512), nn.Tanh(), nn.Dropout(0.1), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(BATCHES, BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (BATCHES, BATCH), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def step(state):
    """Train for one epoch and watch the loss on the batch before."""
    train_total, held_out_total = 0.0, 0.0
    for i in range(BATCHES):
        loss = F.cross_entropy(state.model(state.inputs[i]), state.targets[i])
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        held_out = F.cross_entropy(state.model(state.inputs[i - 1]), state.targets[i - 1])
        train_total += loss
        held_out_total += held_out
    return {"train": float(train_total) / BATCHES, "held_out": float(held_out_total) / BATCHES}
