"""A small multilayer perceptron is trained on random data; there is nothing to fix."""

from types import SimpleNamespace

import torch
from torch import nn

CASE = {"code": "A/A", "equal": "bitwise"}


def setup(device):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.randn(64, 256, device=device)
    targets = torch.randint(0, 10, (64,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def step(state):
    state.optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss}
