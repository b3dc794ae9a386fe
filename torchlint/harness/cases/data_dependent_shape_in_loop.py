"""Sentences of several lengths are spread over the words that they have, in every step."""

from types import SimpleNamespace

import torch
from torch import nn

CASE = {"code": "TL212", "equal": "bitwise", "needs": "accelerator"}

STEPS, SENTENCES, WORDS, WIDTH = 64, 128, 8, 256


def setup(device):
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(8))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches = torch.randn(STEPS, SENTENCES, WIDTH, device=device)
    lengths = torch.full((SENTENCES,), WORDS, device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, batches=batches, lengths=lengths)


def step(state):
    losses = []
    for batch in state.batches:
        words = torch.repeat_interleave(batch, state.lengths, dim=0)
        loss = state.model(words).square().mean()
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
