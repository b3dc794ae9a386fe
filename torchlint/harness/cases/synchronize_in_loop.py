"""A small CNN is trained on images that lie on the GPU, which must be done with each step before Python goes on."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL206", "equal": "bitwise", "needs": "cuda"}

# An accelerator gets batches on which it works about as long as Python takes to ask for it: a smaller network leaves it
# idle, whatever the program waits for.
BATCHES, BATCH = 8, 8192


def setup(device):
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(BATCHES, BATCH, 3, 32, 32, device=device)
    labels = torch.randint(0, 10, (BATCHES, BATCH), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, images=images, labels=labels)


def step(state):
    """Train for one epoch."""
    losses = []
    for images, labels in zip(state.images, state.labels):
        loss = F.cross_entropy(state.model(images), labels)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        torch.cuda.synchronize()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
