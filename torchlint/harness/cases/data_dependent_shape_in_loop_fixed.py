"""Sentences of several lengths are spread over the words that they have, of which the number is known."""

import torch
from torch import nn

# An accelerator gets sentences on which it works about as long as Python takes to ask for it: a smaller network leaves it
# idle, whatever the program waits for.
ON_CPU, ON_ACCELERATOR = (64, 128, 256), (8, 256, 1024)
WORDS = 8


class Trainer:
    def __init__(self, device):
        steps, sentences, width = ON_CPU if torch.device(device).type == "cpu" else ON_ACCELERATOR
        self.model = nn.Sequential(*(nn.Linear(width, width) for _ in range(8))).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.batches = torch.randn(steps, sentences, width, device=device)
        self.lengths = torch.full((sentences,), WORDS, device=device)

    def train_epoch(self):
        losses = []
        for batch in self.batches:
            words = torch.repeat_interleave(batch, self.lengths, dim=0, output_size=len(batch) * WORDS)
            loss = self.model(words).square().mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)


def setup(device):
    return Trainer(device)


def step(trainer):
    return {"losses": trainer.train_epoch()}
