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
    return next(iter(alike or difflib.get_close_matches(word, known, n=1, cutoff=0.5)), "")


def _shape(word: str) -> str:
    return word.upper().translate(_LOOKALIKES)
