"""A training step is certain only if nothing can change which parameters get a gradient."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.semantics.model import Model, Options
from torchlint.semantics.target import UNKNOWN_TARGET
from torchlint.syntax.calls import method_call
from torchlint.syntax.walk import walk

PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self, width=8, skip=False):
        super().__init__()
        self.skip = skip
        self.first = nn.Linear(4, width)
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.last = nn.Linear(width, 2)

    def twice(self, h):
        h = self.body(h)
        return self.body(h)

    def forward(self, x):
        x = x.view(-1, 4)
        h = F.relu(self.first(x))
        h = self.body(h)  # once
        if self.skip:
            h = h + x.sum()
        return self.last(h)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for step, (x, y) in enumerate(loader):
        if args.double:
            x = x.double()
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        output = model(x)
        loss = F.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(epoch, loss.item())


def test(model, loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            model(x)


def main():
    args = parse()
    device = torch.device("cuda")
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, step_size=1)
    for epoch in range(3):
        train(args, model, device, loader, optimizer, epoch)
        test(model, loader)
        scheduler.step()
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
"""
FORWARD = "        h = self.body(h)  # once\n"
COMPUTED = "        output = model(x)\n"
CLEARED = "        optimizer.zero_grad()\n"
PASSED = "        loss.backward()\n"
UPDATED = "        optimizer.step()\n"
MADE = "    model = Net().to(device)\n"
OPTIMIZER = "torch.optim.Adam(model.parameters(), lr=0.1)"


def certainties(text: str) -> list[bool]:
    """Return for each call of ``zero_grad`` whether the training step that it belongs to is certain."""
    model = Model(walk(cst.parse_module(text)), UNKNOWN_TARGET, Options())
    calls = [call for call in model.nodes(cst.Call) if method_call(call, "zero_grad")]
    return [model.training_step(call) is not None for call in calls]


def changed(old: str, new: str) -> str:
    assert PROGRAM.count(old) == 1
    return PROGRAM.replace(old, new)


def test_plain_script_certainties() -> None:
    assert certainties(PROGRAM) == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CLEARED, "        model.zero_grad()\n"),
        (CLEARED + COMPUTED, COMPUTED + CLEARED),
        (PASSED, PASSED + "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
        (COMPUTED, "        with torch.autocast('cuda'):\n            output = model(x)\n"),
        (COMPUTED, "        output = model(x).log_softmax(dim=1)\n"),
        (FORWARD, "        for _ in range(2):\n            h = self.body(h)\n"),
        (FORWARD, "        if h.dim() > 9:\n            raise ValueError(h)\n        h = self.body(h)\n"),
        (FORWARD, "        h = torch.cat([self.body(h), h], dim=1)[:, :8]\n"),
        (FORWARD, "        h = self.twice(h)\n"),
        (OPTIMIZER, "torch.optim.SGD(params=model.parameters(), lr=0.1, momentum=0.9)"),
        ("        if args.double:\n            x = x.double()\n", "        if args.skip(x):\n            continue\n"),
    ],
)
def test_stays_certain(old: str, new: str) -> None:
    assert certainties(changed(old, new)) == [True]


def test_may_end_with_clearing() -> None:
    assert certainties(changed(CLEARED, "").replace(UPDATED, UPDATED + CLEARED)) == [True]


def test_says_nothing_of_clearing_before_the_update() -> None:
    assert certainties(changed(PASSED, PASSED + "        model.zero_grad()\n")) == [True, False]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The model decides
        (FORWARD, "        if x.mean() > 0:\n            h = self.body(h)\n"),
        (FORWARD, "        if self.training:\n            h = self.body(h)\n"),
        (FORWARD, "        h = self.body(h) if torch.rand(1) > 0.5 else h\n"),
        (FORWARD, "        while h.norm() > 1:\n            h = self.body(h)\n"),
        (FORWARD, "        for _ in range(x.size(0)):\n            h = self.body(h)\n"),
        (
            FORWARD,
            "        for _ in (1, 2):\n            if x:\n                break\n            h = self.body(h)\n",
        ),
        (FORWARD, "        h = [self.body, self.first][int(x.sum())](h)\n"),
        (FORWARD, "        h = [self.body(h), h][int(x.sum())]\n"),
        (FORWARD, "        h = min([self.body(h), h])\n"),
        (FORWARD, "        h = self.choose(h)\n"),
        (FORWARD, "        h = outside(h, self.body)\n"),
        (FORWARD, "        h = torch.utils.checkpoint.checkpoint(self.body, h)\n"),
        (FORWARD, "        h = (lambda t: self.body(t) if len(t) else t)(h)\n"),
        (FORWARD, "        try:\n            h = self.body(h)\n        except RuntimeError:\n            pass\n"),
        (FORWARD, "        h = h if x is None else self.body(h)\n"),
        (FORWARD, "        h = x is None or self.body(h)\n"),
        (FORWARD, "        h = torch.stack([self.body(t) for t in h if t.sum() > 0])\n"),
        (FORWARD, "        h = Skip.apply(h)\n"),
        (FORWARD, "        if x.sum() > 0:\n            return h\n        h = self.body(h)\n"),
        (FORWARD, "        with dropped_layers():\n            h = self.body(h)\n"),
        (FORWARD, "        with torch.set_grad_enabled(x.sum() > 0):\n            h = self.body(h)\n"),
        (
            "        self.last = nn.Linear(width, 2)\n",
            "        self.last = nn.AdaptiveLogSoftmaxWithLoss(width, 9, [3])\n",
        ),
        ("nn.Sequential(nn.Linear(width, width), nn.ReLU())", "nn.Sequential(nn.Linear(width, width), Lottery())"),
        ("nn.Sequential(nn.Linear(width, width), nn.ReLU())", "nn.Sequential(*layers)"),
        ("nn.Sequential(nn.Linear(width, width), nn.ReLU())", "make_body(width)"),
        ("class Net(nn.Module):", "class Net(Base):"),
        ("class Net(nn.Module):", "class Net(nn.Module, Mixin):"),
        (MADE, MADE + "    model.skip = True\n"),
        (MADE, MADE + "    model.last = nn.Linear(8, 2)\n"),
        # Gradients are looked at, or parameters come and go
        (PASSED, PASSED + "        print(model.first.weight.grad)\n"),
        (MADE, MADE + "    model.first.requires_grad_(False)\n"),
        (MADE, MADE + "    model.first.weight.requires_grad = False\n"),
        (MADE, MADE + "    model.first.register_full_backward_hook(print)\n"),
        (MADE, MADE + "    watch(model)\n"),
        (MADE, MADE + "    watch([model])\n"),
        (MADE, MADE + "    watch(model.named_parameters())\n"),
        (MADE, MADE + "    watch.watch(model, log='gradients')\n"),
        (UPDATED, UPDATED + "        outside(optimizer)\n"),
        (CLEARED, CLEARED + "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
        # The step has branches or parts
        (CLEARED, "        if step % 2 == 0:\n            optimizer.zero_grad()\n"),
        (PASSED, "        if loss > 0:\n            loss.backward()\n"),
        (PASSED, PASSED + PASSED),
        (PASSED, "        loss.backward(retain_graph=True)\n"),
        (PASSED, "        torch.autograd.backward(loss)\n"),
        (UPDATED, "        if step % 2 == 0:\n            optimizer.step()\n"),
        (UPDATED, UPDATED + UPDATED),
        (COMPUTED, "        output = model(x) if step else x\n"),
        (COMPUTED, "        output = model(x)\n        if step:\n            output = x\n"),
        (COMPUTED, "        for _ in range(step):\n            output = model(x)\n"),
        (COMPUTED, "        if step:\n            model = other\n        output = model(x)\n"),
        (COMPUTED, "        output = outside(x)\n"),
        ("        loss = F.cross_entropy(output, y)\n", "        loss = F.cross_entropy(output[y > 0][step], y)\n"),
        ("        loss = F.cross_entropy(output, y)\n", "        loss = outside.criterion(output, y)\n"),
        # More than one of them
        (MADE, MADE + "    other = Net()\n"),
        (MADE, MADE + "    average = copy.deepcopy(model)\n"),
        (OPTIMIZER, "torch.optim.Adam(model.first.parameters(), lr=0.1)\n    second = " + OPTIMIZER),
        (OPTIMIZER, "torch.optim.LBFGS(model.parameters())"),
        (OPTIMIZER, "torch.optim.Adam(list(model.parameters()) + extra)"),
        (OPTIMIZER, "make_optimizer(model)"),
        (OPTIMIZER, "torch.optim.Adam([{'params': model.first.parameters()}])"),
        ('if __name__ == "__main__":\n    main()\n', ""),
    ],
)
def test_becomes_uncertain(old: str, new: str) -> None:
    clearings = certainties(changed(old, new))
    assert clearings, "there is a call of `zero_grad` to be uncertain about"
    assert not any(clearings)
