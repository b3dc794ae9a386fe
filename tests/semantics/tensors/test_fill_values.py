"""What to write so that the device fills a tensor."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.tensors.fill_values import filled_on_device

LONG = "x" * 90


@pytest.mark.parametrize(
    ("code", "filled"),
    [
        ("torch.tensor(1.0, device=d)", "torch.full((), 1.0, device=d)"),
        ("torch.as_tensor(-1, dtype=t, device=d)", "torch.full((), -1, dtype=t, device=d)"),
        ("torch.as_tensor(2, t, d)", "torch.full((), 2, device=...)"),
        (f"torch.tensor(1.0, device={LONG})", "torch.full((), 1.0, device=...)"),
        ("torch.tensor([0.0, 0.0], device=d)", "torch.full((2,), 0.0, device=d)"),
        ("tensor([1], device=d)", "torch.full((1,), 1, device=d)"),
        ("torch.tensor([0.0, 1.0], device=d)", ""),
        ("torch.tensor([[0.0], [0.0]], device=d)", ""),
        ("torch.tensor(unknown, device=d)", ""),
        ("torch.tensor([], device=d)", ""),
        ("torch.tensor([True], device=d)", "torch.full((1,), True, device=d)"),
    ],
)
def test_filled(code: str, filled: str) -> None:
    model = model_of(f"import torch\nfrom torch import tensor\nmade = {code}\n")
    call = model.nodes(cst.Call)[0]
    assert filled_on_device(call, call.args[0].value, model) == filled
