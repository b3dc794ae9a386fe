"""Comments that silence findings: ``# torchlint: ignore[TL101] reason``, ``# noqa: TL101``, ``# torchlint: skip-file``.

A comment silences a finding if its row is one of the finding's ``suppression_rows``, or its ``noqa_row`` where there
are none: the first and the last row of the innermost simple statement, the rows of the header of a compound one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from torchlint.diagnostic import Diagnostic, Range
from torchlint.source import Source
from torchlint.spelling import nearest

SYNTAX_ERROR = "TL000"
UNUSED = "TL001"
BUILT_IN = MappingProxyType({SYNTAX_ERROR: "syntax-error", UNUSED: "unused-suppression"})
"""Findings that no rule makes, by code."""

TORCHFIX_CODES: Mapping[str, str] = MappingProxyType(
    {
        "TOR001": "TL801",
        "TOR002": "TL803",
        "TOR003": "TL804",
        "TOR004": "TL801",
        "TOR101": "TL802",
        "TOR102": "TL805",
        "TOR103": "TL802",
        "TOR104": "TL806",
        "TOR105": "TL806",
        "TOR106": "TL412",
        "TOR107": "TL412",
        "TOR108": "TL412",
        "TOR201": "TL807",
        "TOR202": "TL808",
        "TOR203": "TL809",
        "TOR401": "TL101",
        "TOR402": "TL301",
    }
)
"""TorchFix's codes for what our rules find too."""

_MENTION = re.compile(r"noqa|torchlint\s*:", re.IGNORECASE)
_STRING_OR_COMMENT = re.compile(
    r"""
      '''[^\\']*(?:(?:\\[\s\S]|'(?!''))[^\\']*)*(?:'''|\\?\Z)
    | \"\"\"[^\\"]*(?:(?:\\[\s\S]|"(?!""))[^\\"]*)*(?:\"\"\"|\\?\Z)
    | '(?:[^\\'\r\n]|\\[\s\S])*'          | "(?:[^\\"\r\n]|\\[\s\S])*"
    | (?P<comment>\#[^\r\n]*)
    """,
    re.VERBOSE,
)
"""A string that is not closed goes on to the end. Each character can be matched in one way only: no text takes long."""

_OURS = re.compile(r"#\s*torchlint\s*:\s*(?P<verb>[\w-]*)(?P<list>\s*\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)
_NOQA = re.compile(r"#\s*noqa(?!\w)(?P<colon>\s*:\s*(?P<codes>[A-Z]+\d+\b(?:[\s,]+[A-Z]+\d+\b)*)?)?", re.IGNORECASE)
_VERBS = ("ignore", "skip-file")
_OTHER_VERBS = MappingProxyType({"disable": "ignore", "noqa": "ignore", "ignore-file": "skip-file", "off": "ignore"})
"""What comments for other tools say."""


class Suppression(NamedTuple):
    """One comment that silences findings on its row."""

    row: int
    range: Range
    """Of the comment without what stands after it: ``# torchlint: ignore[TL101]``."""

    codes: tuple[str, ...] | None
    """The codes that it names, None for all."""

    ours: bool
    """Whether it speaks to torchlint alone, so that we may judge it."""

    listed: tuple[tuple[str, str], ...] = ()
    """Of ours: each word of the list with its code, which is empty for a word that names no rule."""


class Suppressions(NamedTuple):
    """All suppressing comments of a file."""

    comments: tuple[Suppression, ...] = ()
    skip_file: bool = False
    warnings: tuple[str, ...] = ()
    """One line for each comment of ours that names what does not exist."""


class Unused(NamedTuple):
    """A comment of ours that names codes of enabled rules that find nothing there."""

    suppression: Suppression
    codes: tuple[str, ...]
    """Empty where the comment names none and silences nothing."""


class Outcome(NamedTuple):
    """What the comments make of the findings."""

    kept: tuple[Diagnostic, ...]
    suppressed: tuple[Diagnostic, ...] = ()
    unused: tuple[Unused, ...] = ()
    warnings: tuple[str, ...] = ()
    skip_file: bool = False


def apply(
    source: Source, diagnostics: Sequence[Diagnostic], enabled: Collection[str], known: Mapping[str, str] | None = None
) -> Outcome:
    """Return which findings are kept.

    ``enabled`` are the codes that were looked for: the others' comments cannot be called unused. ``known`` gives the
    name of each code; by default these are the built-in rules.
    """
    text = source.text.lower()  # a search without regard to case takes fifty times as long
    if "noqa" not in text and ("torchlint" not in text or not _MENTION.search(text)):
        return Outcome(tuple(diagnostics))
    found = find_suppressions(source, _built_in_names() if known is None else known)
    if found.skip_file:
        return Outcome((), tuple(diagnostics), skip_file=True, warnings=found.warnings)
    used: set[tuple[Suppression, str]] = set()
    kept: list[Diagnostic] = []
    suppressed: list[Diagnostic] = []
    by_row: dict[int, list[Suppression]] = {}
    for comment in found.comments:
        by_row.setdefault(comment.row, []).append(comment)
    for diagnostic in diagnostics:
        silencing = [] if diagnostic.code == SYNTAX_ERROR else list(_silencing(diagnostic, by_row))
        used.update((comment, diagnostic.code) for comment in silencing)
        (suppressed if silencing else kept).append(diagnostic)
    return Outcome(tuple(kept), tuple(suppressed), tuple(_unused(found.comments, used, enabled)), found.warnings)


def _built_in_names() -> dict[str, str]:
    from torchlint.registry import words

    return {**{rule.code: rule.name for rule in words()}, **BUILT_IN}


def _silencing(diagnostic: Diagnostic, by_row: Mapping[int, Iterable[Suppression]]) -> Iterator[Suppression]:
    for row in diagnostic.suppression_rows or (diagnostic.noqa_row,):
        for comment in by_row.get(row, ()):
            if comment.codes is None or diagnostic.code in comment.codes:
                yield comment


def _unused(
    comments: Iterable[Suppression], used: Collection[tuple[Suppression, str]], enabled: Collection[str]
) -> Iterator[Unused]:
    silencing = {comment for comment, _ in used}
    for comment in comments:
        if not comment.ours:
            continue
        codes = tuple(code for code in comment.codes or () if code in enabled and (comment, code) not in used)
        if codes or (comment.codes is None and comment not in silencing):
            yield Unused(comment, codes)


def find_suppressions(source: Source, known: Mapping[str, str]) -> Suppressions:
    """Return the suppressing comments of a text; what only looks like one, within a string, is none."""
    comments: list[Suppression] = []
    warnings: list[str] = []
    skip_file = False
    for start, comment in _comments(source.text):
        row = source.position(start).row
        for match in _OURS.finditer(comment):
            verb = match["verb"].lower()
            if verb == "skip-file":
                skip_file = True
            elif verb == "ignore":
                listed = _listed(match["codes"], known)
                warnings += [f"{source.place(row)}: {sentence}" for sentence in _mistakes(listed, known)]
                codes = None if listed is None else tuple(dict.fromkeys(code for _, code in listed if code))
                comments.append(Suppression(row, _range(start, match), codes, ours=True, listed=listed or ()))
            else:
                warnings.append(f"{source.place(row)}: {_unknown('torchlint comment', verb, _VERBS)}")
        comments += [
            Suppression(row, _range(start, match), _noqa_codes(match["codes"]), ours=False)
            for match in _NOQA.finditer(comment)
            if match["codes"] or not match["colon"]
        ]
    return Suppressions(tuple(comments), skip_file, tuple(warnings))


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each comment that may be meant for us."""
    for match in _STRING_OR_COMMENT.finditer(text):
        comment = match["comment"]
        if comment and _MENTION.search(comment):
            yield match.start(), comment


def _range(start: int, match: re.Match[str]) -> Range:
    return Range(start + match.start(), start + len(match.string[: match.end()].rstrip()))


def _listed(listed: str | None, known: Mapping[str, str]) -> tuple[tuple[str, str], ...] | None:
    """Return the words of a list in brackets (codes or names) with the codes that they name, None without a list."""
    if listed is None:
        return None
    code_of = {**{name: code for code, name in known.items()}, **{code.lower(): code for code in known}}
    code_of.update((theirs.lower(), code) for theirs, code in TORCHFIX_CODES.items())
    return tuple((word, code_of.get(word.lower(), "")) for word in re.split(r"[\s,]+", listed) if word)


def _mistakes(listed: tuple[tuple[str, str], ...] | None, known: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a list, in words."""
    if listed == ():
        yield "`torchlint: ignore[]` names no rule"
    for word, code in listed or ():
        if not code:
            yield _unknown("rule", word, (*known, *known.values()))


def _unknown(kind: str, word: str, choices: Iterable[str]) -> str:
    close = _OTHER_VERBS.get(word) or nearest(word, choices)
    return f"unknown {kind} `{word}`" + (f", did you mean `{close}`?" if close else "")


def _noqa_codes(listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    codes = [word.upper() for word in re.split(r"[\s,]+", listed)]
    return tuple(dict.fromkeys(TORCHFIX_CODES.get(code, code) for code in codes))
