"""Small files are read one by one from a mounted Google Drive."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, Dataset

CASE = {"code": "TL107", "equal": "bitwise", "needs": "google-drive"}

FILES, SIZE = 64, 4096


class Files(Dataset):
    """The contents of the files of a folder."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.bin"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


def setup(device):
    folder = "/content/drive/MyDrive/torchlint_bench"
    Path(folder).mkdir(exist_ok=True)
    for index in range(FILES):
        Path(folder, f"{index}.bin").write_bytes(bytes([index]) * SIZE)
    loader = DataLoader(Files("/content/drive/MyDrive/torchlint_bench"), batch_size=16, num_workers=2, persistent_workers=True)
    return SimpleNamespace(loader=loader, folder=folder, device=device)


def step(state):
    """Go through an epoch."""
    return {"totals": torch.stack([batch.to(state.device).sum() for batch in state.loader])}


def close(state):
    shutil.rmtree(state.folder)
