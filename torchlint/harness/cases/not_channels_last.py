"""A convolutional network is trained under autocast, with tensors in the default memory format."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL403",
    "equal": "tolerance",
    "tolerance": 1e-1,
    "why": "other kernels take the sums in another order, in bfloat16",
    "needs": "cuda",
    "compared_steps": 1,
}

BATCH, SIZE = 64, 56


def block(inside, outside, stride=1):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)
    )


def setup(device):
    model = nn.Sequential(
        block(64, 128), block(128, 128), block(128, 256, 2), block(256, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    ).to(device)
    return SimpleNamespace(
        model=model.append(nn.Linear(256, 10).to(device)),
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
        x=torch.randn(BATCH, 64, SIZE, SIZE, device=device),
        y=torch.randint(0, 10, (BATCH,), device=device),
    )


def step(program):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(program.model(program.x), program.y)
    program.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    program.optimizer.step()
    return {"loss": loss.detach()}
