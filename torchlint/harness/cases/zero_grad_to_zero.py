"""A multilayer perceptron is trained on small batches; its gradients are zeroed instead of dropped."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL301",
    "equal": "tolerance",
    "tolerance": 1e-6,
    "why": "adding a gradient to zero instead of storing it turns -0.0 into 0.0, and may round once more",
}

WIDTH, DEPTH, BATCH = 256, 8, 16


def setup(device):
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    inputs = torch.randn(BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def step(state):
    state.optimizer.zero_grad(set_to_none=False)
    logits = state.model(state.inputs)
    loss = F.cross_entropy(logits, state.targets)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss, "logits": logits}
