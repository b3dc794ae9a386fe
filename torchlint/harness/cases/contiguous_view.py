"""Queries, keys and values come out of one layer and are split into heads."""

import torch
from torch import nn

CASE = {"code": "TL213", "equal": "bitwise"}

BATCH, LENGTH, WIDTH, HEADS = 8, 512, 512, 8


class Heads(nn.Module):
    def forward(self, qkv: torch.Tensor):
        b, t, _ = qkv.shape
        q, k, v = qkv.chunk(3, dim=2)
        q = q.contiguous().view(b, t, HEADS, -1)
        k = k.contiguous().view(b, t, HEADS, -1)
        return q * 0.125, k * 0.125, v


def setup(device):
    return Heads(), torch.randn(BATCH, LENGTH, 3 * WIDTH, device=device)


def step(state):
    heads, qkv = state
    return {"heads": heads(qkv)}
