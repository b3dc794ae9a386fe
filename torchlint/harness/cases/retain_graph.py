"""A deep network is trained, and each backward pass keeps the graph of a loss that nobody needs again."""

import torch
from torch import nn

CASE = {"code": "TL308", "equal": "bitwise", "quantity": "memory"}

STEPS, DEPTH, WIDTH, BATCH = 3, 12, 128, 4096


class Trainer:
    def __init__(self, device):
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(DEPTH)]
        self.model = nn.Sequential(*layers).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.inputs = torch.randn(BATCH, WIDTH, device=device)

    def train(self):
        """Take a few steps."""
        total = 0.0
        for _ in range(STEPS):
            inputs = self.inputs.detach()
            loss = self.model(inputs).square().mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward(retain_graph=True)
            self.optimizer.step()
            total += loss.detach()
        return total


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"loss": trainer.train()}
