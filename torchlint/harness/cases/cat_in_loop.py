"""The features of a data set are collected, batch after batch, in a tensor that grows."""

import torch
from torch import nn

CASE = {"code": "TL211", "equal": "bitwise"}

BATCHES, BATCH, WIDTH = 128, 64, 256


class Collector:
    def __init__(self, device):
        self.encoder = nn.Sequential(nn.Linear(32, WIDTH), nn.ReLU()).to(device)
        self.batches = torch.randn(BATCHES, BATCH, 32, device=device)

    @torch.no_grad()
    def collect(self):
        features = torch.empty(0, WIDTH, device=self.batches.device)
        for batch in self.batches:
            features = torch.cat([features, self.encoder(batch)])
        return features


def setup(device):
    return Collector(device)


def step(collector):
    return {"features": collector.collect()}
