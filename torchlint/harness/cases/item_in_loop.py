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

# An accelerator gets batches on which it works about as long as Python takes to ask for it: a smaller network leaves it
# idle, whatever the program waits for.
ON_CPU, ON_ACCELERATOR = (64, 64, 128, 256), (16, 2048, 1024, 2048)


class Trainer:
    def __init__(self, device):
        batches, batch, width, hidden = ON_CPU if torch.device(device).type == "cpu" else ON_ACCELERATOR
        self.model = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)
        )
        self.model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(batches, batch, width, device=device)
        self.targets = torch.randint(0, 10, (batches, batch), device=device)

    def train_epoch(self):
        total = 0.0
        for inputs, targets in zip(self.inputs, self.targets):
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.inputs)


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"loss": trainer.train_epoch()}
