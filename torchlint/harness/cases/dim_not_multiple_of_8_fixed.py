"""A perceptron with 4096 hidden units, 4093 of them in use, is trained in bfloat16."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {
    "code": "TL404",
    "equal": "tolerance",
    "tolerance": 5e-2,
    "why": "other kernels take the sums in another order, in bfloat16",
    "needs": "cuda",
}

ROWS, WIDTH, USED = 4096, 1024, 4093


def setup(device):
    torch.manual_seed(0)
    weights = torch.randn(2, USED, WIDTH) * 0.02
    inputs = torch.randn(ROWS, WIDTH).to("cuda")
    up, down = nn.Linear(1024, 4096, bias=False), nn.Linear(4096, 1024, bias=False)
    with torch.no_grad():  # hidden units beyond those in use stay zero: the result is that of any number of them
        up.weight.zero_()[:USED] = weights[0]
        down.weight.zero_()[:, :USED] = weights[1].t()
    model = nn.Sequential(up, nn.ReLU(), down).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs)


def step(state):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.mse_loss(state.model(state.inputs), state.inputs)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss.detach()}
