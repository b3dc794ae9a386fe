"""Where a file uses the names of a table."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.references.symbols import import_of, is_type_test, symbol_uses
from torchlint.semantics.tables.symbols import DEPRECATED, NONPUBLIC, REMOVED, Symbol, SymbolTable
from torchlint.semantics.tables.vision import PRETRAINED

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


TYPE_TESTS = {
    "isinstance": ("isinstance(x, nn.Old)", [True]),
    "one of several": ("isinstance(x, (nn.New, nn.Old))", [True]),
    "another function": ("f(x, nn.Old)", [False]),
    "of an instance": ("isinstance(nn.Old(), X)", [False]),
    "comparison": ("type(x) is nn.Old", [True]),
    "membership": ("type(x) in (nn.Old, nn.New)", [True]),
    "comparison with an instance": ("x == nn.Old()", [False]),
    "pattern": ("match x:\n    case nn.Old(): pass", [True]),
    "pattern of what is inside": ("match x:\n    case X(kind=nn.Old): pass", [False]),
    "imported to ask": ("from torch.nn import Old\nisinstance(x, Old)", [True]),
    "imported to make": ("from torch.nn import Old\nisinstance(x, Old) or Old()", [False, False]),
    "imported for others": ("from torch.nn import Old", [False]),
}


@pytest.mark.parametrize("case", TYPE_TESTS)
def test_type_tests_make_nothing(case: str) -> None:
    program, expected = TYPE_TESTS[case]
    model = model_of(f"from torch import nn\n{program}")
    assert [is_type_test(use, model) for use in symbol_uses(model, TABLE)] == expected


@pytest.mark.parametrize("table", [DEPRECATED, REMOVED, NONPUBLIC], ids=("deprecated", "removed", "nonpublic"))
def test_each_symbol_says_what_to_write(table: SymbolTable) -> None:
    assert all(bool(symbol.replacement) != bool(symbol.instead) for symbol in table.symbols.values())


def test_backbones_belong_to_models() -> None:
    assert set(PRETRAINED["pretrained_backbone"]) <= set(PRETRAINED["pretrained"])
