"""A text classifier is trained; in each forward pass Python asks the device whether anything needs to be masked."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

CASE = {"code": "TL204", "equal": "bitwise", "needs": "accelerator"}

# An accelerator gets sentences on which it works about as long as Python takes to ask for it: a smaller network leaves it
# idle, whatever the program waits for.
ON_CPU, ON_ACCELERATOR = (16, 64, 64), (128, 256, 256)
LAYERS = 8


class Mixer(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.tokens = nn.Linear(length, length)
        self.channels = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, padding: torch.Tensor):
        if padding.any():
            x = x.masked_fill(padding[..., None], 0.0)
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + F.relu(self.channels(x))


class Classifier(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(Mixer(width, length) for _ in range(LAYERS))
        self.head = nn.Linear(width, 2)

    def forward(self, words):
        padding = words == 0
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, padding)
        return self.head(x.mean(dim=1))


def setup(device):
    batch, length, width = ON_CPU if torch.device(device).type == "cpu" else ON_ACCELERATOR
    model = Classifier(width, length).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    words = torch.randint(1, 1000, (batch, length), device=device)
    words[:, length // 2 :] = 0
    labels = torch.randint(0, 2, (batch,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, words=words, labels=labels)


def step(state):
    logits = state.model(state.words)
    loss = F.cross_entropy(logits, state.labels)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return {"loss": loss, "logits": logits}
