"""An attention layer decodes 128 tokens after a prompt of 512; keys and values are written into a static cache."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL419", "equal": "bitwise"}

BATCH, HEADS, PROMPT, TOKENS, CHANNELS = 4, 8, 512, 128, 64


class Attention(nn.Module):
    def forward(self, q, k, v, cache, position):
        cache[0, :, :, position : position + 1] = k
        cache[1, :, :, position : position + 1] = v
        keys, values = cache[:, :, :, : position + 1]
        return F.scaled_dot_product_attention(q, keys, values)


class Program:
    def __init__(self, device):
        self.attention = Attention()
        self.prompt = torch.randn(2, BATCH, HEADS, PROMPT, CHANNELS, device=device)
        self.tokens = torch.randn(TOKENS, BATCH, HEADS, 1, CHANNELS, device=device)

    @torch.no_grad()
    def decode(self):
        cache, total = self.prompt.new_empty(2, BATCH, HEADS, PROMPT + TOKENS, CHANNELS), 0
        cache[:, :, :, :PROMPT] = self.prompt
        for position, token in enumerate(self.tokens, PROMPT):
            total = total + self.attention(token, token, token, cache, position)
        return total


def setup(device):
    return Program(device)


def step(program):
    return {"out": program.decode()}
