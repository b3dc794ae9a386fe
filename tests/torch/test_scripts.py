"""Running a script before and after its fixes sees what a fix changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import scripts
from tests.corpus.scripts import NotRun, Script, tried

SCRIPT = Script("owner/name", "c0ffee", "train.py", 40)
TEXT = """\
import torch
import torch.nn as nn
import torchvision

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = torchvision.datasets.MNIST(root="data")
loader = torch.utils.data.DataLoader(data, batch_size=20)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(28, 4, 1, batch_first=True)
        self.out = nn.Linear(4, 10)

    def forward(self, x):
        start = torch.zeros(1, x.size(0), 4).to(device)
        seen, _ = self.rnn(x, start)
        return self.out(seen[:, -1, :])


model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for images, labels in loader:
        outputs = model(images.reshape(-1, 28, 28).to(device))
        loss = criterion(outputs, labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"Loss: {loss.item():.4f}")
"""


def test_sound_fixes_are_seen_at_work(tmp_path: Path) -> None:
    trial = tried(SCRIPT, TEXT, tmp_path)
    assert trial.wrong == ""
    assert {"TL102", "TL201"} <= set(trial.rules_at_work)
    assert trial.steps == 4


def changing(change: Callable[[str], str], *, unsafe: bool) -> Callable[..., Any]:
    """Return a fixer whose safe or unsafe result is changed once more."""
    original = scripts.fix_source

    def fix(text: str, **options: Any) -> Any:
        fixed = original(text, **options)
        return replace(fixed, text=change(fixed.text)) if options.get("unsafe_fixes", False) is unsafe else fixed

    return fix


def test_safe_fix_that_changes_a_weight_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixer = changing(lambda text: text.replace("lr=0.01", "lr=0.010001"), unsafe=False)
    monkeypatch.setattr(scripts, "fix_source", fixer)
    assert "weights" in tried(SCRIPT, TEXT, tmp_path).wrong


def test_unsafe_fix_that_fails_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "fix_source", changing(lambda text: text + "1 / 0\n", unsafe=True))
    assert tried(SCRIPT, TEXT, tmp_path).wrong == "unsafe fixes break it: ZeroDivisionError: division by zero"


def test_script_that_is_not_deterministic_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="not deterministic"):
        tried(SCRIPT, TEXT + "import os\nprint(os.urandom(8))\n", tmp_path)


def test_script_that_fails_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="does not run as it is: ZeroDivisionError"):
        tried(SCRIPT, TEXT + "1 / 0\n", tmp_path)
