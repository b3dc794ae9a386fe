"""The loop over passes, with rules made for the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import libcst as cst
import pytest

from tests.engine.made_rules import SETTINGS, UNWRAP, check_file, fixed, make_rule, name_of
from torchlint.api import fix_source
from torchlint.diagnostic import Position, Range
from torchlint.edits import operations as op
from torchlint.engine.fix import fix_file
from torchlint.engine.result import FileResult
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Rule
from torchlint.semantics.evidence import Evidence
from torchlint.source import Source, source_from_text
from torchlint.syntax.walk import Tree


def test_all_fixes_of_a_file_are_applied() -> None:
    result = fixed("x = f(a).m()\ny = g(f(1).m(), f(2).m())\n", UNWRAP)
    assert result.text == "x = f(a, k=1)\ny = g(f(1, k=1), f(2, k=1))\n"
    assert [d.start.row for d in result.applied] == [1, 2, 2]
    assert not result.refused
    assert not result.result.diagnostics


def test_nested_findings_take_several_passes() -> None:
    result = fixed("x = f(f(f(1).m()).m()).m()\n", UNWRAP)
    assert result.text == "x = f(f(f(1, k=1), k=1), k=1)\n"
    assert len(result.applied) == 3


def test_more_nested_findings_than_passes_still_come_to_an_end() -> None:
    text = "f(" * 12 + "1" + ").m()" * 12 + "\n"
    result = fixed(text, UNWRAP)
    assert ".m()" not in result.text
    assert len(result.applied) == 12


def test_fixing_twice_is_fixing_once() -> None:
    once = fixed("x = f(a).m()  # why\n", UNWRAP).text
    assert fixed(once, UNWRAP).text == once


@pytest.mark.parametrize(
    ("fix", "reason"),
    [
        (lambda call: (op.ReplaceStatement(call, ("x = undefined_thing",)),), "'undefined_thing' would be used"),
        (lambda call: (op.Replace(call, "f(f(a).m())"),), "the finding is still there"),
    ],
)
def test_a_fix_that_fails_a_check_is_refused_and_the_others_go_on(fix: Any, reason: str) -> None:
    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        if name_of(call) == "m":
            statement = tree.enclosing(call, cst.Assign)
            edits = fix(statement if "Statement" in type(fix(call)[0]).__name__ else call)
            yield Finding(call, "m", Fix("Break it", edits, Safety.SAFE))
        elif name_of(call) == "good":
            yield Finding(call, "good", Fix("Rename", (op.Replace(call, "better()"),), Safety.SAFE))

    rule = make_rule("TL202", cst.Call, check)  # type: ignore[arg-type]
    text = "def better(): pass\ndef f(x): pass\ngood()\na = 1\nx = f(a).m()\ngood()\n"
    result = fixed(text, rule)
    assert result.text == text.replace("good", "better")
    ((diagnostic, why),) = result.refused
    assert diagnostic.start.row == 5
    assert reason in why
    assert [d.start.row for d in result.result.diagnostics] == [5]


def writes(name: str, code: str, safety: Safety = Safety.SAFE) -> Any:
    """Return a check that writes code in place of the calls of a function."""

    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        if name_of(call) == name:
            yield Finding(call, name, Fix(f"Write {code}", (op.Replace(call, code),), safety, "It may."))

    return check


def test_a_fix_that_leads_to_another_finding_is_refused() -> None:
    rule = make_rule("TL203", cst.Call, writes("h", "f(1).m()"))
    result = fixed("x = h()\n", rule, UNWRAP)
    assert result.text == "x = h()\n"
    assert "undefined" in result.refused[0][1] or "'f' would be used" in result.refused[0][1]
    other = make_rule("TL204", cst.Call, writes("f", "g()", Safety.UNSAFE))
    result = fixed("f = g = 1\nx = h()\n", make_rule("TL203", cst.Call, writes("h", "f(1)")), other)
    assert result.refused[0][1] == "the fix leads to a new finding of TL204"


def test_a_fix_that_leads_to_another_fix_is_followed_by_it() -> None:
    rule = make_rule("TL203", cst.Call, writes("h", "f(1).m()"))
    result = fixed("f = 1\nx = h()\n", rule, UNWRAP)
    assert result.text == "f = 1\nx = f(1, k=1)\n"
    assert [diagnostic.code for diagnostic in result.applied] == ["TL203", "TL201"]
    assert not result.refused


def test_fixes_that_undo_each_other_leave_the_file_as_it_was() -> None:
    there, back = make_rule("TL203", cst.Call, writes("f", "g()")), make_rule("TL204", cst.Call, writes("g", "f()"))
    result = fixed("f = g = 1\nx = f()\n", there, back)
    assert result.text == "f = g = 1\nx = f()\n"
    assert not result.applied
    assert "do not come to an end" in result.refused[0][1]


def test_a_refused_fix_is_tried_again_when_others_have_changed_the_text() -> None:
    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        if name_of(call) == "old":
            yield Finding(
                call, "o", Fix("New", (op.Replace(call.func, "torch.new"), op.AddKeyword(call, "k", "1")), Safety.SAFE)
            )
        if name_of(call) == "h":
            yield Finding(call, "h", Fix("New", (op.Replace(call, "torch.g()"), op.AddImport("torch")), Safety.SAFE))

    rule = make_rule("TL210", cst.Call, check)  # type: ignore[arg-type]
    result = fixed("import os\nold = h = os\nold(h())\n", rule)
    assert result.text == "import os\nimport torch\nold = h = os\ntorch.new(torch.g(), k=1)\n"
    assert not result.refused


def test_fixes_without_end_leave_the_file_as_it_was_and_are_named() -> None:
    def grow(name: cst.Name, tree: Tree) -> Iterator[Finding]:
        if name.value == "a":
            line = tree.enclosing(name, cst.SimpleStatementLine)
            assert line is not None
            yield Finding(
                name, "a", Fix("Again", (op.InsertAfter(line.body[0], ("a",)), op.Replace(name, "b")), Safety.SAFE)
            )

    rule = make_rule("TL204", cst.Name, grow)  # type: ignore[arg-type]
    text = "b = 1\na = 2\na\n"
    result = fixed(text, rule)
    assert result.text == text
    assert not result.applied
    assert all("TL204 tl204" in reason and "do not come to an end" in reason for _, reason in result.refused)


@pytest.mark.parametrize(
    ("safety", "unsafe", "changes"),
    [
        (Safety.SAFE, False, True),
        (Safety.UNSAFE, False, False),
        (Safety.UNSAFE, True, True),
        (Safety.DISPLAY, True, False),
    ],
)
def test_only_wanted_fixes_are_applied(safety: Safety, unsafe: bool, changes: bool) -> None:
    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        if call.args:
            yield Finding(call, "f", Fix("Do", (op.RemoveArgument(call, call.args[0]),), safety, why="it differs"))

    result = fixed("print(1)\n", make_rule("TL205", cst.Call, check), unsafe=unsafe)  # type: ignore[arg-type]
    assert (result.text == "print()\n") is changes
    assert not result.refused


@pytest.mark.parametrize(
    ("evidence", "settings", "expected"),
    [
        (Evidence.PROVEN, {}, Safety.SAFE),
        (Evidence.INFERRED, {}, Safety.UNSAFE),
        (Evidence.NAMED, {}, None),
        (Evidence.INFERRED, {"extend_safe_fixes": ("TL2",)}, Safety.SAFE),
        (Evidence.PROVEN, {"extend_unsafe_fixes": ("tl206",)}, Safety.UNSAFE),
        (Evidence.PROVEN, {"unfixable": ("TL206",)}, None),
        (Evidence.PROVEN, {"unfixable": ("ALL",), "fixable": ("TL2",)}, Safety.SAFE),
        (Evidence.PROVEN, {"unfixable": ("TL2",), "fixable": ("ALL",)}, None),
        (Evidence.PROVEN, {"extend_unsafe_fixes": ("ALL",), "extend_safe_fixes": ("TL2",)}, Safety.SAFE),
        (Evidence.INFERRED, {"extend_unsafe_fixes": ("TL206",), "extend_safe_fixes": ("TL2",)}, Safety.UNSAFE),
        (Evidence.PROVEN, {"fixable": ("TL1",)}, None),
        (Evidence.PROVEN, {"fixable": ("ALL",)}, Safety.SAFE),
    ],
)
def test_safety_follows_evidence_and_settings(evidence: Evidence, settings: Any, expected: Safety | None) -> None:
    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        yield Finding(call, "f", Fix("Do", (op.RemoveArgument(call, call.args[0]),), Safety.SAFE, evidence=evidence))

    rule = make_rule("TL206", cst.Call, check)  # type: ignore[arg-type]
    chosen = SimpleNamespace(**{**vars(SETTINGS), **settings})
    (diagnostic,) = check_file(source_from_text("print(1)\n"), chosen, [rule], None).diagnostics
    assert (diagnostic.fix.safety if diagnostic.fix else None) is expected
    if expected is Safety.UNSAFE:
        assert diagnostic.fix
        assert diagnostic.fix.why


def test_a_lost_comment_makes_a_fix_unsafe() -> None:
    text = "x = f(a).m(  # why\n)\n"
    (diagnostic,) = check_file(source_from_text(text), SETTINGS, [UNWRAP], None).diagnostics
    assert diagnostic.fix
    assert diagnostic.fix.safety is Safety.UNSAFE
    assert "comment" in diagnostic.fix.why
    text = "x = f(a).m(  '# why'\n)\n"
    (diagnostic,) = check_file(source_from_text(text), SETTINGS, [UNWRAP], None).diagnostics
    assert diagnostic.fix
    assert diagnostic.fix.safety is Safety.SAFE


def test_fixes_that_need_the_same_import_share_it() -> None:
    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        if name_of(call) == "old":
            yield Finding(call, "o", Fix("New", (op.Replace(call, "torch.new()"), op.AddImport("torch")), Safety.SAFE))

    rule = make_rule("TL207", cst.Call, check)  # type: ignore[arg-type]
    result = fixed("import os\nold = os\nold()\nold()\nold()\n", rule)
    assert result.text == "import os\nimport torch\nold = os\ntorch.new()\ntorch.new()\ntorch.new()\n"


def test_an_import_goes_whose_name_only_another_scope_uses() -> None:
    rule = make_rule("TL203", cst.Call, writes("t", "print()"))
    function = "\ndef f(t):\n    return t\n"
    assert fixed(f"from torch import t\nt()\n{function}", rule).text == f"print()\n{function}"
    shown = f"from torch import t\nprint()\n{function}t\n"
    assert fixed(f"from torch import t\nt()\n{function}t\n", rule).text == shown


def test_lines_that_several_fixes_insert_at_one_place_follow_each_other() -> None:
    def check(call: cst.Call, tree: Tree) -> Iterator[Finding]:
        loop = tree.enclosing(call, cst.For)
        if loop and name_of(call) == "item":
            name = cst.Module([]).code_for_node(call.args[0].value)
            edits = (
                op.InsertBefore(loop, (f"{name} = 0",)),
                op.Replace(call, name),
                op.InsertAfter(loop, (f"{name} += 1",)),
            )
            yield Finding(call, "i", Fix("Hoist", edits, Safety.SAFE))

    rule = make_rule("TL208", cst.Call, check)  # type: ignore[arg-type]
    result = fixed("item = a = b = 1\nfor i in range(3):\n    item(a)\n    item(b)\n", rule)
    assert result.text == "item = a = b = 1\na = 0\nb = 0\nfor i in range(3):\n    a\n    b\na += 1\nb += 1\n"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x = f(\n    a,\n    f(b).m(),\n)\n", (1, 4)),
        ("if f(\n    b,\n).m():\n    pass\n", (1, 2, 3)),
        ("@f(1).m()\ndef g(\n    a,\n): pass\n", (1, 2, 3, 4)),
        ("def g(\n    a=f(1).m(),\n):\n    pass\n", (1, 2, 3)),
        ("a; f(1).m()\n", (1,)),
        ("with f(1).m():\n    pass\n", (1,)),
    ],
)
def test_suppression_rows_are_those_of_the_statement(text: str, rows: tuple[int, ...]) -> None:
    (diagnostic,) = check_file(source_from_text(text), SETTINGS, [UNWRAP], None).diagnostics
    assert diagnostic.suppression_rows == rows
    assert diagnostic.noqa_row == rows[-1]


def test_a_compound_statement_is_reported_by_its_header() -> None:
    def check(loop: cst.For, tree: Tree) -> Iterator[Finding]:
        yield Finding(loop, "loop")

    rule = make_rule("TL209", cst.For, check)  # type: ignore[arg-type]
    (diagnostic,) = check_file(source_from_text("a\nfor x in y:  # why\n    z\n"), SETTINGS, [rule], None).diagnostics
    assert diagnostic.range == Range(2, 13)
    assert (diagnostic.start, diagnostic.end) == (Position(2, 1), Position(2, 12))


@dataclass
class _Counted:
    calls: int = 0


def test_a_file_without_findings_is_checked_once() -> None:
    counted = _Counted()

    def check(source: Source, settings: Any, rules: Sequence[Rule], target: Any) -> FileResult:
        counted.calls += 1
        return check_file(source, settings, rules, target)

    target: Any = None
    fix_file(source_from_text("x = 1\n"), SETTINGS, [UNWRAP], target, unsafe=True, check=check)
    assert counted.calls == 1


def test_a_fix_may_bring_to_light_what_a_rule_that_yields_to_it_says() -> None:
    text = "import torch\nx = torch.arange(8).int().cuda()\n"
    result = fix_source(text, select=["TL201", "TL219"])
    assert result.text == 'import torch\nx = torch.arange(8, device="cuda", dtype=torch.int32)\n'
    result = fix_source(text.replace("8", "len(y)"), select=["TL201", "TL219"])
    assert result.text == 'import torch\nx = torch.arange(len(y), device="cuda").int()\n'
    assert not result.refused
    assert [diagnostic.code for diagnostic in result.remaining] == ["TL219"]


def test_so_may_the_fix_of_a_move_in_a_loop() -> None:
    text = (
        "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\nfor x in loader:\n"
        "    weight = torch.tensor([1.0, 2.0]).cuda()\n    (model(x) * weight).sum().backward()\n"
    )
    result = fix_source(text, select=["TL201", "TL210"], unsafe_fixes=True)
    assert 'torch.tensor([1.0, 2.0], device="cuda")\n' in result.text
    assert not any(refusal.diagnostic.code == "TL201" for refusal in result.refused)
