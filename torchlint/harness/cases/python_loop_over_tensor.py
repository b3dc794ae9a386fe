"""The rows of a batch of sounds are compressed one after the other."""

import torch
from torch import nn

CASE = {"code": "TL216", "equal": "bitwise"}

SOUNDS, SAMPLES = 256, 64


class Compress(nn.Module):
    def forward(self, x: torch.Tensor):
        y = torch.empty_like(x)
        for i in range(x.shape[0]):
            y[i] = torch.tanh(x[i] * 2) * 0.5
        return y


def setup(device):
    return Compress(), torch.randn(SOUNDS, SAMPLES, device=device)


def step(state):
    compress, sounds = state
    return {"sounds": compress(sounds)}
