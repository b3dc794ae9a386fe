"""The pages of the rules, as what an editor shows of a finding and as files that it can open."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent

from torchlint.diagnostic import Diagnostic
from torchlint.report.page import fix_words, measured, page
from torchlint.rule import Rule
from torchlint.version import __version__


class PageFolder:
    """The pages that were asked for, in a folder of this user: there is no address of them on the web.

    It is the same for all servers and stays behind: many editors kill their servers.
    """

    def __init__(self) -> None:
        self._addresses: dict[str, str | None] = {}

    def address(self, rule: Rule | None) -> str | None:
        """Return where the page of a rule can be opened, None if it cannot be written."""
        if rule is None:
            return None
        if rule.code not in self._addresses:
            self._addresses[rule.code] = _written(rule)
        return self._addresses[rule.code]


def _written(rule: Rule) -> str | None:
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(os.path.realpath(tempfile.gettempdir()), f"torchlint-{__version__}-pages-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or user not in ("user", status.st_uid):
            return None  # somebody else put it there
        path = folder / f"{rule.name}.md"
        path.write_text(page(rule), encoding="utf-8")
    except OSError:
        return None
    return path.as_uri()


def hover_text(findings: Sequence[Diagnostic], rules: Mapping[str, Rule]) -> str:
    """Return what there is to know about findings as Markdown: why, what to write, what it is worth; once per rule."""
    names = dict.fromkeys((found.code, found.name) for found in findings)
    return "\n\n---\n\n".join(_about(rules[code]) if code in rules else f"**{code} {name}**" for code, name in names)


def _about(rule: Rule) -> str:
    parts = [
        f"**{rule.code} {rule.name}** \u00b7 fix: {fix_words(rule)}",
        dedent(rule.documentation).strip().replace("\n## ", "\n### "),
        "### What it is worth",
        "\n".join(measured(rule.code, about_speed=rule.about_speed)),
        f"`torchlint rules {rule.code}` shows the whole page.",
    ]
    return "\n\n".join(parts)
