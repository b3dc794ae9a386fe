"""Workers make matrices, each of them with a thread for each core of the machine."""

import os
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, Dataset

CASE = {
    "code": "TL106",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "products are summed in another order by several threads",
    "needs": "two-cores",
}

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


def take_all_cores(worker):
    """Give a worker a thread for each core."""
    torch.set_num_threads(os.cpu_count())


def setup(device):
    data = Products()
    workers = max(2, os.cpu_count() // 2)
    loader = DataLoader(
        data, batch_size=BATCH, num_workers=workers, persistent_workers=True, worker_init_fn=take_all_cores
    )
    return SimpleNamespace(loader=loader, device=device)


def step(state):
    """Go through an epoch."""
    return {"totals": torch.stack([batch.to(state.device).sum() for batch in state.loader])}
