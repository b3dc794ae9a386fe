"""Sentences of several lengths are spread over the words that they have, of which the number is known."""

import torch
from torch import nn

STEPS, SENTENCES, WORDS, WIDTH = 64, 128, 8, 256


class Trainer:
    def __init__(self, device):
        self.model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(8))).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.batches = torch.randn(STEPS, SENTENCES, WIDTH, device=device)
        self.lengths = torch.full((SENTENCES,), WORDS, device=device)

    def train_epoch(self):
        losses = []
        for batch in self.batches:
            words = torch.repeat_interleave(batch, self.lengths, dim=0, output_size=SENTENCES * WORDS)
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
