"""A graph network passes messages along edges with deterministic algorithms only."""

import os
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL604",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "an algorithm that is free in its order adds the messages of a node in another order",
}

NODES, EDGES, WIDTH = 2000, 20000, 64

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
torch.use_deterministic_algorithms(True)


class Messages(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, source, target):
        gathered = torch.zeros_like(x).index_add(0, target, x[source])
        return F.relu(self.linear(x + gathered))


def setup(device):
    layers = nn.ModuleList([Messages(WIDTH), Messages(WIDTH)]).to(device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
    nodes = torch.randn(NODES, WIDTH, device=device)
    source, target = torch.randint(0, NODES, (2, EDGES), device=device)
    return SimpleNamespace(layers=layers, optimizer=optimizer, nodes=nodes, source=source, target=target)


def step(state):
    x = state.nodes
    for layer in state.layers:
        x = layer(x, state.source, state.target)
    loss = x.square().mean()
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss}
