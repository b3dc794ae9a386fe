"""A classifier is trained; its predictions stay on the device until the epoch is over."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL203", "equal": "bitwise", "needs": "accelerator"}

BATCHES, BATCH, WIDTH = 64, 64, 128


class Trainer:
    def __init__(self, device):
        self.model = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        self.model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(BATCHES, BATCH, WIDTH, device=device)
        self.targets = torch.randint(0, 10, (BATCHES, BATCH), device=device)

    def train_epoch(self):
        predictions = []
        for inputs, targets in zip(self.inputs, self.targets):
            logits = self.model(inputs)
            loss = F.cross_entropy(logits, targets)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            predictions.append(logits.argmax(dim=1))
        return torch.cat(predictions).cpu()


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"predictions": trainer.train_epoch()}
