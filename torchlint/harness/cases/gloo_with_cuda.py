"""A multilayer perceptron is trained by one process for each CUDA device, and Gloo sums the gradients on the host."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CASE = {
    "code": "TL707",
    "equal": "tolerance",
    "tolerance": 1e-4,
    "why": "the gradients of the processes are summed in another order",
    "needs": "two-cuda-devices",
}

WIDTH, BATCH = 512, 64


def join(rank, world, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    model = DistributedDataParallel(layers.cuda(rank))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.randn(BATCH, WIDTH, device=f"cuda:{rank}")
    targets = torch.randint(0, 10, (BATCH,), device=f"cuda:{rank}")
    return SimpleNamespace(model=model, optimizer=optimizer, inputs=inputs, targets=targets)


def train(state):
    loss = F.cross_entropy(state.model(state.inputs), state.targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def follow(rank, world, meeting, orders):
    """Train a step whenever the first process says so."""
    state = join(rank, world, meeting)
    while orders.recv():
        train(state)
    dist.destroy_process_group()


def setup(device):
    world = torch.cuda.device_count()
    meeting = Path(__file__).with_name("meeting")
    meeting.unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(world - 1)]
    others = [
        context.Process(target=follow, args=(rank, world, meeting, orders))
        for rank, (orders, _) in enumerate(pipes, start=1)
    ]
    for other in others:
        other.start()
    state = join(0, world, meeting)
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
