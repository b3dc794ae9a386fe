"""A small convolutional network is trained on compressed images that a worker reads ahead of time."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

FILES, BATCH, SIDE = 16, 4, 512


class Images(Dataset):
    """Images of files."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.paths[index])["image"])


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
    loader = DataLoader(Images(paths), batch_size=BATCH, num_workers=1, persistent_workers=True)
    return SimpleNamespace(model=model, optimizer=optimizer, loader=loader, device=device)


def train(state, images):
    targets = torch.zeros(BATCH, dtype=torch.long, device=state.device)
    loss = F.cross_entropy(state.model(images.to(state.device)), targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def step(state):
    """Train for an epoch."""
    return {"losses": torch.stack([train(state, images[:, None] / 255) for images in state.loader])}
