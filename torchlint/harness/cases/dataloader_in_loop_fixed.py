"""A small network is trained for three short epochs, which share one loader and its workers."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEMS, WIDTH, BATCH, EPOCHS = 256, 128, 32, 3


class Waves(Dataset):
    """Items that are computed from their index when they are asked for."""

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        return torch.linspace(0, index, WIDTH).sin(), index % 10


def setup(device):
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return SimpleNamespace(model=model, optimizer=optimizer, data=Waves(), device=device)


def train_batch(state, waves, labels):
    """Take one step and return the loss."""
    loss = F.cross_entropy(state.model(waves.to(state.device)), labels.to(state.device))
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def step(state):
    """Train for a few epochs."""
    losses = []
    loader = DataLoader(state.data, batch_size=BATCH, num_workers=2, persistent_workers=True)
    for _ in range(EPOCHS):
        for waves, labels in loader:
            losses.append(train_batch(state, waves, labels))
    return {"losses": torch.stack(losses)}
