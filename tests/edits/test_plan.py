"""Which fixes go together, and which are left out because they do harm."""

from __future__ import annotations

import pytest

from torchlint.diagnostic import Range, TextEdit, TextFix
from torchlint.edits.plan import compatible, joined, largest_sound
from torchlint.edits.text import apply_edits
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
