"""Workers make matrices, each of them with one thread."""

import os
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, Dataset

ITEMS, BATCH, SIDE = 64, 16, 128


class Products(Dataset):
    """Matrices, each of which takes a few products to make."""

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        matrix = torch.full((SIDE, SIDE), index / ITEMS).sin() / SIDE
        for _ in range(8):
            matrix = (matrix @ matrix).tanh()
        return matrix


def setup(device):
    data = Products()
    workers = max(2, os.cpu_count() // 2)
    loader = DataLoader(data, batch_size=BATCH, num_workers=workers, persistent_workers=True)
    return SimpleNamespace(loader=loader, device=device)


def step(state):
    """Go through an epoch."""
    return {"totals": torch.stack([batch.to(state.device).sum() for batch in state.loader])}
