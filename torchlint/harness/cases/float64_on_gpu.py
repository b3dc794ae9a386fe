"""A network is trained with a mixture that NumPy made: 64 bits wide, and so is the loss."""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

CASE = {
    "code": "TL215",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "32-bit floats are rounded sooner",
    "needs": "accelerator numpy",
}

STEPS, BATCH, WIDTH = 8, 1024, 2048


def setup(device):
    model = nn.Linear(WIDTH, WIDTH).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(STEPS, BATCH, WIDTH, device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, device=device)


def step(state):
    mixing = np.eye(WIDTH)
    losses = []
    for x in state.inputs:
        mix = torch.from_numpy(mixing).to(state.device)
        loss = (state.model(x).to(mix.dtype) @ mix).square().mean()
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach().float())
    return {"losses": torch.stack(losses)}
