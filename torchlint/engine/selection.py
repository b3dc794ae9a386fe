"""Which rules are enabled, from codes, prefixes, names and ALL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from torchlint.project.patterns import ignored_selectors
from torchlint.rule import Default, RuleWords
from torchlint.spelling import nearest
from torchlint.suppress import BUILT_IN

if TYPE_CHECKING:
    from torchlint.diagnostic import Severity
    from torchlint.semantics.process.target import Target
    from torchlint.settings import Settings

EVERYTHING = "ALL"
_DEFAULT_SET = 0
_EXACT = 100


class SelectionError(ValueError):
    """A selector names no rule."""

    def __init__(self, message: str, selector: str) -> None:
        super().__init__(message)
        self.selector = selector


def specificity(selector: str, code: str, name: str) -> int:
    """Return how narrowly the selector names this rule, -1 if it does not."""
    if selector == EVERYTHING:
        return _DEFAULT_SET
    if selector in (code, name):
        return _EXACT
    return len(selector) if code.startswith(selector) else -1


def select(
    rules: Sequence[RuleWords], *, chosen: Sequence[str] | None, extended: Sequence[str], ignored: Sequence[str]
) -> frozenset[str]:
    """Return the enabled codes; the narrower selector wins, and of equally narrow ones ``ignored`` does.

    ``chosen`` None stands for the default set.

    Raises:
        SelectionError: a selector matches no rule.
    """
    for selector in (*(chosen or ()), *extended, *ignored):
        check_selector(selector, rules)
    known = [(rule.code, rule.name, rule.default is Default.ON) for rule in rules]
    known += [(code, name, True) for code, name in BUILT_IN.items()]
    enabled = set()
    for code, name, on_by_default in known:
        wanted = [specificity(selector, code, name) for selector in (*(chosen or ()), *extended)]
        if chosen is None and on_by_default:
            wanted.append(_DEFAULT_SET)
        unwanted = [specificity(selector, code, name) for selector in ignored]
        if max(wanted, default=-1) > max(unwanted, default=-1):
            enabled.add(code)
    return frozenset(enabled)


def is_built_in_enabled(code: str, settings: Settings, path: str) -> bool:
    """Return whether a finding that no rule makes is enabled in a file; it is in the default set."""

    def narrowest(selectors: Iterable[str]) -> int:
        return max((specificity(selector, code, BUILT_IN[code]) for selector in selectors), default=-1)

    wanted = narrowest((*(settings.select or (EVERYTHING,)), *settings.extend_select))
    return wanted > narrowest(settings.ignore) and narrowest(ignored_selectors(settings, path)) < 0


def built_in_severity(code: str, settings: Settings, otherwise: Severity) -> Severity:
    """Return the severity of a finding that no rule makes: that of the narrowest selector that names it."""
    ranks = {selector: specificity(selector, code, BUILT_IN[code]) for selector in settings.severity}
    chosen = max(ranks, key=ranks.__getitem__, default="")
    return settings.severity[chosen] if ranks.get(chosen, -1) >= 0 else otherwise


def is_built_in_fixable(code: str, settings: Settings) -> bool:
    """Return whether the settings let the fix of a finding be offered that no rule makes."""

    def narrowest(selectors: Iterable[str]) -> int:
        return max((specificity(selector, code, BUILT_IN[code]) for selector in selectors), default=-1)

    return narrowest((EVERYTHING,) if settings.fixable is None else settings.fixable) > narrowest(settings.unfixable)


def check_selector(selector: str, rules: Iterable[RuleWords]) -> None:
    """Raise SelectionError, with the closest known selector, unless the selector names a rule."""
    codes, words = set(BUILT_IN), {EVERYTHING, *BUILT_IN, *BUILT_IN.values()}
    for rule in rules:
        codes.add(rule.code)
        words |= {rule.code, rule.name}
    if selector in words or (len(selector) > 1 and any(code.startswith(selector) for code in codes)):
        return
    raise SelectionError(f"unknown rule {selector!r}{hint_at(selector, words)}", selector)


def hint_at(selector: str, words: Iterable[str]) -> str:
    """Return what to say of a word that names no rule: whose it is, which one is near, or where to look."""
    from torchlint.maps import same_as

    theirs, close = same_as(selector), nearest(selector, sorted(words))
    if theirs:
        return f": {theirs}"
    return f", did you mean `{close}`?" if close else "; `torchlint rules` lists them"


@lru_cache(maxsize=256)
def holds_for(specifier: str, target: Target) -> bool:
    """Return whether a rule with this torch specifier speaks about projects with this target."""
    if not specifier:
        return True
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(specifier).contains(str(target))
