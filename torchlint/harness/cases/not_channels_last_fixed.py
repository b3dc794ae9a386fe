"""A convolutional network is trained under autocast, with tensors whose channels lie last."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL403",
    "equal": "tolerance",
    "tolerance": 5e-2,
    "why": "other kernels take the sums in another order, in bfloat16",
    "needs": "cuda",
    "compared_steps": 1,
}

BATCH, SIZE = 64, 56


def setup(device):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(64, 128, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(128, 128, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(128, 256, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 10),
    ).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.randn(BATCH, 64, SIZE, SIZE).to("cuda", memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, images=images, labels=labels)


def step(state):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(state.model(state.images), state.labels)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss.detach()}
