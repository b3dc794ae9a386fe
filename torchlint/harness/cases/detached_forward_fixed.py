"""A discriminator is trained on pictures that a generator makes without recording a graph."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIZE, WIDTH = 16, 32, 64


def generator():
    blocks = [nn.Sequential(nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.GELU()) for _ in range(6)]
    return nn.Sequential(nn.Conv2d(3, WIDTH, 3, padding=1), *blocks, nn.Conv2d(WIDTH, 3, 3, padding=1))


def setup(device):
    torch.manual_seed(0)
    real = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), nn.GELU(), nn.Flatten(), nn.LazyLinear(1)).to(device)
    real(torch.zeros(1, 3, SIZE, SIZE, device=device))
    optimizer = torch.optim.SGD(real.parameters(), lr=1e-3)
    batches = [torch.randn(BATCH, 3, SIZE, SIZE, device=device) for _ in range(2)]
    return SimpleNamespace(generator=generator().to(device), discriminator=real, optimizer=optimizer, batches=batches)


def train(generator: nn.Module, discriminator: nn.Module, optimizer, batches):
    losses = []
    for noise in batches:
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            fake = generator(noise)
        loss = F.softplus(discriminator(fake)).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def step(state):
    return {"loss": train(state.generator, state.discriminator, state.optimizer, state.batches)}
