"""What is taken over to a model whose tree has got its text."""

from __future__ import annotations

import libcst as cst

from tests.semantics.support import model_of
from torchlint.semantics.model import Model
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.semantics.quoting import _KEPT, with_text

PROGRAM = """
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x).sub(y).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def test_what_is_kept_is_there_to_be_kept() -> None:
    model = model_of(PROGRAM)
    remembered = (f"_{name}_of" for name in dir(Model))
    unknown = _KEPT.difference(dir(model), remembered)
    assert not unknown


def test_answers_are_kept_and_quotations_are_not() -> None:
    model = model_of(PROGRAM)
    loss = next(name for name in model.nodes(cst.Name) if name.value == "loss")
    value, heat = model.value(loss), model.hotness
    model.code(loss)
    other = with_text(model, UNKNOWN_TARGET)
    assert other.value(loss) is value
    assert other.hotness is heat
    assert not [name for name in vars(other) if name not in _KEPT and name != "target"]
