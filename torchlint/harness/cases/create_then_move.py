"""A denoiser is trained; noise, times and masks are made on the CPU and moved to the device in every step."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL201",
    "equal": "distribution",
    "why": "the device's random generator draws other numbers than the CPU's",
    "needs": "accelerator",
    "compared_steps": 30,
}

SIZE, CHANNELS, BATCH, STEPS = 16, 4, 256, 100


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 32)
        self.enter = nn.Conv2d(CHANNELS, 32, 3, padding=1)
        self.middle = nn.Conv2d(32, 32, 3, padding=1)
        self.leave = nn.Conv2d(32, CHANNELS, 3, padding=1)

    def forward(self, x, time):
        x = F.silu(self.enter(x) + self.time(time)[:, :, None, None])
        return self.leave(F.silu(self.middle(x)))


def setup(device):
    model = Denoiser().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    clean = torch.randn(BATCH, CHANNELS, SIZE, SIZE).to(device)
    return SimpleNamespace(model=model, optimizer=optimizer, clean=clean, device=device)


def step(state):
    device = state.device
    noise = torch.randn(BATCH, CHANNELS, SIZE, SIZE).to(device)
    time = torch.randint(0, STEPS, (BATCH,)).to(device)
    kept = torch.ones(BATCH, 1, 1, 1).to(device)
    share = (time.float() / STEPS)[:, None, None, None]
    noisy = (1 - share) * state.clean + share * noise * kept
    errors = (state.model(noisy, time) - noise).square().mean(dim=(1, 2, 3))
    state.optimizer.zero_grad(set_to_none=True)
    errors.mean().backward()
    state.optimizer.step()
    return {"noise": noise.mean(dim=(1, 2, 3)), "time": time, "error": errors}
