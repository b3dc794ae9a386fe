"""What a word that nobody knows was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable

_LOOKALIKES = str.maketrans("OIL", "011")


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return the choice that is most like a word, empty where none is near.

    Letters that look like digits count as these: ``TL3O1`` is ``TL301``.
    """
    import difflib  # only now: most words are known

    known = list(choices)
    alike = [choice for choice in known if _shape(choice) == _shape(word)]
    return next(iter(alike or difflib.get_close_matches(word, known, n=1, cutoff=0.55)), "")


def _shape(word: str) -> str:
    return word.upper().translate(_LOOKALIKES)


def misspelt(word: str, known: Iterable[str], others: Iterable[str] = ()) -> str:
    """Return the one known word that a word is a slip of the pen for, empty where it is none or nobody can tell.

    Up to two letters are wrong, missing, too many or swapped; one in a short word, also in one between underscores.
    ``others`` exist as well. A word that differs in its numbers only is another word: ``fp8`` is not a slip for
    ``fp16``.
    """
    choices = frozenset(known)
    if word in choices or word in others:
        return ""
    found = [choice for choice in choices if _is_slip(word, choice)]
    return found[0] if len(found) == 1 else ""


def _is_slip(word: str, meant: str) -> bool:
    if word.casefold() == meant.casefold():
        return True
    if _without_digits(word) == _without_digits(meant):
        return False
    parts, wanted = word.split("_"), meant.split("_")
    pairs = zip(parts, wanted, strict=True) if len(parts) == len(wanted) else ()
    if any(len(right) <= 4 and _edits(part, right) > 1 for part, right in pairs):
        return False
    return len(meant) > 4 and _edits(word, meant) <= (2 if len(meant) > 9 else 1)


def _without_digits(word: str) -> str:
    return "".join(letter for letter in word if not letter.isdigit())


def _edits(one: str, other: str) -> int:
    """How many letters have to be put in, left out, exchanged or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if last and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
