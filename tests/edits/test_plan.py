"""Which fixes go together, and which are left out because they do harm."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchlint.diagnostic import Range, TextEdit, TextFix
from torchlint.edits.plan import _Claim, compatible, joined, largest_sound
from torchlint.edits.text import Places, apply_edits, disjoint, merged
from torchlint.safety import Safety


def fix(*edits: tuple[int, int, str]) -> TextFix:
    return TextFix("m", tuple(TextEdit(Range(start, end), content) for start, end, content in edits), Safety.SAFE)


IMPORT = (0, 0, "import torch\n")


@pytest.mark.parametrize(
    ("fixes", "expected"),
    [
        ([fix((0, 2, "a")), fix((3, 4, "b"))], [0, 1]),
        ([fix((0, 2, "a")), fix((2, 4, "b"))], [0]),
        ([fix((0, 2, "a")), fix((1, 4, "b"))], [0]),
        ([fix((0, 0, "a")), fix((0, 0, "b"))], [0]),
        ([fix((0, 1, "a"), (8, 9, "a")), fix((4, 5, "b"))], [0]),
        ([fix((4, 5, "b")), fix((0, 1, "a"), (8, 9, "a")), fix((20, 21, "c"))], [0, 2]),
        ([fix(IMPORT, (4, 5, "a")), fix(IMPORT, (8, 9, "b"))], [0, 1]),
        ([fix(IMPORT, (4, 5, "a")), fix((0, 0, "import os\n"), (8, 9, "b"))], [0, 1]),
        ([fix((4, 4, "a\n"), (6, 7, "b"), (9, 9, "c\n")), fix((4, 4, "d\n"), (8, 8, "e"), (9, 9, "f\n"))], [0, 1]),
        ([fix((4, 9, "")), fix((6, 6, "a\n"), (20, 21, "b"))], [0]),
        ([fix((6, 6, "a\n"), (20, 21, "b")), fix((4, 9, ""))], [0]),
    ],
)
def test_fixes_that_touch_wait(fixes: list[TextFix], expected: list[int]) -> None:
    assert compatible(fixes) == expected


def test_a_shared_import_is_added_once() -> None:
    fixes = [fix(IMPORT, (4, 5, "a")), fix(IMPORT, (8, 9, "b"))]
    assert apply_edits("0123456789", joined(fixes)) == "import torch\n0123a567b9"


@pytest.mark.parametrize("bad", [set(), {0}, {3}, {1, 2}, {0, 1, 2, 3, 4, 5, 6}])
def test_the_fixes_that_do_harm_alone_are_left_out(bad: set[int]) -> None:
    assert largest_sound(range(7), lambda some: not bad & set(some)) == [n for n in range(7) if n not in bad]


def test_of_fixes_that_do_harm_together_the_first_stay() -> None:
    assert largest_sound([1, 2, 3, 4], lambda some: not {2, 3} <= set(some)) == [1, 2]


def test_few_questions_are_asked_where_few_do_harm() -> None:
    questions = []

    def is_sound(some: object) -> bool:
        questions.append(some)
        return 50 not in some  # type: ignore[operator]

    assert len(largest_sound(range(64), is_sound)) == 63
    assert len(questions) < 30


def touch(one: TextFix, other: TextFix) -> bool:
    """Return whether two fixes touch, by comparing each of their parts with each."""
    return any(
        any(a.start <= b.end and b.start <= a.end for a in first.hulls for b in second.hulls)
        or any(hull.start < line < hull.end for line in first.lines for hull in second.hulls)
        for first, second in permutations((_Claim(one), _Claim(other)))
    )


places = st.integers(0, 30)
edits = st.tuples(places, st.integers(0, 4), st.sampled_from(["", "x", "x\n"])).map(
    lambda drawn: TextEdit(Range(drawn[0], drawn[0] + drawn[1]), drawn[2])
)
any_fixes = st.lists(st.lists(edits, min_size=1, max_size=3), max_size=12)


@given(any_fixes)
def test_fixes_go_together_exactly_if_no_two_touch(drawn: list[list[TextEdit]]) -> None:
    fixes = [TextFix("m", edits, Safety.SAFE) for each in drawn if (edits := merged(each))]
    expected: list[int] = []
    for index, one in enumerate(fixes):
        if not any(touch(one, fixes[other]) for other in expected):
            expected.append(index)
    assert compatible(fixes) == expected


@given(st.lists(st.tuples(places, places)), places, places)
def test_ranges_are_found_by_place(pairs: list[tuple[int, int]], one: int, other: int) -> None:
    ranges = sorted(Range(min(pair), max(pair)) for pair in pairs)
    place = Range(min(one, other), max(one, other))
    found = Places(ranges)
    assert found.touch(place) == any(each.start <= place.end and place.start <= each.end for each in ranges)
    inside = [index for index, each in enumerate(ranges) if each.start < place.end and place.start < each.end]
    assert sorted(found.overlapping(place)) == inside
    joined_ranges = disjoint(ranges)
    assert all(one.end <= two.start for one, two in pairwise(joined_ranges))
    assert any(each.start < place.end and place.start < each.end for each in joined_ranges) == bool(inside)
