"""What a finding is known again by: not its line, not how the code is laid out."""

from __future__ import annotations

import pytest

from torchlint.api import check_source
from torchlint.diagnostic import Anchor, essence
from torchlint.edits.anchor import normalised, shortened

SPREAD = """import torch
import torch.nn.functional as F


def train(model, loader, optimizer):
    model.cuda()
    total = 0
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += f(
            loss.detach(
            ).item(),
            1)
"""
LOOP = "import torch\n\n\nclass Trainer:\n    def fit(self, loss):\n        torch.autograd.set_detect_anomaly(True)\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("f(a, b)  # why", "f( a,b )"),
        ("x = 1 + 2", "x = 1 \\\n    + 2"),
        ("f('a')", 'f("a")'),
        ("f(a,  # one\n  b)", "f(a, b)"),
        ("not x", "not  x"),
        ("f(a)\r\n", "f(a)"),
    ],
)
def test_layout_does_not_matter(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a, b)", "f(a, c)"),
        ("not x", "notx"),
        ("f('#a')", "f('#b')"),
        ("f('a')", "f(a)"),
        ("f('''a'b''')", "f('''a'c''')"),
        ("f('a\"b')", "f('a\"c')"),
        (r"f('a\'b')", r"f('a\'c')"),
    ],
)
def test_code_matters(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = f(a) + g(b)", "x = (\n    f(a)\n    + g(b)\n)"),
        ("a, b = x.to(d), y.to(d)", "a, b = (\n    x.to(d),\n    y.to(d),\n)"),
        ("assert x, 'y'", "assert (\n    x\n), 'y'"),
        ("f(a + b + " + "c" * 200 + ")", "f(\n    a + b + (" + "c" * 200 + "),\n)"),
    ],
)
def test_what_a_formatter_adds_to_long_lines_does_not_matter(one: str, other: str) -> None:
    assert essence(shortened(normalised(one))) == essence(shortened(normalised(other)))
    assert essence(shortened(normalised(one))) != essence(shortened(normalised(one.replace("a", "z"))))


def test_long_statements_are_short_and_differ() -> None:
    one, other = shortened("a" * 500 + "b"), shortened("a" * 500 + "c")
    assert one != other
    assert len(one) == len(other) < 130
    assert shortened("f(a)") == "f(a)"


def test_a_finding_has_the_name_of_its_scope_and_its_statement() -> None:
    (finding,) = check_source(LOOP, select=["TL601"])
    assert finding.anchor == Anchor("Trainer.fit", "torch.autograd.set_detect_anomaly(True)")
    (moved,) = check_source("# new\n\n" + LOOP, select=["TL601"])
    assert moved.anchor == finding.anchor
    (name,) = check_source(SPREAD, select=["TL202"])
    assert (name.start.row, name.suppression_rows) == (15, (13, 16))
    assert name.anchor == Anchor("train", "total+=f(loss.detach().item(),1)")
    (top,) = check_source("import torch\ntorch.autograd.set_detect_anomaly(True); x = 1\n", select=["TL601"])
    assert top.anchor == Anchor("", "torch.autograd.set_detect_anomaly(True)")


@pytest.mark.parametrize("quotes", ["'''", '"""', "'", '"'])
def test_a_string_without_an_end_takes_no_longer_than_another(quotes: str) -> None:
    assert normalised(f"x = {quotes}{'a' * 5_000}") == normalised(f"x={quotes}{'a' * 5_000}")
