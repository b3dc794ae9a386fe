"""A compiled model that counts its calls is called twelve times, from the first on."""

import torch
from torch import nn

CASE = {"code": "TL417", "equal": "bitwise"}

CALLS, WIDTH = 12, 32


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layers(x)


class Program:
    def __init__(self, device):
        self.model = Counting().to(device)
        self.x = torch.randn(8, WIDTH, device=device)

    @torch.no_grad()
    def run(self):
        torch.compiler.reset()
        self.model.calls = 0
        compiled = torch.compile(self.model, backend="eager")
        return sum(compiled(self.x) for _ in range(CALLS))


def setup(device):
    return Program(device)


def step(program):
    return {"out": program.run()}
