"""A classifier is trained for an epoch of small batches; its loss is read in every step to keep a running total."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL202",
    "equal": "tolerance",
    "tolerance": 1e-5,
    "why": "a total of float32 losses is summed on the device and not in Python's float64",
}

BATCHES, BATCH, WIDTH = 64, 64, 128


class Trainer:
    def __init__(self, device):
        self.model = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        self.model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(BATCHES, BATCH, WIDTH, device=device)
        self.targets = torch.randint(0, 10, (BATCHES, BATCH), device=device)

    def train_epoch(self):
        total = 0.0
        for inputs, targets in zip(self.inputs, self.targets):
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / BATCHES


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"loss": trainer.train_epoch()}
