"""A CNN is trained on pinned batches, and the host waits for each of them to arrive on the device."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL205", "equal": "bitwise", "needs": "pinned-memory"}

BATCHES, BATCH = 16, 64


def setup(device):
    model = nn.Sequential(
        nn.Conv2d(3, 32, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [(torch.randn(BATCH, 3, 64, 64), torch.randint(0, 10, (BATCH,))) for _ in range(BATCHES)]
    if torch.cuda.is_available():
        batches = [(images.pin_memory(), labels.pin_memory()) for images, labels in batches]
    return SimpleNamespace(model=model, optimizer=optimizer, batches=batches, device=device)


def step(state):
    """Train for one epoch."""
    losses = []
    for images, labels in state.batches:
        images, labels = images.to(state.device), labels.to(state.device)
        loss = F.cross_entropy(state.model(images), labels)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
