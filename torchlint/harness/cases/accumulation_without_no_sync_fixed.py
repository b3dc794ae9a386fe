"""Two processes accumulate the gradients of four batches, and sum them over the processes after the last."""

import multiprocessing
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, WIDTH, DEPTH, PARTS = 16, 256, 8, 4


def join(device, rank, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.manual_seed(rank)
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(PARTS, BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (PARTS, BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def train(state):
    state.optimizer.zero_grad(set_to_none=True)
    losses = []
    for part, (x, y) in enumerate(zip(state.inputs, state.targets, strict=True)):
        with nullcontext() if (part + 1) % PARTS == 0 else state.model.no_sync():
            loss = F.cross_entropy(state.model(x), y) / PARTS
            loss.backward()
        losses.append(loss.detach())
        if (part + 1) % PARTS == 0:
            state.optimizer.step()
    return torch.stack(losses)


def follow(device, meeting, orders):
    """Train a step whenever the first process says so."""
    state = join(device, 1, meeting)
    while orders.recv():
        train(state)
    dist.destroy_process_group()


def setup(device):
    meeting = Path(__file__).with_name("meeting")
    meeting.unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    other = context.Process(target=follow, args=(device, meeting, receiver))
    other.start()
    state = join(device, 0, meeting)
    state.other, state.orders = other, sender
    return state


def step(state):
    state.orders.send(True)
    return {"loss": train(state)}


def close(state):
    state.orders.send(False)
    state.other.join(10)
    dist.destroy_process_group()
