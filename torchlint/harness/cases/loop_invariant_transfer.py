"""A classifier is trained with weights for its classes that lie on the host."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL210", "equal": "bitwise", "needs": "accelerator"}

# An accelerator gets batches on which it works about as long as Python takes to ask for it: a smaller network leaves it
# idle, whatever the program waits for.
ON_CPU, ON_ACCELERATOR = (64, 64, 128, 256), (16, 2048, 1024, 2048)
CLASSES = 10


class Trainer:
    def __init__(self, device):
        self.device = device
        batches, batch, width, hidden = ON_CPU if torch.device(device).type == "cpu" else ON_ACCELERATOR
        self.model = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES)
        ).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(batches, batch, width, device=device)
        self.targets = torch.randint(0, CLASSES, (batches, batch), device=device)

    def train_epoch(self, device):
        weights = torch.linspace(0.5, 1.5, CLASSES)
        losses = []
        for inputs, targets in zip(self.inputs, self.targets):
            loss = F.cross_entropy(self.model(inputs), targets, weight=weights.to(device))
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"losses": trainer.train_epoch(trainer.device)}
