"""A small network is trained while every operation that waits for the GPU is reported."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL608", "equal": "bitwise", "needs": "cuda"}

BATCH, WIDTH, DEPTH = 64, 256, 8

torch.cuda.set_sync_debug_mode("warn")


def setup(device):
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets, total=0.0)


def step(state):
    loss = F.cross_entropy(state.model(state.inputs), state.targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    state.total += loss.item()
    return {"loss": loss.detach()}
