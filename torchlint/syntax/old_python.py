"""Programs from before Python 3.7, in which `async` was a name: `x.cuda(async=True)` is now `non_blocking=True`."""

from __future__ import annotations

import re

_NAME = re.compile(r"\basync\b(?!\s+(?:def|for|with)\b)")
_STAND_IN = "Async"
"""As long as the name that it stands for, so that all offsets stay."""

OLD_KEYWORDS = {_STAND_IN: "non_blocking"}
"""What arguments of torch that had this name are called since."""


def without_old_names(text: str) -> str | None:
    """Return the text with another name in place of `async`, None where nothing has that name."""
    renamed = _NAME.sub(_STAND_IN, text)
    return None if renamed == text else renamed


def as_written(text: str) -> str:
    """Return words about such a text with the name that stands in it."""
    return text.replace(_STAND_IN, "async")
