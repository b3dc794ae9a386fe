"""A sequence of 512 tokens attends to itself; the weights are written out."""

import torch
from torch import nn

CASE = {
    "code": "TL402",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "the sums are taken block by block, so float32 rounds differently",
}

BATCH, LENGTH, HEADS, CHANNELS = 2, 512, 4, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = CHANNELS**-0.5
        self.qkv = nn.Linear(HEADS * CHANNELS, 3 * HEADS * CHANNELS)

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(BATCH, LENGTH, 3, HEADS, CHANNELS).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1)) * self.scale
        weights = weights.softmax(dim=-1)
        out = weights @ v
        return out.transpose(1, 2).reshape(BATCH, LENGTH, HEADS * CHANNELS)


class Program:
    def __init__(self, device):
        self.attention = Attention().to(device).eval()
        self.x = torch.randn(BATCH, LENGTH, HEADS * CHANNELS, device=device)

    @torch.no_grad()
    def encode(self):
        return self.attention(self.x)


def setup(device):
    return Program(device)


def step(program):
    return {"out": program.encode()}
