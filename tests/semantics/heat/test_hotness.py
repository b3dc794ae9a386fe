"""What runs on every step, in every spelling of guards."""

from __future__ import annotations

import pytest

from tests.semantics.support import calls, model_of
from torchlint.semantics.heat.hotness import NO_FLAG, Role

LOOP = """
import time
import torch

def train(model, loader, optimizer, args, debug=False):
    step = 0
    last = time.time()
    for i, (x, y) in enumerate(loader):
        loss = model(x)
        loss.backward()
        optimizer.step()
        step += 1
{body}
"""
HOT = {
    "plain": "here.at()",
    "rank zero": "if args.rank == 0:\n    here.at()",
    "no optimised Python": "if __debug__:\n    here.at()",
    "other branch of a periodic test": "if i % 10 == 0:\n    pass\nelse:\n    here.at()",
    "not periodic": "if i % 10 != 0:\n    here.at()",
    "truthy remainder": "if i % 10:\n    here.at()",
    "either": "if i % 10 == 0 or args.always:\n    here.at()",
    "warm-up over": "if step > 100:\n    here.at()",
    "None test": "if args.scheduler is not None:\n    here.at()",
    "with": "with open('x'):\n    here.at()",
    "try": "try:\n    here.at()\nfinally:\n    pass",
    "nested loop": "for k in range(3):\n    here.at()",
    "one pass of an inner loop": "for k in range(3):\n    if k == 1:\n        here.at()",
    "some passes of an inner loop": "for k, part in enumerate(x):\n    if k in (0, 2):\n        here.at()",
    "test of the guard itself": "if here.at() and i % 10 == 0:\n    pass",
    "f-string": "print(f'{here.at()}')",
    "lambda": "f = lambda: here.at(); f()",
    "assertion": "assert here.at(), 'never'",
    "two statements": "a = 1; here.at()",
    "comprehension": "[here.at() for _ in y]",
}
GUARDED = {
    "message of an assertion": "assert x is not None, here.at()",
    "remainder": "if i % 10 == 0:\n    here.at()",
    "not remainder": "if not i % 10:\n    here.at()",
    "shifted": "if (i + 1) % 10 == 0:\n    here.at()",
    "swapped": "if 0 == i % 10:\n    here.at()",
    "another remainder": "if step % args.every == args.every - 1:\n    here.at()",
    "and": "if args.log and i % 10 == 0:\n    here.at()",
    "periodic first": "if i % 10 == 0 and here.at():\n    pass",
    "both": "if i % 10 == 0 or i % 7 == 0:\n    here.at()",
    "last step": "if i == len(loader) - 1:\n    here.at()",
    "first step": "if i == 0:\n    here.at()",
    "a few steps": "if i < 3:\n    here.at()",
    "some steps": "if step in (1, 10, 100):\n    here.at()",
    "else of the opposite": "if i % 10 != 0:\n    pass\nelse:\n    here.at()",
    "elif": "if args.x:\n    pass\nelif i % 10 == 0:\n    here.at()",
    "early continue": "if i % 10:\n    continue\nhere.at()",
    "named test": "log_now = i % 10 == 0\nif log_now:\n    here.at()",
    "debug flag": "if args.debug:\n    here.at()",
    "parameter off by default": "if debug:\n    here.at()",
    "a pass of an inner loop that may not come": "for k in range(3):\n    if k == args.which:\n        here.at()",
    "clock": "if time.time() - last > 10:\n    here.at()",
    "helper": "if args.should_log(i):\n    here.at()",
    "setting for debugging": "if args.debug_save:\n    here.at()",
    "conditional expression": "v = here.at() if i % 10 == 0 else None",
    "break": "here.at()\nbreak",
    "exception": "try:\n    pass\nexcept ValueError:\n    here.at()",
    "gradient accumulation": "if (i + 1) % args.accumulate == 0:\n    here.at()",
}


def _indented(body: str) -> str:
    return "\n".join("        " + line for line in body.splitlines())


@pytest.mark.parametrize("case", HOT)
def test_hot(case: str) -> None:
    model = model_of(LOOP.format(body=_indented(HOT[case])))
    heat = model.heat(calls(model, "at")[0])
    assert heat is not None
    assert heat.role is Role.TRAINING_LOOP


@pytest.mark.parametrize("case", GUARDED)
def test_guarded(case: str) -> None:
    model = model_of(LOOP.format(body=_indented(GUARDED[case])))
    assert model.heat(calls(model, "at")[0]) is None


PLACES = {
    "epoch loop around batches": (
        """
        for epoch in range(10):
            for x in loader:
                model(x).sum().backward()
                optimizer.step()
            here.at()
        """,
        None,
    ),
    "epoch loop around a function": (
        """
        def train():
            for x in loader:
                loss = model(x)
                loss.backward()
        for epoch in range(10):
            train()
            here.at()
        """,
        None,
    ),
    "full-batch training": (
        """
        import torch
        optimizer = torch.optim.SGD(p)
        for epoch in range(10):
            loss = f()
            loss.backward()
            optimizer.step()
            here.at()
        """,
        Role.TRAINING_LOOP,
    ),
    "a function called from the loop": (
        """
        def helper(loss):
            here.at()
        for x in loader:
            loss = model(x)
            loss.backward()
            helper(loss)
        """,
        Role.TRAINING_LOOP,
    ),
    "a function called every few steps": (
        """
        def helper(loss):
            here.at()
        for i, x in enumerate(loader):
            loss = model(x)
            loss.backward()
            if i % 10 == 0:
                helper(loss)
        """,
        None,
    ),
    "a step function": (
        """
        class Trainer:
            def run_step(self, batch):
                loss = self.model(batch)
                loss.backward()
                self.optimizer.step()
                here.at()
        """,
        Role.STEP,
    ),
    "forward": (
        """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x):
                here.at()
        """,
        Role.FORWARD,
    ),
    "Lightning": (
        """
        import lightning as L
        class Net(L.LightningModule):
            def training_step(self, batch, index):
                here.at()
        """,
        Role.STEP,
    ),
    "dataset item": (
        """
        from torch.utils.data import Dataset
        class Images(Dataset):
            def __getitem__(self, index):
                here.at()
        """,
        Role.DATA,
    ),
    "evaluation": (
        """
        import torch
        for x in torch.utils.data.DataLoader(data):
            here.at()
        """,
        Role.EVALUATION_LOOP,
    ),
    "iterator taken by hand": (
        """
        import torch
        batches = iter(torch.utils.data.DataLoader(data))
        while True:
            x = next(batches)
            here.at()
        """,
        Role.EVALUATION_LOOP,
    ),
    "set-up": ("for name in names:\n    here.at()", None),
    "module level": ("here.at()", None),
    "class body": ("class A:\n    here.at()", None),
    "default in a loop's function": ("for x in loader:\n    def f(a=here.at()): ...", Role.EVALUATION_LOOP),
    "a lambda that nobody calls": ("for x in loader:\n    f = lambda: here.at()", None),
}


@pytest.mark.parametrize("case", PLACES)
def test_place(case: str) -> None:
    program, role = PLACES[case]
    model = model_of(program)
    heat = model.heat(calls(model, "at")[0])
    assert (heat.role if heat is not None else None) is role


SETTING = """
import torch
from torch import nn

class Loss(nn.Module):
    def __init__(self, scale, balance=False):
        super().__init__()
        {store}

    def forward(self, x: torch.Tensor):
        if self.balance:
            here.at()
        return x

{use}
"""
OFF = {
    "stored": ("self.balance = balance", ""),
    "stored with others": ("self.scale, self.balance = scale, balance", ""),
    "never turned on": ("self.balance = balance", "loss = Loss(1.0)"),
    "turned off": ("self.balance = balance", "loss = Loss(1.0, balance=False)"),
    "handed on by another": (
        "self.balance = balance",
        "class More:\n    def make(self):\n        Loss(1, balance=self.balance)",
    ),
    "handed on": ("self.balance = balance", "def make(balance=False):\n    return Loss(1.0, balance=balance)"),
}
ON = {
    "turned on": ("self.balance = balance", "loss = Loss(1.0, balance=True)"),
    "turned on by position": ("self.balance = balance", "loss = Loss(1.0, True)"),
    "chosen elsewhere": ("self.balance = balance", "loss = Loss(1.0, balance=settings.balance)"),
    "something else": ("self.balance = balance or scale > 1", ""),
}


@pytest.mark.parametrize("case", OFF)
def test_a_setting_that_is_off_by_default_guards(case: str) -> None:
    model = model_of(SETTING.format(store=OFF[case][0], use=OFF[case][1]))
    assert model.heat(calls(model, "at")[0]) is None
    assert model.heat(calls(model, "at")[0], NO_FLAG) is not None


@pytest.mark.parametrize("case", ON)
def test_a_setting_that_can_be_on_guards_nothing(case: str) -> None:
    model = model_of(SETTING.format(store=ON[case][0], use=ON[case][1]))
    assert model.heat(calls(model, "at")[0]) is not None


@pytest.mark.parametrize(
    ("before", "is_hot"), [("pass", True), ("pretrained(x).backward()", False), ("for _ in x: pass", True)]
)
def test_a_branch_with_all_training_steps_is_no_guard(before: str, is_hot: bool) -> None:
    model = model_of(f"""
        def run(buffer, model, optimizer, x):
            for i in range(1_000):
                {before}
                if i > 10 and i % 4 == 0:
                    model(buffer.sample()).backward()
                    optimizer.step()
                    here.at()
    """)
    assert (model.heat(calls(model, "at")[0]) is not None) is is_hot


def test_function_of_several_loops_is_hot_as_the_one_that_trains() -> None:
    program = """
    import torch

    def draw(n):
        return torch.randn(n).here()

    @torch.no_grad()
    def estimate(model: torch.nn.Module):
        for _ in range(10):
            model(draw(4))

    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        for _ in range(100):
            model(draw(4)).sum().backward()
            optimizer.step()
    """
    model = model_of(program)
    heat = model.heat(calls(model, "here")[0])
    assert heat is not None
    assert heat.role is Role.TRAINING_LOOP


def test_function_that_one_of_two_branches_defines_is_called_by_its_name() -> None:
    program = """
    import torch

    def fit(model: torch.nn.Module, optimizer: torch.optim.Optimizer, real, x):
        if real:
            def draw(n):
                return torch.randn(n).here()
        else:
            draw = lambda n: x
        for _ in range(100):
            model(draw(4)).sum().backward()
            optimizer.step()
    """
    model = model_of(program)
    heat = model.heat(calls(model, "here")[0])
    assert heat is not None
    assert heat.role is Role.TRAINING_LOOP
    other = model_of(program.replace("lambda n: x", "x"))
    assert other.heat(calls(other, "here")[0]) is None
