"""A CNN is trained on batches from pinned memory."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CASE = {"code": "TL102", "equal": "bitwise", "needs": "pinned-memory two-cores", "compared_steps": 2}

IMAGES, BATCH = 2048, 64


def setup(device):
    model = nn.Sequential(
        nn.Conv2d(3, 32, 7, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dataset = TensorDataset(torch.randn(IMAGES, 3, 96, 96), torch.randint(0, 10, (IMAGES,)))
    pinned = torch.cuda.is_available()
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=8, persistent_workers=True, pin_memory=pinned)
    return SimpleNamespace(model=model, optimizer=optimizer, loader=loader, device=device)


def step(state):
    """Train for one epoch."""
    losses = []
    for images, labels in state.loader:
        images = images.to(state.device, non_blocking=True)
        labels = labels.to(state.device, non_blocking=True)
        loss = F.cross_entropy(state.model(images), labels)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
