"""A multilayer perceptron is trained by one process for each CUDA device (two on the CPU)."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH = 512, 256


def build():
    return nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def join(kind, rank, world, meeting):
    device = f"cuda:{rank}" if kind == "cuda" else kind
    backend = "nccl" if kind == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DistributedDataParallel(build().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))
    mine = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
    inputs, targets = inputs[mine].to(device), targets[mine].to(device)
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets, world=world)


def train(state):
    loss = F.cross_entropy(state.model(state.inputs), state.targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    mean = loss.detach() / state.world
    dist.all_reduce(mean)
    return mean


def follow(kind, rank, world, meeting, orders):
    """Train a step whenever the first process says so."""
    state = join(kind, rank, world, meeting)
    while orders.recv():
        train(state)
    dist.destroy_process_group()


def setup(device):
    kind = torch.device(device).type
    world = torch.cuda.device_count() if kind == "cuda" else 2
    meeting = Path(__file__).with_name("meeting")
    meeting.unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(world - 1)]
    others = [
        context.Process(target=follow, args=(kind, rank, world, meeting, orders))
        for rank, (orders, _) in enumerate(pipes, start=1)
    ]
    for other in others:
        other.start()
    state = join(kind, 0, world, meeting)
    state.others, state.orders = others, [orders for _, orders in pipes]
    return state


def step(state):
    for orders in state.orders:
        orders.send(True)
    return {"loss": train(state)}


def close(state):
    for orders in state.orders:
        orders.send(False)
    for other in state.others:
        other.join(10)
    dist.destroy_process_group()
