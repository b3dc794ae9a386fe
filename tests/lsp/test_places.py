"""Offsets, positions and edits agree, whatever the text is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from pygls.workspace.position_codec import PositionCodec

from tests.lsp.conftest import applied
from torchlint.edits.text import apply_edits
from torchlint.lsp.places import Places, line_edits
from torchlint.source import source_from_text

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
TEXTS = st.text(st.sampled_from("ab \t\n\r\x0c\x85\u2028\u00e9\N{FIRE}\ufeff"), max_size=30)


def places(text: str, units: str) -> Places:
    """Return the places of a text for a client that counts in these units."""
    return Places(source_from_text(text), PositionCodec(units))


def cuts_a_newline(text: str, offset: int) -> bool:
    """Return whether an offset lies between the two characters of a newline, where no position is."""
    return text[offset - 1 : offset + 1] == "\r\n" and offset > 0


@pytest.mark.parametrize("units", UNITS)
@given(text=TEXTS)
def test_positions_lead_back_to_their_offsets(units: str, text: str) -> None:
    inner = text.removeprefix("\ufeff")
    found = places(text, units)
    offsets = [offset for offset in range(len(inner) + 1) if not cuts_a_newline(inner, offset)]
    assert [found.offset(found.position(offset)) for offset in offsets] == offsets


@pytest.mark.parametrize("units", UNITS)
@given(old=TEXTS, new=TEXTS)
def test_the_edits_make_one_text_of_the_other(units: str, old: str, new: str) -> None:
    new = new.lstrip("\ufeff")
    mark = "\ufeff" if old.startswith("\ufeff") else ""
    assert applied(old, places(old, units).edits(new), *UNITS[units]) == mark + new


@given(old=TEXTS, new=TEXTS)
def test_edits_are_sorted_and_disjoint_and_leave_alone_what_is_the_same(old: str, new: str) -> None:
    edits = list(line_edits(old, new))
    assert apply_edits(old, edits) == new
    ends = [0, *(edit.range.end for edit in edits)]
    assert all(end <= edit.range.start for end, edit in zip(ends, edits, strict=False))
    assert not list(line_edits(old, old))


def test_only_the_lines_that_differ_are_replaced() -> None:
    old = "".join(f"line {number}\n" for number in range(100))
    edits = list(line_edits(old, old.replace("line 10\n", "").replace("line 50\n", "other\n")))
    assert [(old[edit.range.start : edit.range.end], edit.content) for edit in edits] == [
        ("line 10\n", ""),
        ("line 50\n", "other\n"),
    ]


@pytest.mark.parametrize(
    ("position", "offset"), [((0, 99), 3), ((1, 0), 4), ((1, 99), 6), ((9, 0), 6), ((0, 2), 2)], ids=str
)
def test_positions_that_do_not_exist_are_the_nearest_that_do(position: tuple[int, int], offset: int) -> None:
    assert places("abc\nde", "utf-16").offset(types.Position(*position)) == offset
