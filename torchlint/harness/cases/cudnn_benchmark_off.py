"""A CNN is trained on images of one size while cuDNN may not try which algorithm is fastest."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL605",
    "equal": "tolerance",
    "tolerance": 1e-2,
    "why": "another convolution algorithm adds in another order (and in TF32 where that is allowed)",
    "needs": "cudnn",
}

BATCH, SIZE = 32, 64

torch.backends.cudnn.benchmark = False


def setup(device):
    layers = []
    inside = 3
    for outside, stride in ((32, 1), (64, 2), (128, 2), (128, 1)):
        layers += [nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
        inside = outside
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.randn(BATCH, 3, SIZE, SIZE, device=device)
    labels = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, images=images, labels=labels)


def step(state):
    loss = F.cross_entropy(state.model(state.images), state.labels)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss}
