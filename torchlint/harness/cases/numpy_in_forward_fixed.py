"""The rows of an activation are sorted on the device."""

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
        order = torch.argsort(x, dim=-1, stable=True)
        return torch.gather(x, 1, order)


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
