"""A deep narrow network is trained by AdamW, which updates one parameter after the other."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL306",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "kernels over all parameters may round in another order",
    "needs": "accelerator",
}

WIDTH, DEPTH, BATCH = 64, 48, 32


def setup(device):
    blocks = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU()) for _ in range(DEPTH)]
    model = nn.Sequential(*blocks, nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    inputs = torch.randn(BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def step(state):
    logits = state.model(state.inputs)
    loss = F.cross_entropy(logits, state.targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss, "logits": logits}
