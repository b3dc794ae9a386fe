"""Values that are known before a loop begins."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of

PROGRAM = """
import torch

def run(self, x: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor, loader, times, scheduler, unet, config):
    before = mask.sum()
    for i, t in enumerate({over}):
{body}
        x = scheduler.step(unet(x, t), t, x)[0]
"""


def known(body: str, over: str = "times") -> bool:
    """Return whether what is marked in a loop is known before it."""
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    model = model_of(PROGRAM.format(body=indented, over=over))
    loop = model.nodes(cst.For)[0]
    return model.hoistable.is_known(marked(model)[0], loop)


@pytest.mark.parametrize(
    "body",
    [
        "mark(mask.sum())",
        "mark(before)",
        "mark(before + 1 > 0)",
        "mark(torch.where(mask > 0, mask, -mask)[0].max())",
        "mark(t.expand(x.shape[0]))",
        "mark(t.expand(x.size(0)) / config.steps)",
        "later = mask * 2\nmark(later.sum())",
        "mark(mask[: x.shape[0]].sum())",
        "mark(mask.sum() if config.flag else before)",
        "mark(torch.cat([mask, mask]).sum())",
    ],
)
def test_known(body: str) -> None:
    assert known(body)


@pytest.mark.parametrize(
    "body",
    [
        "mark(x.sum())",
        "mark(x[0] + before)",
        "mark(torch.rand(3).sum())",
        "mark(torch.bernoulli(mask).sum())",
        "mark(measure(mask))",
        "mark(scheduler.sigmas.max())",
        "mark(self.mask.sum())",
        "mask = mask * 2\nmark(mask.sum())",
        "mask[0] = 1\nmark(mask.sum())",
        "mask.mul_(2)\nmark(mask.sum())",
        "mark(mask.mul_(2))",
        "before += x.sum()\nmark(before)",
        "parts = []\nparts.append(x)\nmark(torch.cat(parts))",
        "def later():\n    return mark(mask)",
    ],
)
def test_unknown(body: str) -> None:
    assert not known(body)


def test_rows_of_a_tensor_are_known() -> None:
    assert known("mark(t.sum())", "rows")


def test_batches_are_not_known() -> None:
    assert not known("mark(t.sum())", "loader")


def test_outside_the_loop_nothing_is_asked() -> None:
    model = model_of("import torch\nfor i in range(3):\n    pass\nmark(torch.ones(3))\n")
    assert not model.hoistable.is_known(marked(model)[0], model.nodes(cst.For)[0])
