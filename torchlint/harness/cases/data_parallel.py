"""A multilayer perceptron is trained on all CUDA devices by one process that copies the model in every step."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL701",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "gradients are averaged over processes instead of summed over replicas, in another order",
    "needs": "two-cuda-devices",
}

WIDTH, BATCH = 512, 256


def build():
    return nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def setup(device):
    torch.manual_seed(0)
    model = nn.DataParallel(build().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(BATCH, WIDTH)
    targets = torch.randint(0, 10, (BATCH,))
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs.to(device), targets=targets.to(device))


def step(state):
    loss = F.cross_entropy(state.model(state.inputs), state.targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss.detach()}
