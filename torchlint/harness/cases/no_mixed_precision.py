"""A convolutional network is trained in float32; random images stand for photographs."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL304",
    "equal": "tolerance",
    "tolerance": 5e-2,
    "why": "products are rounded to 8 bits of mantissa",
    "needs": "cuda",
}

BATCH, SIZE, WIDTH = 32, 112, 128


def photographs(folder):
    from torchvision.datasets import ImageFolder

    return ImageFolder(folder)


def setup(device):
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, WIDTH, 3, padding=1), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.randn(BATCH, 3, SIZE, SIZE).to("cuda")
    labels = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, images=images, labels=labels)


def step(state):
    loss = F.cross_entropy(state.model(state.images), state.labels)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss.detach()}
