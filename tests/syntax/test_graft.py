"""A grafted statement is what the parser makes of it within the whole file, its white space and comments included."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import libcst as cst
import pytest

from torchlint.syntax.calls import code, source_text_only
from torchlint.syntax.draft import draft
from torchlint.syntax.draft.nodes import NoDraftError
from torchlint.syntax.walk import walk

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("torchlint", "fixtures") for path in (ROOT / folder).rglob("*.py"))[::4]

COMMENTED = """\
# Of the module.

# Before the first.
import torch  # at its end

# Before the second,

# with a gap.
@decorated
def first():
    if a:
        b
        # Inside the block.

    # Inside the function.

# Between the two.
x = 1; y = 2  # together
z = '''
not # a comment
'''

def second(): return 1
# After all.
"""
TWO_SPACES = "import torch\nif a:\n  b\n\n\ndef f():\n  return 1\n"
NO_NEWLINE = "import torch\ndef f():\n    return 1\nx = f()"
BACKSLASHES = "x = 1 + \\\n    2\n\\\ny = 3\nassert x, \\\n  y\n"
TEXTS = {
    "comments": COMMENTED,
    "two spaces": TWO_SPACES,
    "no newline": NO_NEWLINE,
    "backslashes": BACKSLASHES,
}


def same(grafted: cst.Module, text: str, wanted: Collection[int]) -> bool:
    whole = cst.parse_module(text)
    parts = all(whole.body[index].deep_equals(grafted.body[index]) for index in wanted)
    ends = (whole.default_indent, whole.default_newline, whole.has_trailing_newline, whole.encoding)
    found = (grafted.default_indent, grafted.default_newline, grafted.has_trailing_newline, grafted.encoding)
    return parts and len(whole.body) == len(grafted.body) and ends == found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_each_statement_is_as_in_the_whole(text: str) -> None:
    drafted = draft(text)
    every = range(len(drafted.module.body))
    assert all(same(drafted.grafted({index}), text, {index}) for index in every)
    assert same(drafted.grafted({0, every[-1]}), text, {0, every[-1]})
    assert same(drafted.grafted(every), text, every)


def test_with_all_of_its_statements_a_graft_is_the_module() -> None:
    for text in TEXTS.values():
        drafted = draft(text)
        assert drafted.grafted(range(len(drafted.module.body))).deep_equals(cst.parse_module(text))


def test_so_it_is_for_every_other_statement_of_files_at_hand() -> None:
    compared = 0
    for path in FILES:
        try:
            text = path.read_bytes().decode("utf-8")
            drafted = draft(text)
            wanted = range(0, len(drafted.module.body), 2)
            grafted = drafted.grafted(wanted)
        except (NoDraftError, UnicodeDecodeError):
            continue
        compared += 1
        assert same(grafted, text, wanted), path
    assert compared > 0.9 * len(FILES) > 200


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = 1\r\ny = 2\r\n", 0),
        ("x = 1\n\f\ny = 2\n", 1),
        ("if a:\n  b\nif c:\n    d\n", 1),
        ("if a:\n    b\n  # Whose?\nc = 1\n", 1),
        ("if a:\n    b\n# At the margin.\n    # Whose?\n\nc = 1\n", 1),
        ("x = (\n    1)\n    # Whose?\nc = 1\n", 1),
        ("if a: b\n    # Whose?\nc = 1\n", 1),
    ],
    ids=[
        *("other newlines", "form feed", "another indentation", "half indented", "at both margins", "after brackets"),
        "after one line",
    ],
)
def test_what_might_differ_is_not_grafted(text: str, wanted: int) -> None:
    with pytest.raises(NoDraftError):
        draft(text).grafted({wanted})


def test_the_rest_has_no_source_text() -> None:
    module = draft("f(x)\ng(y)\n").grafted({1})
    first, second = (line.body[0] for line in module.body if isinstance(line, cst.SimpleStatementLine))
    assert code(first) != "f(x)"
    with source_text_only():
        assert code(second) == "g(y)"
        with pytest.raises(AttributeError):
            code(first)
    assert code(first) != "f(x)"


@pytest.mark.parametrize("text", ["name", "(name)", "a.b", "f(x, *y)", "x[1:2]", "'text'", "1.5", "a + b < c"])
def test_some_text_stands_for_each_expression_of_a_draft(text: str) -> None:
    """An error here would have all of a file parsed as soon as a rule quotes anything."""
    statement = draft(f"{text}\n").module.body[0]
    assert isinstance(statement, cst.SimpleStatementLine)
    assert isinstance(statement.body[0], cst.Expr)
    assert code(statement.body[0].value)
    with source_text_only(), pytest.raises(AttributeError):
        code(statement.body[0].value)


def test_the_share_counts_rows() -> None:
    assert draft("x = 1\ny = 2\ndef f():\n    return 1\n").share({1}) == pytest.approx(0.2)


def test_a_draft_that_is_filled_in_is_the_module_by_the_same_nodes() -> None:
    for text in TEXTS.values():
        drafted = draft(text)
        nodes = list(walk(drafted.module).ordered)
        drafted.fill_in(range(len(drafted.module.body)))
        assert drafted.module.deep_equals(cst.parse_module(text))
        assert all(own is node for own, node in zip(walk(drafted.module).ordered, nodes, strict=True))


@pytest.mark.parametrize("text", ["x = 'a' 'b'\n", "x = f'a' 'b'\n", "ﬁ = 1\n"])
def test_what_has_other_nodes_than_its_text_is_not_filled_in(text: str) -> None:
    with pytest.raises(NoDraftError):
        draft(text).fill_in({0})
