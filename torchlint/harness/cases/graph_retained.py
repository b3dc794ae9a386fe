"""A network is trained while its loss on held-out batches is summed up with all of its graphs."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL302", "equal": "bitwise", "quantity": "memory"}

BATCHES, BATCH, WIDTH = 24, 64, 256


class Trainer:
    def __init__(self, device):
        self.model = nn.Sequential(
            nn.Linear(WIDTH, 512), nn.Tanh(), nn.Dropout(0.1), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10)
        ).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2)
        self.inputs = torch.randn(BATCHES, BATCH, WIDTH, device=device)
        self.targets = torch.randint(0, 10, (BATCHES, BATCH), device=device)

    def train_epoch(self):
        """Train for one epoch and watch the loss on the batch before."""
        train_total, held_out_total = 0.0, 0.0
        for i in range(BATCHES):
            loss = F.cross_entropy(self.model(self.inputs[i]), self.targets[i])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            held_out = F.cross_entropy(self.model(self.inputs[i - 1]), self.targets[i - 1])
            train_total += loss
            held_out_total += held_out
        return float(train_total) / BATCHES, float(held_out_total) / BATCHES


def setup(device):
    return Trainer(device)


def step(trainer):
    train, held_out = trainer.train_epoch()
    return {"train": train, "held_out": held_out}
