"""A worker is started for a dataset of many small records, which are handed to it as two tensors."""

import json
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, Dataset

ITEMS, TAKEN = 200_000, 1_000


class Records(Dataset):
    """Pairs of numbers."""

    def __init__(self, path):
        with open(path) as file:
            records = json.load(file)
        self.first = torch.tensor([record["first"] for record in records], dtype=torch.float64)
        self.second = torch.tensor([record["second"] for record in records])

    def __len__(self):
        return len(self.first)

    def __getitem__(self, index):
        return self.first[index].item(), self.second[index].item()


def setup(device):
    path = Path(__file__).with_name("records.json")
    path.write_text(json.dumps([{"first": i / 3, "second": i % 7} for i in range(ITEMS)]))
    data = Records(path)
    loader = DataLoader(
        data, batch_size=TAKEN, sampler=range(TAKEN), num_workers=1, multiprocessing_context="spawn"
    )
    return SimpleNamespace(loader=loader, device=device)


def step(state):
    """Take the batches of a short epoch."""
    totals = [first.sum() + second.sum() for first, second in state.loader]
    return {"totals": torch.stack(totals).to(torch.float32).to(state.device)}
