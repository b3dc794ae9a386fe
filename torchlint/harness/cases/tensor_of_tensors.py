"""Frames of a replay memory become batches by way of a list of arrays."""

import numpy as np
import torch

CASE = {"code": "TL420", "equal": "bitwise", "needs": "numpy"}

BATCH, SIZE = 16, 84


class Memory:
    def __init__(self, device):
        generator = np.random.default_rng(0)
        self.device = device
        self.frames = generator.random((64, SIZE, SIZE), dtype=np.float32)
        self.order = generator.integers(0, 64, BATCH)

    def batch(self):
        return torch.tensor([np.array(self.frames[i], dtype=np.float32) for i in self.order], device=self.device)


def setup(device):
    return Memory(device)


def step(memory):
    return {"frames": memory.batch()}
