"""A multilayer perceptron is trained on small batches; its gradients are zeroed instead of dropped."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL301",
    "equal": "tolerance",
    "tolerance": 1e-6,
    "why": "adding a gradient to zero instead of storing it turns -0.0 into 0.0, and may round once more",
}

WIDTH, DEPTH, BATCH = 256, 8, 16


class Trainer:
    def __init__(self, device):
        layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2, momentum=0.9)
        self.inputs = torch.randn(BATCH, WIDTH, device=device)
        self.targets = torch.randint(0, 10, (BATCH,), device=device)

    def train_step(self):
        self.optimizer.zero_grad(set_to_none=False)
        logits = self.model(self.inputs)
        loss = F.cross_entropy(logits, self.targets)
        loss.backward()
        self.optimizer.step()
        return {"loss": loss, "logits": logits}


def setup(device):
    return Trainer(device)


def step(trainer):
    return trainer.train_step()
