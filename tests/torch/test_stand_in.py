"""The runner of the equivalence cases sees what it has to see."""

from __future__ import annotations

import textwrap

import pytest
import torch

from tests.torch.compare import differences
from tests.torch.equivalence import Case, May
from tests.torch.runner import run
from tests.torch.stand_in import FAKE_CUDA, META, VALUES, StandIn


def kinds(before: str, after: str, place: StandIn) -> set[May]:
    """Return in what two bodies of `run(device)` differ."""
    programs = [f"import torch\n\ndef run(device):\n{textwrap.indent(body, '    ')}\n" for body in (before, after)]
    outcomes = [run(program, place, Case("", program), 0)[0] for program in programs]
    return {what for what, _ in differences(*outcomes, 0.0)}


@pytest.mark.parametrize("place", [VALUES, META, FAKE_CUDA], ids=lambda place: place.name)
@pytest.mark.parametrize(
    "after",
    [
        "return torch.zeros(2, 0, device='cuda')",
        "return torch.zeros(2, 0).to('cuda')",
        "return torch.zeros(2, 0).to(device, torch.float32)",
        "return torch.zeros(2, 0, device=torch.device('cuda', 0))",
        "return torch.zeros(2, 0).to(device=torch.device('cuda'))",
        "return torch.zeros(2, 0).cuda(0)",
    ],
)
def test_spellings_of_a_move_are_equal(place: StandIn, after: str) -> None:
    assert kinds("return torch.zeros(2, 0).cuda()", after, place) == set()


@pytest.mark.parametrize(
    ("before", "after", "place", "kind"),
    [
        ("return torch.zeros(2).cuda()", "return torch.zeros(2)", FAKE_CUDA, May.TYPE),
        ("return torch.zeros(2).cuda(1)", "return torch.zeros(2).cuda(0)", FAKE_CUDA, May.TYPE),
        ("return torch.zeros(2).cuda()", "return torch.zeros(2).cuda().half()", META, May.TYPE),
        ("return torch.zeros(2, 3)", "return torch.zeros(3, 2).t()", VALUES, May.TYPE),
        ("return torch.zeros(2)", "return 0.0", VALUES, May.TYPE),
        ("return torch.zeros(2)", "return -torch.zeros(2)", VALUES, May.VALUES),
        ("return 1.0", "return 1.5", VALUES, May.VALUES),
        ("return torch.zeros(2)", "torch.rand(1); return torch.zeros(2)", VALUES, May.RNG),
        ("x = torch.zeros(2); return x, x", "x = torch.zeros(2); return x, x.clone()", META, May.STORAGE),
        (
            "return torch.zeros(2, requires_grad=True).to(device)",
            "return torch.zeros(2, requires_grad=True, device=device)",
            META,
            May.LEAF,
        ),
        ("return {'a': 1}", "return {'b': 1}", VALUES, May.KEYS),
        (
            "m = torch.nn.Linear(1, 1); m.weight.grad = torch.zeros(1, 1); return m",
            "m = torch.nn.Linear(1, 1); return m",
            VALUES,
            May.NONE_GRADS,
        ),
    ],
)
def test_difference_is_seen(before: str, after: str, place: StandIn, kind: May) -> None:
    assert kind in kinds(before, after, place)


def test_recorded_graph_is_noticed() -> None:
    program = "import torch\n\ndef run(device):\n    torch.nn.Linear(1, 1)(torch.ones(1, 1)).sum().backward()\n"
    assert run(program, META, Case("", program), 0)[1]


def test_plain_results_only() -> None:
    with pytest.raises(TypeError, match="return tensors"):
        run("def run(device): return object()", VALUES, Case("", ""), 0)


def test_cpu_is_left_alone() -> None:
    with FAKE_CUDA.play():
        assert torch.zeros(2).to("cpu").device.type == "cpu"


def test_fake_gpus_need_no_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with one GPU, where a tensor cannot be put on a second."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert kinds("return torch.zeros(2).cuda(1)", "return torch.zeros(2).cuda(0)", FAKE_CUDA) == {May.TYPE}
