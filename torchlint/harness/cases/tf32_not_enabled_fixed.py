"""A transformer layer is trained with TensorFloat-32."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

torch.set_float32_matmul_precision("high")

BATCH, LENGTH, WIDTH = 16, 256, 1024


def setup(device):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(WIDTH, 16, dropout=0.0, batch_first=True).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(BATCH, LENGTH, WIDTH).to("cuda")
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs)


def step(state):
    loss = F.mse_loss(state.model(state.inputs), state.inputs)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss.detach()}
