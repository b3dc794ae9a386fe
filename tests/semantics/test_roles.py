"""Why something runs on every step: what kind of loop it is in, or what the function is."""

from __future__ import annotations

import pytest

from tests.semantics.support import calls, model_of
from torchlint.semantics.heat.hotness import Role

SLICED = """
import torch
from torch import nn

def evaluate(features: torch.Tensor, size):
    net = nn.Linear(3, 3)
    for i in range(0, len(features), {step}):
        here.at(net(features[{cut}]))
"""


@pytest.mark.parametrize(
    ("step", "cut", "role"),
    [
        ("size", "i : i + size", Role.EVALUATION_LOOP),
        ("size", "i : i + size, 0", Role.EVALUATION_LOOP),
        ("1", ":i", Role.SAMPLING_LOOP),
        ("size", "i", Role.SAMPLING_LOOP),
    ],
)
def test_batches_are_cut_out_of_a_tensor(step: str, cut: str, role: Role) -> None:
    model = model_of(SLICED.format(step=step, cut=cut))
    heat = model.heat(calls(model, "at")[0])
    assert heat is not None
    assert heat.role is role


@pytest.mark.parametrize(
    ("head", "often"),
    [
        ("class M(torch.nn.Module):\n  def forward(self, x):\n    {}", "in every forward pass"),
        (
            "class M(torch.nn.Module):\n  def forward(self, x):\n    if not self.training: {}",
            "in every forward pass while evaluating",
        ),
        (
            "class M(torch.nn.Module):\n  def forward(self, x):\n    if self.training:\n      return x\n    {}",
            "in every forward pass while evaluating",
        ),
        (
            "class M(torch.nn.Module):\n  def forward(self, x):\n    if self.training:\n      x = x + 1\n    {}",
            "in every forward pass",
        ),
        ("class M(torch.nn.Module):\n  def validation_step(self, x):\n    {}", "in every evaluation step"),
        ("class MyLoss(torch.nn.Module):\n  def __call__(self, x):\n    {}", "each time this loss is computed"),
        (
            "class MyLoss(torch.nn.Module):\n  def __call__(self, x, stage):\n    if stage != 'train': {}",
            "each time this loss is computed while evaluating",
        ),
        ("for x in torch.utils.data.DataLoader(data):\n  {}", "on every pass of this evaluation loop"),
        (
            "from torchmetrics import Metric\nclass M(Metric):\n  def update(self, x):\n    {}",
            "each time this metric is updated",
        ),
    ],
)
def test_how_often_in_words(head: str, often: str) -> None:
    model = model_of("import torch\n" + head.format("here.at()"))
    found = model.heat(calls(model, "at")[0])
    assert found is not None
    assert found.often == often


ROLES = {
    "optimizer": ("torch.optim.Optimizer", "Lamb", "step", Role.UPDATE),
    "average": ("", "ModelEmaV2", "update", Role.UPDATE),
    "another average": ("", "ExponentialMovingAverage", "step", Role.UPDATE),
    "another method of an average": ("", "ModelEMA", "restore", None),
    "no average": ("", "Schema", "update", None),
    "loss of a module": ("torch.nn.Module", "Encoder", "recon_loss", Role.LOSS),
    "loss of something else": ("", "Encoder", "recon_loss", None),
    "what plots a loss": ("torch.nn.Module", "Encoder", "plot_loss", None),
    "callback": ("pytorch_lightning.Callback", "Norms", "on_before_optimizer_step", Role.STEP),
    "evaluating callback": ("pytorch_lightning.Callback", "Norms", "on_test_batch_end", Role.EVALUATION_LOOP),
    "another callback": ("transformers.TrainerCallback", "Norms", "on_step_end", Role.STEP),
    "callback of an epoch": ("pytorch_lightning.Callback", "Norms", "on_train_epoch_end", None),
    "no callback": ("", "Norms", "on_step_end", None),
}


@pytest.mark.parametrize("case", ROLES)
def test_role_of_a_method(case: str) -> None:
    base, name, method, role = ROLES[case]
    model = model_of(f"""
        import pytorch_lightning
        import torch
        import transformers

        class {name}({base}):
            def {method}(self, x: torch.Tensor):
                here.at()
                return x.sum()
    """)
    heat = model.heat(calls(model, "at")[0])
    assert (heat.role if heat is not None else None) is role


@pytest.mark.parametrize(
    ("call", "role"),
    [("self.change(x)", Role.FORWARD), ("other.change(x)", None), ("Base.change(other, x)", None)],
)
def test_a_method_is_called_where_the_one_that_it_overrides_is(call: str, role: Role | None) -> None:
    model = model_of(f"""
        import torch

        class Base(torch.nn.Module):
            def forward(self, x, other):
                return {call}

            def change(self, x):
                return x

        class Middle(Base):
            pass

        class Changed(Middle):
            def change(self, x):
                here.at()
                return x
    """)
    heat = model.heat(calls(model, "at")[0])
    assert (heat.role if heat is not None else None) is role


@pytest.mark.parametrize(
    ("step", "role"),
    [
        ("scheduler.step(noise, t, x)", Role.SAMPLING_LOOP),
        ("self.noise_scheduler.step(noise, timestep=t, sample=x).prev_sample", Role.SAMPLING_LOOP),
        ("scheduler.step(noise)", None),
        ("env.step(noise, t, x)", None),
        ("print(scheduler.step(noise, t, x) if t % 10 == 0 else t)", None),
    ],
)
def test_a_diffusion_process_is_a_sampling_loop(step: str, role: Role | None) -> None:
    model = model_of(f"""
        def run(self, scheduler, env, noise, x, times):
            for t in times:
                here.at()
                x = {step}
    """)
    heat = model.heat(calls(model, "at")[0])
    assert (heat.role if heat is not None else None) is role
