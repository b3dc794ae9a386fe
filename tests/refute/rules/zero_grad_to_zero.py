"""Training loops: models with and without branches, optimizers with momentum and decay, readers of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from tests.refute.choices import Choices, Lines, indented, needed, text
from tests.refute.observe import Difference, Kind
from tests.refute.search import Program, Search
from tests.torch.stand_in import VALUES

_OLD = "# runs under torch 1.13, whose zero_grad fills with zeros"
_FORWARDS = (
    ["return self.last(F.relu(self.first(x)))"],
    ["return self.last(self.norm(self.first(x)))"],
    ["return self.last(self.first(x)) + self.first(x).mean()"],
    ["h = self.first(x)", "for layer in self.layers:", "    h = torch.tanh(layer(h))", "return self.last(h)"],
    ["return self.last(F.dropout(self.first(x), 0.5, self.training))"],
    ["return self.last(self.first(x).detach())"],
    ["with torch.no_grad():", "    h = self.first(x)", "return self.last(h)"],
    ["h = self.first(x)", "if self.deep:", "    h = self.layers[0](h)", "return self.last(h)"],
    ["h = self.first(x)", "if self.training:", "    h = self.layers[0](h)", "return self.last(h)"],
    ["h = self.first(x)", "if x.sum() > 0:", "    h = self.layers[0](h)", "return self.last(h)"],
    ["h = self.first(x)", "if torch.rand(()) < 0.5:", "    h = self.layers[0](h)", "return self.last(h)"],
    ["h = self.first(x)", "if DEEP:", "    h = self.layers[0](h)", "return self.last(h)"],
    ["h = self.first(x)", "for layer in self.layers[: len(x)]:", "    h = layer(h)", "return self.last(h)"],
    ["return self.last(self.layers[len(x) % 2](self.first(x)))"],
    ["return self.last(self.first(x)) * self.scale"],
    ["return self.last(self.first(x) * torch.where(x.sum() > 0, self.scale, 0))"],
    ["return (self.first(x) @ self.first.weight).sum(1, keepdim=True)"],
    ["return self.last(torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False))"],
    ["return self.last(self.helper(x))"],
    ["h = self.first(x)", "return self.last(h) if h.mean() > 0 else h.sum(1, keepdim=True)"],
)
_OPTIMIZERS = (
    "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
    "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)",
    "torch.optim.Adam(model.parameters(), lr=0.01)",
    "torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)",
    "torch.optim.RMSprop(model.parameters(), momentum=0.5)",
    "torch.optim.Adagrad(model.parameters())",
    "torch.optim.Adadelta(model.parameters())",
    "torch.optim.Rprop(model.parameters())",
    "torch.optim.NAdam(model.parameters(), foreach=True)",
    "torch.optim.SGD(model.parameters(), 0.1, maximize=True)",
    "optim.Adam(params=model.parameters(), weight_decay=0.1)",
    "optim.SGD([*model.first.parameters()], lr=0.1, momentum=0.9)",
    "optim.Adam([{'params': model.parameters()}])",
    "optim.ASGD(model.parameters())",
)
_LOSSES = (
    "F.mse_loss(model(x), y)",
    "(model(x) - y).pow(2).mean()",
    "criterion(model(x), y)",
    "F.smooth_l1_loss(model(x), y, reduction='sum')",
    "model(x).sum()",
    "model(x).abs().max()",
    "(model(x) * 0).sum()",
    "F.mse_loss(model(x), y) + 0.1 * sum(p.pow(2).sum() for p in model.parameters())",
    "F.mse_loss(model(x), y) if len(x) > 1 else model.first(x).sum()",
    "worked(model, x, y)",
    "chosen(model, x, y)",
)
_BEFORE = (
    "x = x * 2",
    "if len(x) == 0: continue",
    "if x.sum() < 0: continue",
    "y = y.flip(0)",
    "model.train()",
    "seen.append(len(x))",
    "if step == 1: model.eval()",
    "x = x + torch.rand_like(x)",
    "model.deep = step % 2 == 0",
    "DEEP = step == 0",
    "if step == 1: break",
)
_AFTER_BACKWARD = (
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
    "seen.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)))",
    "nn.utils.clip_grad_value_(model.parameters(), 0.1)",
    "print(loss.item())",
    "if step % 2: continue",
    "seen.append([getattr(p, 'grad') is None for p in model.parameters()])",
    "loss = loss.detach()",
    "if torch.isnan(loss): break",
)
_AT_THE_END = (
    "scheduler.step()",
    "seen.append(loss.item())",
    "seen.append([getattr(p, 'grad') is None for p in model.parameters()])",
    "seen.append([getattr(p, 'gr' + 'ad') for p in model.parameters()])",
    "seen.append(copy.copy(model.state_dict()))",
    "seen.append(all_gradients(model))",
    "if step == 0: continue",
    "seen.append(sum(p.sum().item() for p in model.parameters()))",
    "model.last.bias.requires_grad_(False)",
    "seen.append(len(pickle.dumps(model)))",
    "seen.append(copy.deepcopy(model))",
    "with torch.no_grad(): seen.append(model(x))",
    "seen.append([vars(model)['_parameters'], dir(model.first.weight)])",
    "swa.update_parameters(model)",
)
_SETUP = (
    ["DEEP = True"],
    ["def worked(model, x, y):", "    return F.mse_loss(model(x), y)"],
    ["def chosen(model, x, y):", "    return F.mse_loss(model(x), y) if len(x) > 1 else model.first(x).sum()"],
    ["def all_gradients(model):", "    return [getattr(p, 'grad') for p in model.parameters()]"],
)
_MADE = (
    ["criterion = nn.MSELoss()"],
    ["scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)"],
    ["swa = torch.optim.swa_utils.AveragedModel(model)"],
)
_BETWEEN_EPOCHS = (
    "model.last = nn.Linear(2, 1)",
    "model.layers[0] = nn.Linear(2, 2)",
    "model.layers.append(nn.Linear(2, 2))",
    "model.layers.insert(0, nn.Linear(2, 2))",
    "layers = model.layers; layers[0] = nn.Linear(2, 2)",
    "model.get_submodule('layers').pop(0)",
    "model.last, swapped = nn.Linear(2, 1), model.last",
    "model.__class__ = type('Other', (Net,), {'forward': lambda self, x: self.last(x)})",
    "model.layers.pop(1)",
    "model.add_module('first', nn.Linear(2, 2))",
    "model.register_module('first', nn.Linear(2, 2))",
    "model.first.register_parameter('weight', nn.Parameter(torch.ones(2, 2)))",
    "model.first.weight = nn.Parameter(torch.ones(2, 2))",
    "model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, True, True)",
    "nn.utils.parametrizations.weight_norm(model.first)",
    "nn.utils.spectral_norm(model.layers[0])",
    "model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})",
    "model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)",
    "optimizer.load_state_dict(optimizer.state_dict())",
    "model._modules['first'] = nn.Linear(2, 2)",
    "model._parameters.clear()",
    "model.first._parameters['weight'] = nn.Parameter(torch.ones(2, 2))",
    "model.double().float()",
    "model.eval()",
    "optimizer.add_param_group({'params': [nn.Parameter(torch.ones(2))]})",
    "model.first = nn.Identity()",
    "del model.layers[0]",
    "model.layers.extend([nn.Linear(2, 2)])",
    "object.__setattr__(model, 'deep', not model.deep)",
    "vars(model)['deep'] = not model.deep",
    "model.apply(lambda m: m.reset_parameters() if isinstance(m, nn.Linear) else None)",
    "model.forward = lambda x: model.last(x)",
    "Net.forward = lambda self, x: self.last(x)",
    "model.last.forward = lambda x: x.sum(1, keepdim=True)",
    "torch.nn.init.zeros_(model.first.weight)",
    "optimizer.param_groups.clear()",
    "optimizer.state.clear()",
)
_BATCHES = (
    "[(torch.rand(3, 2), torch.rand(3, 1)) for _ in range(4)]",
    "[(torch.randn(2, 2), torch.zeros(2, 1)), (torch.randn(1, 2), torch.ones(1, 1))]",
    "[]",
    "[(torch.zeros(2, 2), torch.zeros(2, 1)) for _ in range(3)]",
    "[(sign * torch.ones(2, 2), torch.ones(2, 1)) for sign in (-1, 1, -1)]",
    "[(torch.rand(0, 2), torch.rand(0, 1)), (torch.rand(2, 2), torch.rand(2, 1))]",
    "[(torch.full((2, 2), float('inf')), torch.rand(2, 1)), (torch.rand(2, 2), torch.rand(2, 1))]",
)


def _model(choices: Choices) -> Lines:
    forward = _FORWARDS[choices.below(5)] if choices.chance() else choices.of(*_FORWARDS)
    parts = [
        "super().__init__()",
        "self.first = nn.Linear(2, 2)",
        "self.norm = nn.LayerNorm(2)",
        "self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])",
        f"self.last = {choices.of('nn.Linear(2, 1)', 'nn.Sequential(nn.ReLU(), nn.Linear(2, 1))')}",
        f"self.deep = {choices.of('True', 'False')}",
    ]
    if "self.scale" in " ".join(forward):
        parts.append("self.scale = nn.Parameter(torch.ones(()))")
    if choices.chance(8):
        parts.append("self.first.weight = self.layers[0].weight")
    helper = ["def helper(self, x):", f"    return {choices.of('self.first(x)', 'self.first(x) if len(x) > 1 else x')}"]
    return [
        "class Net(nn.Module):",
        *indented(["def __init__(self):", *indented(parts), *helper, "def forward(self, x):", *indented(forward)]),
    ]


def _loop(choices: Choices, clear: str) -> Lines:
    loss = choices.of(*_LOSSES[:5]) if choices.chance() else choices.of(*_LOSSES)
    before = choices.some(_BEFORE, 1) if choices.chance(3) else []
    between = choices.some(_AFTER_BACKWARD, 1) if choices.chance(3) else []
    end = choices.some(_AT_THE_END, 1) if choices.chance(3) else []
    backward = ["loss.backward()", *between, "optimizer.step()"]
    where = choices.below(5)
    if where < 2:
        lines = [*before, clear, f"loss = {loss}", *backward, *end]
    elif where == 2:
        lines = [*before, f"loss = {loss}", clear, *backward, *end]
    elif where == 3:
        lines = [*before, f"loss = {loss}", *backward, clear, *end]
    else:
        lines = [clear, *before, "output = model(x)", "loss = F.l1_loss(output, y)", *backward, *end]
    return ["for step, (x, y) in enumerate(batches):", *indented(lines)]


def program(choices: Choices) -> Program:
    """Return a program that trains."""
    old = choices.chance()
    clear = choices.of("optimizer", "optimizer", "model") + ".zero_grad("
    clear += choices.of("", "set_to_none=False", "False") if old else choices.of("set_to_none=False", "False")
    clear += ")"
    loop = _loop(choices, clear)
    head = [_OLD] if old else []
    head += ["import copy, pickle", "import torch", "from torch import nn, optim", "import torch.nn.functional as F"]
    made = ["model = Net()", f"optimizer = {choices.of(*_OPTIMIZERS)}", f"batches = {choices.of(*_BATCHES)}"]
    model, body = _model(choices), _arranged(choices, [*made, *needed(_MADE, loop)], loop)
    return Program(text(head, needed(_SETUP, [*model, *body]), model, body), "1.13" if old else "2.0")


def _arranged(choices: Choices, made: Lines, loop: Lines) -> Lines:
    """Return set-up and loop at the top level, in a function of their own, or in epochs."""
    kind = choices.below(4)
    if kind == 0:
        return [*made, *loop]
    if kind == 1:
        return ["def train(model, optimizer, batches):", *indented(loop), *made, "train(model, optimizer, batches)"]
    if kind == 2:
        between = choices.some(_BETWEEN_EPOCHS, 1)
        return [*made, "for epoch in range(3):", *indented([*loop, *between])]
    epoch = ["train(model, optimizer, batches)", *choices.some(_BETWEEN_EPOCHS, 1)]
    main = ["def main():", *indented([*made, "for epoch in range(3):", *indented(epoch)])]
    main += indented(["return model, optimizer"])
    train = ["def train(model, optimizer, batches):", "    model.train()", *indented(loop)]
    return [*train, *main, "if __name__ == '__main__':", "    model, optimizer = main()"]


@contextmanager
def old_default(program: str) -> Iterator[None]:
    """Let gradients be filled with zeros by default, as before torch 2.0, if the program says that it is that old."""
    with ExitStack() as stack:
        for owner in (torch.optim.Optimizer, torch.nn.Module) if program.startswith(_OLD) else ():
            stack.enter_context(mock.patch.object(owner, "zero_grad", _filling(owner.zero_grad)))
        yield


def _filling(real: Any) -> Any:
    def zero_grad(self: Any, set_to_none: bool = False) -> None:
        real(self, set_to_none)

    return zero_grad


def is_the_fix(difference: Difference) -> bool:
    """Whether only a gradient that nobody in the program reads is None in the end instead of zeros."""
    return difference.kind is Kind.GRADIENT and difference.what.endswith("None instead of zeros")


search = Search("TL301", program, places=(VALUES,), played=old_default, is_the_fix=is_the_fix)
