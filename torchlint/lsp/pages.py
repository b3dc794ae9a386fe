"""The pages of the rules, as what an editor shows of a finding and as files that it can open."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent

from torchlint import evidence
from torchlint.diagnostic import Diagnostic
from torchlint.registry import rules
from torchlint.report.page import fix_words, page
from torchlint.rule import Rule


class PageFolder:
    """A temporary folder of the pages that were asked for: there is no address of them on the web."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._addresses: dict[str, str | None] = {}

    def address(self, code: str) -> str | None:
        """Return where the page of a rule can be opened, None for what is no rule or if it cannot be written."""
        if code not in self._addresses:
            self._addresses[code] = self._written(code)
        return self._addresses[code]

    def _written(self, code: str) -> str | None:
        rule = _by_code().get(code)
        if rule is None:
            return None
        try:
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="torchlint-", ignore_cleanup_errors=True)
            path = Path(self._folder.name, f"{rule.name}.md")
            path.write_text(page(rule), encoding="utf-8")
        except OSError:
            return None
        return Path(os.path.realpath(path)).as_uri()

    def close(self) -> None:
        """Remove the folder."""
        if self._folder:
            self._folder.cleanup()


@cache
def _by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in rules()}


def hover_text(findings: Sequence[Diagnostic]) -> str:
    """Return what there is to know about findings as Markdown: why, what to write, what it is worth; once per rule."""
    return "\n\n---\n\n".join(_about(code, name) for code, name in dict.fromkeys((d.code, d.name) for d in findings))


def _about(code: str, name: str) -> str:
    rule = _by_code().get(code)
    if rule is None:
        return f"**{code} {name}**"
    measured = [f"- {measurement.sentence}" for measurement in evidence.for_rule(code)]
    parts = [
        f"**{code} {name}** · fix: {fix_words(rule)}",
        dedent(rule.documentation).strip().replace("\n## ", "\n### "),
        "### What it is worth",
        "\n".join(measured) or "Not measured: `torchlint bench` has no case for this rule.",
        f"`torchlint rules {code}` shows the whole page.",
    ]
    return "\n\n".join(parts)
