"""A compiled function only computes; it is compiled and run."""

import torch

CASE = {"code": "TL416", "equal": "bitwise"}

SIZE = 64


def compute(x):
    x = torch.sin(x) + 1
    x = torch.cos(x) + 1
    x = torch.tanh(x) + 1
    return torch.exp(x) + 1


class Program:
    def __init__(self, device):
        self.x = torch.randn(SIZE, SIZE, device=device)

    @torch.no_grad()
    def run(self):
        torch.compiler.reset()
        return torch.compile(compute, backend="eager")(self.x)


def setup(device):
    return Program(device)


def step(program):
    return {"out": program.run()}
