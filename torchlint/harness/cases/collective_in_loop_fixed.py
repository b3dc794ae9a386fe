"""Two processes train, and sum the losses of all batches over the processes at once."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, WIDTH, DEPTH, STEPS = 16, 64, 4, 8


def join(device, rank, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.manual_seed(rank)
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(STEPS, BATCH, WIDTH, device=device)
    targets = torch.randint(0, 10, (STEPS, BATCH,), device=device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def train(state):
    total = torch.zeros((), device=state.inputs.device)
    for x, y in zip(state.inputs, state.targets, strict=True):
        loss = F.cross_entropy(state.model(x), y)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        state.optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total


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
