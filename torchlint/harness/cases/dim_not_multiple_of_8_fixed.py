"""A perceptron with 4096 hidden units is run in bfloat16."""

import torch
from torch import nn

CASE = {
    "code": "TL404",
    "equal": "tolerance",
    "tolerance": 5e-2,
    "why": "other kernels take the sums in another order, in bfloat16",
    "needs": "cuda",
}

ROWS, WIDTH, USED, HIDDEN = 4096, 1024, 4093, 4096


class Perceptron(nn.Module):
    """The hidden units beyond those in use have no weights, so that the result is the same for any number of them."""

    def __init__(self):
        super().__init__()
        up, down = nn.Linear(WIDTH, USED, bias=False), nn.Linear(USED, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)
        with torch.no_grad():
            self.up.weight.zero_()[:USED] = up.weight
            self.down.weight.zero_()[:, :USED] = down.weight

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Program:
    def __init__(self, device):
        self.x = torch.randn(ROWS, WIDTH, device=device, dtype=torch.bfloat16)
        self.model = Perceptron().to(device, torch.bfloat16)

    @torch.no_grad()
    def run(self):
        return self.model(self.x)


def setup(device):
    return Program(device)


def step(program):
    return {"out": program.run()}
