"""A small network is trained while Python waits for the end of every kernel that it launches."""

import os
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL606", "equal": "bitwise", "needs": "cuda"}

BATCH, WIDTH, DEPTH = 64, 256, 8

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"


def setup(device):
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def step(state):
    loss = F.cross_entropy(state.model(state.inputs), state.targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss}
