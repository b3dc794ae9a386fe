"""A generator draws from noise whose tensor is made by a type of a single device."""

from types import SimpleNamespace

import torch
from torch import nn

CASE = {"code": "TL214", "equal": "bitwise", "needs": "cuda"}

BATCH, LATENT = 64, 100


def setup(device):
    generator = nn.Sequential(nn.Linear(LATENT, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh()).to(device)
    return SimpleNamespace(generator=generator)


def step(state):
    with torch.no_grad():
        weights = torch.cuda.FloatTensor([0.25, 0.75])
        noise = torch.cuda.FloatTensor(2, BATCH, LATENT).zero_() + weights[:, None, None]
        return {"images": state.generator(noise)}
