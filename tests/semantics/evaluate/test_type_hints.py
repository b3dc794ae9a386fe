"""What annotations say of parameters."""

from __future__ import annotations

import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.values import Kind

PROGRAM = """
from typing import Annotated, Optional
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
class Net(nn.Module):
    pass
def f(a: {annotation}):
    mark(a)
"""


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ('"torch.Tensor"', Kind.TENSOR),
        ("'Tensor'", Kind.TENSOR),
        ('"Optional[torch.Tensor]"', Kind.TENSOR),
        ('"Tensor | None"', Kind.TENSOR),
        ("Optional['Tensor']", Kind.TENSOR),
        ("torch.LongTensor", Kind.TENSOR),
        ('Float[Tensor, "batch 3"]', Kind.TENSOR),
        ('Int[np.ndarray, "3"]', Kind.NDARRAY),
        ("Annotated[Tensor, 3]", Kind.TENSOR),
        ('"nn.Module"', Kind.MODULE),
        ('"np.ndarray"', Kind.NDARRAY),
        ("Net", Kind.MODULE),
        ('"Tensor | float"', Kind.UNKNOWN),
        ('"torch.Tensor, of scores"', Kind.UNKNOWN),
        ('"Unknown"', Kind.UNKNOWN),
        ('"list[Tensor]"', Kind.UNKNOWN),
        ("3", Kind.UNKNOWN),
    ],
)
def test_annotations(annotation: str, kind: Kind) -> None:
    model = model_of(PROGRAM.format(annotation=annotation))
    assert model.value(marked(model)[0]).kind is kind


def test_a_quoted_name_is_looked_up_where_it_stands() -> None:
    model = model_of("""
        import torch
        def f(torch):
            def g(a: "torch.Tensor"):
                mark(a)
        def h(a: "torch.Tensor"):
            mark(a)
    """)
    assert [model.value(each).kind for each in marked(model)] == [Kind.UNKNOWN, Kind.TENSOR]
