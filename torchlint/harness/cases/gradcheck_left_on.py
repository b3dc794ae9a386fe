"""A network with a layer of its own is trained for a while, after the layer's gradient has been checked once more."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL603", "equal": "bitwise"}

STEPS, BATCH, WIDTH = 20, 32, 64


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        gate = torch.sigmoid(x)
        context.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(context, gradient):
        x, gate = context.saved_tensors
        return gradient * (gate + x * gate * (1 - gate))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, 10)

    def forward(self, x):
        return self.second(Swish.apply(self.first(x)))


def setup(device):
    model = Network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (BATCH,), device=device)
    probe = torch.randn(8, 8, dtype=torch.float64, device=device, requires_grad=True)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets, probe=probe)


def step(state):
    """Train as one run of the script does."""
    torch.autograd.gradcheck(Swish.apply, (state.probe,))
    for _ in range(STEPS):
        loss = F.cross_entropy(state.model(state.inputs), state.targets)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
    return {"loss": loss}
