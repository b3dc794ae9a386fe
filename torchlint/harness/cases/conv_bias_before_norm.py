"""A CNN is trained whose convolutions add a bias that the batch normalisation behind them takes away again."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL401",
    "equal": "tolerance",
    "tolerance": 1e-3,
    "why": "the mean is subtracted from other numbers, so float32 rounds differently, and training amplifies it",
    "compared_steps": 4,
}

BATCH, SIZE = 16, 32


def block(inside, outside, stride=1):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride=stride, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


def initialise(model):
    """Draw the weights of each layer from a generator of its own, so that they depend on nothing else."""
    for number, layer in enumerate(model.modules()):
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            generator = torch.Generator().manual_seed(number)
            nn.init.normal_(layer.weight, std=layer.weight[0].numel() ** -0.5, generator=generator)


def setup(device):
    model = nn.Sequential(
        block(3, 32),
        block(32, 32),
        block(32, 64, stride=2),
        block(64, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10, bias=False),
    )
    initialise(model)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(1)
    images = torch.randn(BATCH, 3, SIZE, SIZE, generator=data).to(device)
    labels = torch.randint(0, 10, (BATCH,), generator=data).to(device)
    return SimpleNamespace(model=model, optimizer=optimizer, images=images, labels=labels)


def step(state):
    logits = state.model(state.images)
    loss = F.cross_entropy(logits, state.labels)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss, "logits": logits}
