"""Arrays of NumPy, and what datasets hold."""

from __future__ import annotations

import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.loading.unsharded import is_unsharded

ARRAYS = """
import numpy as np
import torch
a = np.zeros((3, 2))
def make(n):
    return np.ones(n)
"""


@pytest.mark.parametrize(
    ("code", "owned", "dtypes"),
    [
        ("np.zeros(3)", True, {"float64"}),
        ("np.zeros(3, dtype=np.float32)", True, {"float32"}),
        ("np.array([1, x])", True, {None}),
        ("a", False, {"float64"}),
        ("a[1:]", False, {"float64"}),
        ("a[a > 0]", True, {"float64"}),
        ("a.T", False, {"float64"}),
        ("a * x", True, {"float64"}),
        ("x.astype('float32')", True, {"float32"}),
        ("np.random.rand(3)", True, {"float64"}),
        ("np.random.default_rng(0).normal(size=3)", True, {"float64"}),
        ("a if x else np.ones(2)", False, {"float64"}),
        ("make(3)", False, {"float64"}),
        ("x.detach().numpy()", False, {""}),
    ],
)
def test_array(code: str, owned: bool, dtypes: set[str | None]) -> None:
    model = model_of(ARRAYS + f"def f(x):\n    mark({code})\n")
    found = model.arrays.array(marked(model)[0])
    assert found is not None
    assert (found.owned, set(found.dtypes)) == (owned, dtypes)


@pytest.mark.parametrize(
    "code",
    ["x", "a[0, 0]", "a[x]", "a.tolist()", "a.sum()", "np.mean(a)", "np.random.randint(3)", "[a]", "np.array(2)"],
)
def test_no_array(code: str) -> None:
    model = model_of(ARRAYS + f"def f(x):\n    mark({code})\n")
    assert model.arrays.array(marked(model)[0]) is None


def test_comprehension_in_an_assignment_sees_its_own_variable() -> None:
    model = model_of(ARRAYS + "b = np.ones(2)\na, b = (mark(x) for x in (a, b))\n")
    found = model.arrays.array(marked(model)[0])
    assert found is not None
    assert found.evidence is Evidence.PROVEN


DATASETS = """
import h5py
import torch
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset
class Held(Dataset):
    def __init__(self, x):
        self.x = x
    def __getitem__(self, i):
        return self.x[i]
class Decoded(Held):
    def __getitem__(self, i):
        return self.decode(self.x[i])
class Wrapped(Dataset):
    def __init__(self, dataset):
        self.inner = dataset
    def __getitem__(self, i):
        return self.inner[i]
class File(Dataset):
    def __init__(self, path):
        self.file = h5py.File(path)
    def __getitem__(self, i):
        return self.load(self.file["x"][i])
class Gpu(Dataset):
    def __getitem__(self, i):
        return self.read(i).cuda()
class Stream(IterableDataset):
    def __iter__(self):
        yield 1
class Shared(IterableDataset):
    def __iter__(self):
        yield torch.utils.data.get_worker_info()
"""


@pytest.mark.parametrize(
    ("code", "answers"),
    [
        ("TensorDataset(torch.ones(3))", {"in_memory", "on_host"}),
        ("TensorDataset(torch.ones(3, device='cuda'))", {"in_memory", "yields_device_tensors"}),
        ("ConcatDataset([TensorDataset(x), TensorDataset(x)])", {"in_memory"}),
        ("Subset(Held(x), [1])", {"in_memory"}),
        ("[1, 2]", {"in_memory"}),
        ("Held(x)", {"in_memory"}),
        ("Decoded(x)", set()),
        ("Wrapped(x)", set()),
        ("File(x)", {"holds_handle"}),
        ("Gpu()", {"yields_device_tensors"}),
        ("Stream()", {"is_unsharded"}),
        ("Shared()", set()),
        ("x", set()),
    ],
)
def test_dataset(code: str, answers: set[str]) -> None:
    model = model_of(DATASETS + f"def f(x):\n    mark({code})\n")
    dataset = marked(model)[0]
    questions = {
        "in_memory": model.datasets.in_memory,
        "on_host": model.datasets.on_host,
        "holds_handle": model.datasets.holds_handle,
        "yields_device_tensors": model.datasets.yields_device_tensors,
        "is_unsharded": lambda given: is_unsharded(given, model.datasets.class_of(model.value(given)), model.evaluator),
    }
    assert {name for name, ask in questions.items() if ask(dataset)} == answers
