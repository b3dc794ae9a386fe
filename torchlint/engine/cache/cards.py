"""The words of the rules, kept so that a run that has nothing to check need not import the rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from torchlint.engine.cache.folder import CacheFolder
from torchlint.engine.cache.identity import program
from torchlint.rule import Default, RuleCard, RuleWords

_KIND = "rules"
_TEXTS = ("code", "name", "summary", "documentation")


def rule_words(folder: CacheFolder | None) -> Sequence[RuleWords]:
    """Return the words of every rule, in the order of the codes, from the cache if it has them."""
    cards = _cards(folder.read(_KIND, program())) if folder else ()
    return cards or built_in_rules()


@cache
def built_in_rules() -> Sequence[RuleWords]:
    """Return the rules themselves, which takes the import of all of them."""
    from torchlint.registry import rules

    return rules()


def keep_words(folder: CacheFolder, words: Sequence[RuleWords]) -> None:
    """Put the words of torchlint's own rules into the cache unless they came from there."""
    own = [word for word in words if word.code.startswith("TL")]
    if not all(isinstance(word, RuleCard) for word in own):
        rows = [[*(getattr(word, name) for name in _TEXTS), word.default.value, word.in_tests] for word in own]
        folder.write(_KIND, program(), rows)


def _cards(data: Any) -> tuple[RuleCard, ...]:
    """Return the cards that the data are, nothing if they are anything else."""
    if not isinstance(data, list) or not all(map(_is_row, data)):
        return ()
    return tuple(
        RuleCard(code, name, summary, documentation, Default(default), in_tests)
        for code, name, summary, documentation, default, in_tests in data
    )


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, list)
        and [type(item) for item in row] == [str, str, str, str, str, bool]
        and row[4] in [default.value for default in Default]
    )
