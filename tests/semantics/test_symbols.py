"""Where a file uses the names of a table, and what runs only with some versions."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.symbols import import_of, is_type_test, symbol_uses
from torchlint.semantics.tables.symbols import DEPRECATED, NONPUBLIC, REMOVED, Symbol, SymbolTable
from torchlint.semantics.tables.vision import PRETRAINED
from torchlint.semantics.versions import depends_on_version

TABLE = SymbolTable({"torch.old": Symbol("torch.new"), "torch.nn.Old": Symbol("torch.nn.New")})

USED = {
    "attribute": ("import torch\ntorch.old(1)", ["torch.old(1)"]),
    "alias": ("import torch as t\nt.old(1)", ["t.old(1)"]),
    "import": ("from torch import old\nold(1)", ["old", "old(1)"]),
    "renamed import": ("from torch import old as o\no(1)", ["old as o", "o(1)"]),
    "not called": ("from torch import nn\nclass A(nn.Old): pass", ["nn.Old"]),
    "bound by an import": ("from torch.nn import Old\nclass A(Old): pass\n@Old\ndef f(): ...", ["Old", "Old"]),
    "assigned once": ("import torch\nf = torch.old\nf(1)\nf(2)", ["torch.old"]),
    "result of a call": ("import torch\ntorch.old(1)(2)", ["torch.old(1)"]),
    "shadowed": ("import torch\ndef f(torch): torch.old(1)", []),
    "somebody else's": ("from mine import old\nold(1)", []),
    "relative": ("from .torch import old\nold(1)", []),
    "two meanings": ("try:\n    from torch import old\nexcept E:\n    from mine import old\nold(1)", ["old"]),
}


@pytest.mark.parametrize("case", USED)
def test_uses(case: str) -> None:
    program, expected = USED[case]
    model = model_of(program)
    assert [model.code(use.node) for use in symbol_uses(model, TABLE)] == expected


def test_import_of_a_name() -> None:
    model = model_of("from torch import old as o, new\nmark(o)\nmark(torch.old)")
    name, attribute = marked(model)
    assert isinstance(name, cst.Name)
    assert isinstance(attribute, cst.Attribute)
    found = import_of(name, model)
    assert found is not None
    assert found[1].evaluated_alias == "o"
    assert import_of(attribute, model) is None


def test_type_tests_make_nothing() -> None:
    model = model_of("import torch\nisinstance(x, torch.nn.Old)\nf(x, torch.nn.Old)\nisinstance(torch.nn.Old(), X)")
    assert [is_type_test(use, model) for use in symbol_uses(model, TABLE)] == [True, False, False]


DEPENDS = {
    "nothing": ("mark(x)", False),
    "a flag": ("if fast:\n    mark(x)", False),
    "a version": ("if torch.__version__ > '2':\n    mark(x)", True),
    "the other branch": ("if hasattr(torch, 'new'):\n    pass\nelse:\n    mark(x)", True),
    "the test itself": ("if version > mark(x):\n    pass", False),
    "short circuit": ("hasattr(torch, 'new') or mark(x)", True),
    "expression": ("y = new if TORCH_GE_2 else mark(x)", True),
    "missing name": ("try:\n    f()\nexcept AttributeError:\n    mark(x)", True),
    "one of several": ("try:\n    mark(x)\nexcept (KeyError, ImportError):\n    pass", True),
    "another error": ("try:\n    mark(x)\nexcept RuntimeError:\n    pass", False),
    "in the end": ("try:\n    f()\nexcept ImportError:\n    pass\nfinally:\n    mark(x)", False),
}


@pytest.mark.parametrize("case", DEPENDS)
def test_depends_on_version(case: str) -> None:
    program, expected = DEPENDS[case]
    model = model_of(program)
    assert depends_on_version(marked(model)[0], model.tree) is expected


@pytest.mark.parametrize("table", [DEPRECATED, REMOVED, NONPUBLIC], ids=("deprecated", "removed", "nonpublic"))
def test_each_symbol_says_what_to_write(table: SymbolTable) -> None:
    assert all(bool(symbol.replacement) != bool(symbol.instead) for symbol in table.symbols.values())


def test_backbones_belong_to_models() -> None:
    assert set(PRETRAINED["pretrained_backbone"]) <= set(PRETRAINED["pretrained"])
