"""A small convolutional network is trained on compressed images that the loop reads itself."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL109", "equal": "bitwise", "needs": "two-cores numpy"}

FILES, BATCH, SIDE = 16, 4, 512


def setup(device):
    folder = Path(__file__).parent
    rng = np.random.default_rng(0)
    paths = [folder / f"image{i}.npz" for i in range(FILES)]
    for path in paths:
        np.savez_compressed(path, image=rng.integers(0, 64, (SIDE, SIDE), dtype=np.uint8))
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 8, stride=4), nn.ReLU(), nn.Conv2d(8, 8, 8, stride=4), nn.Flatten(), nn.LazyLinear(10)
    ).to(device)
    model(torch.zeros(1, 1, SIDE, SIDE, device=device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    return SimpleNamespace(model=model, optimizer=optimizer, paths=paths, device=device)


def train(state, images):
    targets = torch.zeros(BATCH, dtype=torch.long, device=state.device)
    loss = F.cross_entropy(state.model(images.to(state.device)), targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def step(state):
    """Train for an epoch."""
    losses = []
    for first in range(0, FILES, BATCH):
        images = [np.load(path)["image"] for path in state.paths[first : first + BATCH]]
        losses.append(train(state, torch.from_numpy(np.stack(images))[:, None] / 255))
    return {"losses": torch.stack(losses)}
