"""A deep narrow network is trained, and an average of its parameters is kept by a loop over them."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL312",
    "equal": "tolerance",
    "tolerance": 1e-5,
    "why": "the average is computed in another order",
    "needs": "cuda",
}

WIDTH, DEPTH, BATCH, TAU = 64, 64, 32, 0.01


def network(device):
    blocks = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU()) for _ in range(DEPTH)]
    return nn.Sequential(*blocks, nn.Linear(WIDTH, 10)).to(device)


def setup(device):
    model, target = network(device), network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = [(torch.randn(BATCH, WIDTH).to("cuda"), torch.randn(BATCH, 10).to("cuda"))]
    return SimpleNamespace(model=model, target=target, optimizer=optimizer, batches=batches)


def step(state):
    for x, y in state.batches:
        loss = F.mse_loss(state.model(x), y)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        for p, q in zip(state.model.parameters(), state.target.parameters()):
            q.data.copy_(TAU * p.data + (1 - TAU) * q.data)
    return {"loss": loss.detach(), "average": [q.detach() for q in state.target.parameters()]}
