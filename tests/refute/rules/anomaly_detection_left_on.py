"""Anomaly detection as a call, a context among others and an option, around backward passes of every kind."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.observe import Difference
from tests.refute.search import Program, Search
from tests.torch.stand_in import VALUES

_SET = ("autograd.set_detect_anomaly", "torch.autograd.set_detect_anomaly", "set_detect_anomaly")
_CONTEXT = ("torch.autograd.detect_anomaly", "autograd.detect_anomaly", "detect_anomaly")
_ON = ("True", "mode=True", "True, check_nan=True", "True, check_nan=False", "mode=True, check_nan=n > 1")
_BODY = (
    "loss = (weight * 2).sum(); loss.backward()",
    "loss = (weight * weight).exp().mean()",
    "weight.grad = None",
    "optimizer.zero_grad()",
    "optimizer.step()",
    "(weight * n).sum().backward()",
    "torch.autograd.grad((weight * 3).sum(), weight)",
    "made = torch.rand(2)",
    "poem = '''one\n    two\n'''",
    "total = (weight +\n    1)",
    "long = 'a' \\\n  'b'",
    "seen.append(torch.is_grad_enabled())",
    "seen.append(torch.is_anomaly_enabled())",
    "print('in', len(seen))",
    "with torch.no_grad():\n    weight += 1",
    "for k in range(n):\n    seen.append(k)",
    "def inner():\n    return (weight * 5).sum()",
    "seen.append(inner().item())",
    "import math; seen.append(math.pi)",
    "# only a comment",
    "pass",
    "torch.sqrt(weight - weight).sum().backward()",
    "try:\n    (zero / zero * weight).sum().backward()\nexcept RuntimeError:\n    seen.append('nan')",
    "(zero / zero * weight).sum().backward()",
    "try:\n    risky()\nexcept RuntimeError:\n    seen.append('caught')",
    "with suppress(Exception):\n    risky()",
    "try:\n    risky()\nfinally:\n    seen.append('done')",
    "try:\n    risky()\nexcept ValueError:\n    seen.append('other')",
    "torch.autograd.set_detect_anomaly(False)",
    "warnings.warn('mine')",
    "loss = Twice.apply(weight).sum(); loss.backward()",
    "hook = weight.register_hook(lambda g: g * 2)",
    "seen.append((weight * 2).grad_fn.metadata)",
    "y = (weight * 2).sum(); seen.append(sorted(y.grad_fn.metadata))",
)
_OTHERS = ("torch.no_grad()", "torch.enable_grad()", "record() as taken", "suppress(RuntimeError)", "open(os.devnull)")
_SETUP = (
    ["n = 2"],
    ["zero = torch.zeros(2)"],
    ["weight = torch.ones(2, requires_grad=True)"],
    ["optimizer = torch.optim.SGD([weight], lr=0.1)"],
    [
        "class Twice(torch.autograd.Function):",
        *indented(["@staticmethod", "def forward(ctx, x):", "    return x * 2", "@staticmethod"]),
        *indented(["def backward(ctx, g):", "    return g * 2"]),
    ],
    ["def risky():", *indented(["(zero / zero * weight).sum().backward()"])],
    [
        "def record():",
        *indented(["return warnings.catch_warnings(record=True)"]),
    ],
)


def _lines(choices: Choices, most: int) -> Lines:
    """Return statements, several lines each where they need them."""
    return [line for statement in choices.some(_BODY, most) for line in _split(statement)]


def _split(statement: str) -> Lines:
    return [statement] if "'''" in statement or statement.endswith("'b'") else statement.split("\n")


def _switched(choices: Choices) -> Lines:
    call = choices.of(*_SET)
    before, after = _lines(choices, 1), _lines(choices, 3)
    line = choices.of(f"{call}({choices.of(*_ON)})", f"state = {call}({choices.of(*_ON)})", f"{call}(True); n = 3")
    off = [f"{call}(False)"] if choices.chance(4) else []
    return [*before, line, *after, *off]


def _within(choices: Choices) -> Lines:
    context = choices.of(*_CONTEXT) + choices.of("()", "(check_nan=True)", "(check_nan=False)", "(True)")
    if choices.chance(3):
        context = f"{choices.of(*_SET)}({choices.of(*_ON)})"
    items = [context]
    if choices.chance():
        items.insert(choices.below(2), choices.of(*_OTHERS))
    if choices.chance(12):
        items[0] += " as mode"
    body = _lines(choices, 3) or ["pass"]
    if all(line.startswith("#") for line in body):
        body.append("pass")
    header = f"with {', '.join(items)}:"
    if choices.chance(6):
        ending = choices.of("return loss", "yield loss", "return (weight * 3).sum().backward()", "raise StopIteration")
        inner = ["loss = (weight * 2).sum()", *body, ending]
        called = choices.of("got = work()", "got = list(work() or ())", "for got in work(): pass")
        return ["def work():", *indented([header, *indented(inner), "return None"]), called]
    if choices.chance(6):
        inner = [*body, choices.of("break", "continue", "if n > 1: break")]
        return ["for step in range(2):", *indented([header, *indented(inner), "n = 4"]), "else:", "    n = 6"]
    if choices.chance(8):
        return [f"{header} {choices.of('weight.grad = None', 'n = 5', 'pass')}", *_lines(choices, 1)]
    if choices.chance(4):
        return ["for step in range(2):", *indented([header, *indented(body)]), *_lines(choices, 2)]
    return [header, *indented(body), *_lines(choices, 2)]


def program(choices: Choices) -> Program:
    """Return a program that switches the mode on somewhere."""
    head = [
        "import os",
        "import warnings",
        "from contextlib import suppress",
        "import torch",
        "from torch import autograd",
        "from torch.autograd import detect_anomaly, set_detect_anomaly",
    ]
    site = _within(choices) if choices.chance() else _switched(choices)
    site = placed(choices, site)
    again = _within(choices) if choices.chance(4) else []
    return Program(text(head, needed(_SETUP, [*site, *again]), site, again))


def is_the_fix(difference: Difference) -> bool:
    """Whether only the mode itself is another one in the end."""
    return difference.what.startswith("anomaly mode is")


search = Search("TL601", program, places=(VALUES,), is_the_fix=is_the_fix)
