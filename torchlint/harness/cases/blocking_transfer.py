"""A CNN is trained on pinned batches, and the host waits for each of them to arrive on the device."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL205", "equal": "bitwise", "needs": "pinned-memory"}

# An accelerator gets batches on which it works about as long as Python takes to ask for it: a smaller network leaves it
# idle, whatever the program waits for.
ON_CPU, ON_ACCELERATOR = (16, 64), (4, 1024)


def setup(device):
    number, batch = ON_CPU if torch.device(device).type == "cpu" else ON_ACCELERATOR
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
    batches = [(torch.randn(batch, 3, 64, 64), torch.randint(0, 10, (batch,))) for _ in range(number)]
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
