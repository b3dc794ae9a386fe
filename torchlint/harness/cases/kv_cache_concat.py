"""An attention layer decodes 128 tokens after a prompt of 512; keys and values are concatenated."""

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL419", "equal": "bitwise"}

BATCH, HEADS, PROMPT, TOKENS, CHANNELS = 4, 8, 512, 128, 64


class Attention(nn.Module):
    def forward(self, q, k, v, past):
        past_key, past_value = past
        k = torch.cat([past_key, k], dim=-2)
        v = torch.cat([past_value, v], dim=-2)
        return F.scaled_dot_product_attention(q, k, v), (k, v)


class Program:
    def __init__(self, device):
        self.attention = Attention()
        self.prompt = torch.randn(2, BATCH, HEADS, PROMPT, CHANNELS, device=device)
        self.tokens = torch.randn(TOKENS, BATCH, HEADS, 1, CHANNELS, device=device)

    @torch.no_grad()
    def decode(self):
        past, total = (self.prompt[0], self.prompt[1]), 0
        for token in self.tokens:
            out, past = self.attention(token, token, token, past)
            total = total + out
        return total


def setup(device):
    return Program(device)


def step(program):
    return {"out": program.decode()}
