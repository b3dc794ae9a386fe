"""A program runs a small network that splits and joins its inputs, without gradients."""

from types import SimpleNamespace

import torch
from torch import nn

CASE = {"code": "TL502", "equal": "bitwise"}

HEADS, SIZE, LENGTH, DEPTH = 4, 8, 8, 24


class Mixing(nn.Module):
    """Mixes the parts of a sequence with views and small operations only."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(HEADS, 1, SIZE))

    def forward(self, x):
        heads = x.view(LENGTH, HEADS, SIZE).transpose(0, 1)
        first, second = heads[:, ::2], heads[:, 1::2]
        mixed = torch.stack((first + second, first - second), dim=2).flatten(1, 2)
        return (mixed * self.scale).transpose(0, 1).reshape(LENGTH, HEADS * SIZE)


def setup(device):
    model = nn.Sequential(*(Mixing() for _ in range(DEPTH))).to(device)
    model.eval()
    return SimpleNamespace(model=model, inputs=torch.randn(LENGTH, HEADS * SIZE, device=device))


def run(model: nn.Module, inputs):
    with torch.no_grad():
        return model(inputs)


def step(state):
    return {"outputs": run(state.model, state.inputs).clone()}


if __name__ == "__main__":
    print(step(setup("cpu")))
