"""A small transformer is trained to predict the next byte while a profiler records every operator."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL602", "equal": "bitwise", "profiles": True}

LENGTH, WIDTH, BATCH = 32, 64, 8


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)


class ByteModel(nn.Module):
    def __init__(self, width=WIDTH, depth=3):
        super().__init__()
        self.tokens = nn.Embedding(256, width)
        self.positions = nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width, heads=4) for _ in range(depth)))
        self.head = nn.Linear(width, 256)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.tokens(tokens) + self.positions(positions)))


def setup(device):
    model = ByteModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.randint(0, 256, (BATCH, LENGTH + 1), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, text=text)


def step(state):
    with torch.autograd.profiler.profile():
        logits = state.model(state.text[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), state.text[:, 1:].flatten())
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
    return {"loss": loss, "logits": logits[0, -1]}
