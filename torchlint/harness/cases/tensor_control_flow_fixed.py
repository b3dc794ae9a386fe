"""A text classifier is trained; it masks in each forward pass, whether there is anything to mask or not."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL204", "equal": "bitwise", "needs": "accelerator"}

BATCH, LENGTH, WIDTH, LAYERS = 16, 64, 64, 8


class Mixer(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.tokens = nn.Linear(length, length)
        self.channels = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, padding: torch.Tensor):
        x = x.masked_fill(padding[..., None], 0.0)
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + F.relu(self.channels(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, WIDTH)
        self.layers = nn.ModuleList(Mixer(WIDTH, LENGTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, words):
        padding = words == 0
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, padding)
        return self.head(x.mean(dim=1))


def setup(device):
    model = Classifier().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    words = torch.randint(1, 1000, (BATCH, LENGTH), device=device)
    words[:, LENGTH // 2 :] = 0
    labels = torch.randint(0, 2, (BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, words=words, labels=labels)


def step(state):
    logits = state.model(state.words)
    loss = F.cross_entropy(logits, state.labels)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss, "logits": logits}
