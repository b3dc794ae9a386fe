"""What the other files of a project say against fixes that are not safe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.registry import rules_of
from torchlint.safety import Safety
from torchlint.suppress import SYNTAX_ERROR

if TYPE_CHECKING:
    from torchlint.diagnostic import Diagnostic
    from torchlint.engine.result import FileResult
    from torchlint.source import Source

_WORD = re.compile(r"\w+")
_BOUND = re.compile(r"^[ \t]*(\w+) = ", re.MULTILINE)
_Places = frozenset[tuple[str, int]]


class Surroundings:
    """Reads a file along with each module that it imports, and with each that imports it."""

    def __init__(self, check: Callable[[Source], FileResult]) -> None:
        self._check = check
        self._read: tuple[str, list[tuple[str, _Places]]] = ("", [])
        """The text that was read last, and what is found in it along with each other file."""

    def objection(self, source: Source, diagnostic: Diagnostic, found: Sequence[Diagnostic]) -> str:
        """Return which file speaks against the fix of a finding, empty if none does; ``found`` is all that is.

        One does if the finding, or its fix, is not there where both files are read as one: the fix relies on what its
        file suggests, and the other shows more of it. A safe fix relies on proof, and asks nobody; nor does one whose
        rule says that no other code can see what it changes.
        """
        is_safe = diagnostic.fix is None or diagnostic.fix.safety is Safety.SAFE
        if is_safe or not any(rule.asks_project for rule in rules_of(frozenset((diagnostic.code,)))):
            return ""
        if self._read[0] != source.text:
            self._read = (source.text, list(self._found(source, _new_names(source.text, found))))
        place = (diagnostic.code, diagnostic.range.start)
        against = next((name for name, places in self._read[1] if place not in places), "")
        return f"{against}, read along with this file, speaks against it" if against else ""

    def _found(self, source: Source, new: frozenset[str]) -> Iterator[tuple[str, _Places]]:
        """Yield what is found in a text along with each other file, by code and place."""
        from torchlint.project.joined import joined
        from torchlint.project.modules import neighbours, read_module

        path = Path(source.path)
        own = read_module(path.resolve(), source.text) if path.suffix == ".py" and path.is_file() else None
        if own is None:
            return
        for other in neighbours(own):
            text = joined(own, other, new)
            result = self._check(replace(source, text=text)) if text is not None else None
            if result is None or result.errors or any(d.code == SYNTAX_ERROR for d in result.diagnostics):
                continue
            yield other.path.name, frozenset((d.code, d.range.start) for d in result.diagnostics if d.fix)


def _new_names(text: str, found: Sequence[Diagnostic]) -> frozenset[str]:
    """Return the variables that fixes would bring into a text: another file may have one of that name too."""
    written = (edit.content for diagnostic in found if diagnostic.fix for edit in diagnostic.fix.edits)
    bound = {name for content in written for name in _BOUND.findall(content)}
    return frozenset(bound - set(_WORD.findall(text)))
