"""The rows of an activation are sorted by NumPy in a forward pass, on the host."""

import numpy as np
import torch
from torch import nn

CASE = {"code": "TL415", "equal": "bitwise", "needs": "accelerator numpy"}

ROWS, WIDTH, LAYERS = 256, 256, 8


class Sorting(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = torch.tanh(self.linear(x))
        order = np.argsort(x.cpu().numpy(), axis=-1, kind="stable")
        return torch.gather(x, 1, torch.from_numpy(order).to(x.device))


class Program:
    def __init__(self, device):
        self.model = nn.Sequential(*(Sorting() for _ in range(LAYERS))).to(device).eval()
        self.x = torch.randn(ROWS, WIDTH, device=device)

    @torch.no_grad()
    def run(self):
        return self.model(self.x)


def setup(device):
    return Program(device)


def step(program):
    return {"sorted": program.run()}
