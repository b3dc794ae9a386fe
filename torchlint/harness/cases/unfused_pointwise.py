"""A multilayer perceptron with a GELU that is written out is trained."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL405",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "one kernel rounds once where eight of them round each result",
}

ROWS, WIDTH = 256, 512


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def setup(device):
    model = nn.Sequential(nn.Linear(64, WIDTH * 4), NewGELU(), nn.Linear(WIDTH * 4, 8)).to(device)
    return SimpleNamespace(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-3),
        x=torch.randn(ROWS, 64, device=device),
        y=torch.randn(ROWS, 8, device=device),
    )


def step(program):
    loss = F.mse_loss(program.model(program.x), program.y)
    program.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    program.optimizer.step()
    return {"loss": loss.detach()}
