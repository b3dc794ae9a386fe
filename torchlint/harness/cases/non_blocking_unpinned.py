"""A table on the host is copied, with a flag that needs pinned memory, while the device computes."""

from types import SimpleNamespace

import torch

CASE = {"code": "TL218", "equal": "bitwise", "needs": "pinned-memory"}

STEPS, ROWS, WIDTH = 16, 4096, 1024


def setup(device):
    layer = torch.nn.Linear(WIDTH, 16).to(device)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    return SimpleNamespace(layer=layer, optimizer=optimizer, device=device)


def step(state):
    table = torch.linspace(0, 1, ROWS * WIDTH).view(ROWS, WIDTH)
    losses = []
    for _ in range(STEPS):
        x = table.to(state.device, non_blocking=True)
        loss = state.layer(x).square().mean()
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses)}
