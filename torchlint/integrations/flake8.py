"""The flake8 plugin: the findings of ``torchlint check`` among those of flake8.

flake8 chooses files and filters codes; which rules run, and for which torch, is what torchlint's settings say. Rules
that flake8 is told to select by more than the prefix ``TL`` are switched on as well.
"""

from __future__ import annotations

import ast
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torchlint.suppress import SYNTAX_ERROR
from torchlint.version import __version__

if TYPE_CHECKING:
    import argparse

    from torchlint.diagnostic import Diagnostic
    from torchlint.engine.plan import Plan
    from torchlint.source import Source

PREFIX = "TL"
_LOGGER = logging.getLogger("torchlint")


class Plugin:
    """One file, as flake8 hands it over."""

    name = "torchlint"
    version = __version__
    selected: ClassVar[tuple[str, ...]] = ()
    """What flake8's options select of torchlint's rules by name, set once when flake8 has read its options."""

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        self._filename = filename
        self._text = "".join(lines)

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Note which rules flake8 is told to select; a code that is no rule's selects nothing, as of any plugin."""
        from torchlint.registry import rules

        chosen = (*(options.select or ()), *(options.extend_select or ()))
        codes = [rule.code for rule in rules()]
        cls.selected = tuple(
            start for start in chosen if len(start) > len(PREFIX) and any(code.startswith(start) for code in codes)
        )

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """Yield row, offset in the row, ``code message`` and the plugin, once per finding."""
        from torchlint.engine.plan import PlanError

        try:
            found = self._diagnostics()
        except PlanError as error:  # one line that flake8 shows, where an exception would end it with a traceback
            yield 1, 0, f"{SYNTAX_ERROR} torchlint looked for nothing: {error}", type(self)
            return
        for diagnostic in found:
            words = " ".join(f"{diagnostic.code} {diagnostic.message}".split())
            yield diagnostic.start.row, diagnostic.start.column - 1, words, type(self)

    def _diagnostics(self) -> Sequence[Diagnostic]:
        from torchlint.engine.file import check_file

        planned = self._planned()
        if planned is None:
            return ()
        source, plan = planned
        result = check_file(source, plan.settings, plan.rules(), plan.target)
        for problem in result.errors:
            _LOGGER.error("torchlint: %s", problem)
        for warning in result.warnings:
            _LOGGER.warning("torchlint: %s", warning)
        return result.diagnostics

    def _planned(self) -> tuple[Source, Plan] | None:
        """Return the text with the rules and the target that hold for it, None if the settings exclude the file."""
        from torchlint.engine.plan import make_plan, plan_for_stdin
        from torchlint.source import source_from_text

        overrides: Mapping[str, Any] = {"extend_select": self.selected} if self.selected else {}
        if not os.path.isfile(self._filename):
            return plan_for_stdin(self._text, self._filename, overrides=overrides, isolated=False, config=None)
        overrides = {**overrides, "force_exclude": True}
        planned = make_plan([self._filename], overrides=overrides, isolated=False, config=None)
        if not planned.tasks:
            return None
        return source_from_text(self._text, self._filename), planned.plans[planned.tasks[0].plan]
