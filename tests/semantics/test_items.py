"""What a dataset does to make an item."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of

DATASET = """
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Items(Dataset):
    def __init__(self, place="cpu"):
        self.place = place
        self.all = torch.ones(3).cuda()

    def item(self, index):
        return {item}

    def unused(self):
        return torch.ones(3).cuda()

    def __getitem__(self, index):
        return self.item(index)

data = {data}
loader = DataLoader(data)
"""


def move(data: str = "Items()", item: str = "index") -> str | None:
    """Return the call that certainly puts items on an accelerator."""
    model = model_of(DATASET.format(data=data, item=item))
    call = next(call for call in model.nodes(cst.Call) if model.callee(call) == "torch.utils.data.DataLoader")
    found = model.datasets.certain_move(call.args[0].value)
    return None if found is None else model.code(found)


def test_methods_that_make_an_item() -> None:
    model = model_of(DATASET.format(data="Items()", item="self.__getitem__(index)"))
    methods = model.datasets.makes_items(model.nodes(cst.ClassDef)[0])
    assert [method.name.value for method in methods] == ["__getitem__", "item"]


@pytest.mark.parametrize(
    "item",
    ["torch.ones(3).cuda()", 'torch.ones(3).to("cuda:1")', "torch.ones(3).to(device)", "torch.ones(3, device=device)"],
)
def test_items_on_the_device(item: str) -> None:
    assert move(item=item) == item


@pytest.mark.parametrize(
    "item",
    ["index", 'torch.ones(3).to("cpu")', "torch.ones(3).to(torch.float16)", "torch.ones(3, device=self.place)"],
)
def test_items_that_are_not_certainly_there(item: str) -> None:
    assert move(item=item) is None


def test_tensors_on_the_device() -> None:
    assert move("TensorDataset(torch.ones(3).cuda())") == "torch.ones(3).cuda()"
    assert move("TensorDataset(torch.ones(3))") is None
