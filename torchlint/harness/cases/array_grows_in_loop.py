"""Features of a data set are collected on the host, batch after batch, in an array that grows."""

import numpy as np
import torch
from torch import nn

CASE = {"code": "TL221", "equal": "bitwise", "needs": "numpy"}

BATCHES, BATCH, WIDTH = 128, 64, 256


class Collector:
    def __init__(self, device):
        self.encoder = nn.Sequential(nn.Linear(32, WIDTH), nn.ReLU()).to(device)
        self.batches = torch.randn(BATCHES, BATCH, 32, device=device)

    @torch.no_grad()
    def collect(self):
        features = np.zeros((0, WIDTH), dtype=np.float32)
        for batch in self.batches:
            features = np.concatenate([features, self.encoder(batch).cpu().numpy()])
        return features


def setup(device):
    return Collector(device)


def step(collector):
    return {"features": torch.from_numpy(collector.collect())}
