"""The fixture folders: one per rule, with the expected findings marked on the lines they are about."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from torchlint.diagnostic import Diagnostic
from torchlint.engine.file import check_file
from torchlint.engine.fix import fix_file
from torchlint.engine.result import FileResult
from torchlint.engine.selection import holds_for
from torchlint.registry import rules
from torchlint.rule import Default, Rule
from torchlint.semantics.process.target import UNKNOWN_TARGET, Target
from torchlint.settings import Settings
from torchlint.source import Source, source_from_text

FIXTURES = Path(__file__).parent.parent / "fixtures"
TORCH_VERSIONS = [(1, minor) for minor in range(8, 14)] + [(2, minor) for minor in range(15)]

_MARK = re.compile(r"[ \t]*#[ \t]*expect:[ \t]*(?P<findings>.*)$")
_EXPECTED = re.compile(r"(?P<code>TL\d{3})(?:\[(?P<safety>safe|unsafe|display|none)\])?")
_SILENT = re.compile(r"#[ \t]*silent:[ \t]*(?P<ids>[a-z0-9-]+(?:[ \t]*,[ \t]*[a-z0-9-]+)*)")
_HEADER = re.compile(r"#[ \t]*(?P<key>target-torch|num-workers):[ \t]*(?P<value>\S+)[ \t]*$")
_CLAUSE = re.compile(r"""\.silent\(\s*["'](?P<id>[^"']+)["']""")


@dataclass(frozen=True)
class Expected:
    """One mark: a code on a row, with the safety of the fix where the mark states it."""

    row: int
    code: str
    safety: str | None = None


@dataclass(frozen=True)
class FixtureFile:
    """One file of a fixture folder, as torchlint sees it and as its marks describe it."""

    path: Path
    rule: Rule | None
    """The rule of the folder; None for the demo."""

    def __str__(self) -> str:
        return self.path.relative_to(FIXTURES).as_posix()

    @cached_property
    def written(self) -> str:
        """Return the text with its marks; newlines are left as they are."""
        return self.path.read_bytes().decode("utf-8")

    @cached_property
    def text(self) -> str:
        """Return the text that is linted: without the marks, which would be comments inside edits."""
        return without_marks(self.written)

    @cached_property
    def expected(self) -> list[Expected]:
        """Return the marks, sorted."""
        found = []
        for row, line in enumerate(self.written.splitlines(), start=1):
            if mark := _MARK.search(line):
                findings = [_EXPECTED.fullmatch(part.strip()) for part in mark["findings"].split(",")]
                if not all(findings):
                    raise AssertionError(f"{self}:{row}: write `# expect: TL201` or `# expect: TL201[safe], TL301`")
                found += [Expected(row, part["code"], part["safety"]) for part in findings if part]
        return sorted(found, key=lambda expected: (expected.row, expected.code))

    @cached_property
    def silent_ids(self) -> set[str]:
        """Return the silence clauses that the file has near misses for."""
        return {name.strip() for mark in _SILENT.finditer(self.written) for name in mark["ids"].split(",")}

    @cached_property
    def options(self) -> dict[str, str]:
        """Return the options that the comments at the top set."""
        found = {}
        for line in self.written.splitlines():
            if not line.startswith("#"):
                break
            if header := _HEADER.match(line):
                found[header["key"]] = header["value"]
        return found

    @property
    def target(self) -> Target:
        """Return the torch version that the file is written for."""
        return parse_target(self.options.get("target-torch"))

    @property
    def settings(self) -> Settings:
        """Return the settings with what the header says."""
        workers = self.options.get("num-workers")
        return replace(Settings(), num_workers=int(workers)) if workers else Settings()

    def check(self, text: str | None = None, chosen: Iterable[Rule] | None = None) -> FileResult:
        """Return what the rules (those of the default set and the folder's own) say of the text."""
        return check_file(self.source(text), self.settings, list(chosen or self.default_rules()), self.target)

    def fix(self, text: str | None = None, chosen: Iterable[Rule] | None = None) -> str:
        """Return the text after all fixes, unsafe ones included."""
        chosen = list(chosen or self.default_rules())
        return fix_file(self.source(text), self.settings, chosen, self.target, unsafe=True).text

    @cached_property
    def by_all_rules(self) -> FileResult:
        """Return what all rules say of the file: several tests ask."""
        return self.check(chosen=rules())

    @cached_property
    def fixed_by_all_rules(self) -> str:
        """Return the file after the fixes of all rules: several tests ask."""
        return self.fix(chosen=rules())

    def source(self, text: str | None = None) -> Source:
        """Return the file (or another text in its place) as a source."""
        return source_from_text(self.text if text is None else text, self.path.name)

    def default_rules(self) -> list[Rule]:
        """Return the default set and the rule of the folder."""
        return [rule for rule in rules() if rule.default is Default.ON or rule is self.rule]


def without_marks(text: str) -> str:
    """Return the text without `# expect:` comments and the blanks before them."""
    return re.sub(r"[ \t]*#[ \t]*expect:[^\r\n]*", "", text)


def parse_target(version: str | None) -> Target:
    """Return the target for a version such as "2.0"; None: nothing is known."""
    if version is None:
        return UNKNOWN_TARGET
    major, minor = version.split(".")
    return Target((int(major), int(minor)), "the fixture")


def oldest_target(rule: Rule) -> Target:
    """Return the target for examples: unknown, or the oldest version for which the rule holds."""
    if holds_for(rule.torch, UNKNOWN_TARGET):
        return UNKNOWN_TARGET
    versions = (Target(version, "the rule") for version in TORCH_VERSIONS)
    return next(target for target in versions if holds_for(rule.torch, target))


def seen(diagnostics: Iterable[Diagnostic], expected: Iterable[Expected]) -> list[Expected]:
    """Return the findings in the form of marks; safeties are left out where the mark on that row leaves them out."""
    unstated = {(mark.row, mark.code) for mark in expected if mark.safety is None}
    found = [
        Expected(d.start.row, d.code, None if (d.start.row, d.code) in unstated else safety(d)) for d in diagnostics
    ]
    return sorted(found, key=lambda mark: (mark.row, mark.code))


def safety(diagnostic: Diagnostic) -> str:
    """Return the safety of the fix in one word, "none" where there is no fix."""
    return diagnostic.fix.safety.value if diagnostic.fix else "none"


def guarded_clauses(rule: Rule) -> set[str]:
    """Return the silence clauses that the rule asks through `rule.silent`, which a test can switch off."""
    module = sys.modules[f"torchlint.rules.{rule.family.value}.{rule.name.replace('-', '_')}"]
    return {match["id"] for match in _CLAUSE.finditer(inspect.getsource(module))}


@contextmanager
def switched_off(rule: Rule, clause: str) -> Iterator[None]:
    """Switch a silence clause off for the block."""
    rule.switched_off.add(clause)
    try:
        yield
    finally:
        rule.switched_off.discard(clause)


def folder(rule: Rule) -> Path:
    """Return the fixture folder of a rule."""
    return FIXTURES / rule.name


@cache
def fixture_files(pattern: str = "*.py") -> tuple[FixtureFile, ...]:
    """Return the fixture files of all rules that match the pattern, `equivalence.py` left out."""
    return tuple(
        FixtureFile(path, rule)
        for rule in rules()
        for path in sorted(folder(rule).glob(pattern))
        if path.name != "equivalence.py"
    )


@cache
def every_file() -> tuple[FixtureFile, ...]:
    """Return all fixture files and the demo."""
    return (*fixture_files(), *(FixtureFile(path, None) for path in sorted((FIXTURES / "demo").glob("*.py"))))
