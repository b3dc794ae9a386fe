"""A network is trained with many small losses, whose values are kept for a log."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL217", "equal": "bitwise", "needs": "accelerator"}

BATCHES, BATCH, WIDTH, HEADS = 16, 64, 64, 32


class Trainer:
    def __init__(self, device):
        self.model = nn.Linear(WIDTH, HEADS).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(BATCHES, BATCH, WIDTH, device=device)
        self.targets = torch.randn(BATCHES, BATCH, HEADS, device=device)

    def train_epoch(self):
        log = []
        for inputs, targets in zip(self.inputs, self.targets):
            out = self.model(inputs)
            losses = [F.mse_loss(out[:, head], targets[:, head]) for head in range(HEADS)]
            log.append(torch.tensor([loss.detach() for loss in losses]))
            self.optimizer.zero_grad(set_to_none=True)
            sum(losses).backward()
            self.optimizer.step()
        return torch.stack(log)


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"log": trainer.train_epoch()}
