"""A CNN is evaluated on a validation set while autograd keeps every activation for a backward that never comes."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL501", "equal": "bitwise", "quantity": "memory"}

BATCHES, BATCH, SIZE = 4, 32, 32


def setup(device):
    layers = []
    inside = 3
    for outside in (32, 32, 64, 64):
        layers += [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
        inside = outside
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(device)
    images = torch.randn(BATCHES, BATCH, 3, SIZE, SIZE, device=device)
    labels = torch.randint(0, 10, (BATCHES, BATCH), device=device)
    return SimpleNamespace(model=model, images=images, labels=labels)


def evaluate(model, images, labels):
    model.eval()
    losses, hits = [], []
    for batch, truth in zip(images, labels):
        logits = model(batch)
        losses.append(F.cross_entropy(logits, truth))
        hits.append((logits.argmax(dim=1) == truth).float().mean())
    return torch.stack(losses).mean(), torch.stack(hits).mean()


def step(state):
    loss, accuracy = evaluate(state.model, state.images, state.labels)
    return {"loss": loss.detach(), "accuracy": accuracy}
