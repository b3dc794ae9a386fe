"""A CNN is evaluated on a validation set while autograd keeps every activation for a backward that never comes."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL501", "equal": "bitwise", "quantity": "memory"}

BATCHES, BATCH, SIZE = 4, 32, 32


class Evaluator:
    def __init__(self, device):
        layers = []
        inside = 3
        for outside in (32, 32, 64, 64):
            layers += [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
            inside = outside
        self.model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(device)
        self.images = torch.randn(BATCHES, BATCH, 3, SIZE, SIZE, device=device)
        self.labels = torch.randint(0, 10, (BATCHES, BATCH), device=device)

    def evaluate(self):
        self.model.eval()
        losses, hits = [], []
        for images, labels in zip(self.images, self.labels):
            logits = self.model(images)
            losses.append(F.cross_entropy(logits, labels))
            hits.append((logits.argmax(dim=1) == labels).float().mean())
        return torch.stack(losses).mean(), torch.stack(hits).mean()


def setup(device):
    return Evaluator(device)


def step(evaluator):
    loss, accuracy = evaluator.evaluate()
    return {"loss": loss.detach(), "accuracy": accuracy}
