"""What becomes of imports that fixes leave without a use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst
import pytest

from tests.engine.made_rules import SETTINGS, check_file, fixed, make_rule, name_of
from torchlint.edits import operations as op
from torchlint.engine.fix import fix_file
from torchlint.finding import Finding, Fix, Safety
from torchlint.source import source_from_text
from torchlint.syntax.walk import Tree


def unwrap_variable(call: cst.Call, tree: Tree) -> Iterator[Finding]:
    if name_of(call) == "Variable":
        yield Finding(call, "v", Fix("Unwrap", (op.Unwrap(call, call.args[0].value),), Safety.SAFE))


VARIABLE = make_rule("TL502", cst.Call, unwrap_variable)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch.autograd import Variable\na = 1\nx = Variable(a)\n", "a = 1\nx = a\n"),
        ("from torch.autograd import Variable\na = 1\nx = Variable(a)\ny = Variable(a)\n", "a = 1\nx = a\ny = a\n"),
        (
            "from torch.autograd import grad, Variable\na = 1\nx = Variable(a)\n",
            "from torch.autograd import grad\na = 1\nx = a\n",
        ),
        (
            "from torch.autograd import Variable, grad\na = 1\nx = Variable(a)\n",
            "from torch.autograd import grad\na = 1\nx = a\n",
        ),
        (
            "from torch.autograd import Variable\n__all__ = ['Variable']\na = 1\nx = Variable(a)\n",
            "from torch.autograd import Variable\n__all__ = ['Variable']\na = 1\nx = a\n",
        ),
        (
            "from torch.autograd import Variable\na = 1\nx = Variable(a)\nisinstance(x, Variable)\n",
            "from torch.autograd import Variable\na = 1\nx = a\nisinstance(x, Variable)\n",
        ),
        (
            "def f(a):\n    from torch.autograd import Variable\n    return Variable(a)\n",
            "def f(a):\n    return a\n",
        ),
        (
            "a = 1\nif a:\n    from torch.autograd import Variable\nx = Variable(a)\n",
            "a = 1\nif a:\n    from torch.autograd import Variable\nx = a\n",
        ),
        (
            "from torch.autograd import Variable\nimport torch\na = 1\nx = Variable(a)\n",
            "import torch\na = 1\nx = a\n",
        ),
    ],
)
def test_an_import_without_use_goes_with_its_last_use(before: str, after: str) -> None:
    assert fixed(before, VARIABLE).text == after


def test_an_import_that_may_do_something_goes_only_with_an_unsafe_fix() -> None:
    text = "from .tools import Variable\na = 1\nx = Variable(a)\n"
    (diagnostic,) = check_file(source_from_text(text), SETTINGS, [VARIABLE], None).diagnostics
    assert diagnostic.fix
    assert diagnostic.fix.safety is Safety.UNSAFE
    assert "The import of `Variable`" in diagnostic.fix.why
    assert fixed(text, VARIABLE, unsafe=True).text == "a = 1\nx = a\n"
    several = text + "y = Variable(a)\n"
    assert fixed(several, VARIABLE).text == "from .tools import Variable\na = 1\nx = a\ny = a\n"
    assert fixed(several, VARIABLE, unsafe=True).text == "a = 1\nx = a\ny = a\n"


def test_an_import_of_a_package_stays() -> None:
    text = "from torch.autograd import Variable\na = 1\nx = Variable(a)\n"
    source = source_from_text(text, "pkg/__init__.py")
    target: Any = None
    result = fix_file(source, SETTINGS, [VARIABLE], target, unsafe=False, check=check_file)
    assert result.text == "from torch.autograd import Variable\na = 1\nx = a\n"
