"""A deep narrow network is trained, and an average of its parameters is kept in a few launches."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

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
        with torch.no_grad():
            torch._foreach_lerp_(list(state.target.parameters()), list(state.model.parameters()), TAU)
    return {"loss": loss.detach(), "average": [q.detach() for q in state.target.parameters()]}
