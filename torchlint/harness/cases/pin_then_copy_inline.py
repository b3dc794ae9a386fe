"""Batches are cut out of an array and pinned one after the other."""

from types import SimpleNamespace

import torch
from torch import nn

CASE = {"code": "TL220", "equal": "bitwise", "needs": "pinned-memory"}

STEPS, BATCH, WIDTH = 32, 256, 1024


def setup(device):
    model = nn.Linear(WIDTH, 16).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(STEPS * BATCH, WIDTH, device="cpu")
    return SimpleNamespace(model=model, optimizer=optimizer, data=data, device=device)


def step(state):
    losses = []
    for rows in state.data.split(BATCH):
        x = rows.pin_memory().to(state.device, non_blocking=True)
        loss = state.model(x).square().mean()
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
