"""The features of a data set are collected, batch after batch, in a tensor that grows."""

import torch
from torch import nn

CASE = {"code": "TL211", "equal": "bitwise"}

# An accelerator copies so fast that only a set of features as large as real ones are shows it.
BATCHES, ON_CPU, ON_ACCELERATOR = 128, (64, 256), (512, 1024)


class Collector:
    def __init__(self, device):
        batch, self.width = ON_CPU if torch.device(device).type == "cpu" else ON_ACCELERATOR
        self.encoder = nn.Sequential(nn.Linear(32, self.width), nn.ReLU()).to(device)
        self.batches = torch.randn(BATCHES, batch, 32, device=device)

    @torch.no_grad()
    def collect(self):
        features = torch.empty(0, self.width, device=self.batches.device)
        for batch in self.batches:
            features = torch.cat([features, self.encoder(batch)])
        return features


def setup(device):
    return Collector(device)


def step(collector):
    return {"features": collector.collect()}
