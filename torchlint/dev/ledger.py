"""The ledgers: findings on public code, drawn at random and judged one by one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HEADER = ("repository", "commit", "path", "line", "finding|silent", "verdict", "sentence")
VERDICTS = ("true", "false", "arguable")
ENOUGH_FINDINGS = 20
ENOUGH_SILENT = 20
ENOUGH_REPOSITORIES = 8
ENOUGH_PRECISION = 0.9


class LedgerError(Exception):
    """A ledger is not well formed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One judged place: of a finding whether it is right, of a silence whether nothing is missing."""

    repository: str
    commit: str
    path: str
    line: int
    """0 where the whole file was judged."""

    is_finding: bool
    verdict: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """All judged places of one rule."""

    rule: str
    entries: tuple[Entry, ...]

    def count(self, *, is_finding: bool, verdict: str | None = None) -> int:
        """Return how many findings (or silences) there are, of one verdict if it is given."""
        return sum(e.is_finding is is_finding and verdict in (None, e.verdict) for e in self.entries)

    @property
    def repositories(self) -> int:
        """How many repositories the findings come from."""
        return len({e.repository for e in self.entries if e.is_finding})

    @property
    def precision(self) -> float:
        """The share of right findings among those that are right or wrong; arguable ones count neither way."""
        right, wrong = (self.count(is_finding=True, verdict=verdict) for verdict in ("true", "false"))
        return right / (right + wrong) if right + wrong else 0.0

    @property
    def suffices(self) -> bool:
        """Whether enough was judged, with enough precision, for the rule to be on by default."""
        return (
            self.count(is_finding=True) >= ENOUGH_FINDINGS
            and self.count(is_finding=False) >= ENOUGH_SILENT
            and self.repositories >= ENOUGH_REPOSITORIES
            and self.precision >= ENOUGH_PRECISION
        )


def read(path: Path) -> Ledger:
    """Return a ledger.

    Raises:
        LedgerError: a line has the wrong fields; the message says where.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or tuple(lines[0].split("\t")) != HEADER:
        raise LedgerError(f"{path}: the first line must be {' '.join(HEADER)!r}, separated by tabs")
    entries = []
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        well_formed = (
            len(fields) == len(HEADER)
            and fields[4] in ("finding", "silent")
            and fields[5] in VERDICTS
            and (fields[3].isdigit() or (fields[3] == "-" and fields[4] == "silent"))
            and len(fields[1]) == 40
            and bool(fields[6].strip())
        )
        if not well_formed:
            raise LedgerError(f"{path}:{number}: not a line of {', '.join(HEADER)}")
        repository, commit, file, row, kind, verdict, sentence = fields
        entries.append(
            Entry(repository, commit, file, 0 if row == "-" else int(row), kind == "finding", verdict, sentence)
        )
    return Ledger(path.stem, tuple(entries))


def read_all(folder: Path) -> dict[str, Ledger]:
    """Return the ledgers of a folder by rule name."""
    return {path.stem: read(path) for path in sorted(folder.glob("*.tsv"))}


def section(ledger: Ledger | None, path: str) -> str:
    """Return the part of a rule's page that says how it was judged."""
    if ledger is None:
        return "## How it was judged\n\nNot yet judged on public code.\n"
    if not ledger.count(is_finding=True):
        found = "The development repositories hold no finding of this rule"
        silent = ledger.count(is_finding=False)
        return (
            f"## How it was judged\n\n{found}; {silent} places where it is silent were read: [`{path}`](../{path}).\n"
        )
    right, wrong, arguable = (ledger.count(is_finding=True, verdict=verdict) for verdict in VERDICTS)
    rightly, missed, unclear = (ledger.count(is_finding=False, verdict=verdict) for verdict in VERDICTS)
    return (
        "## How it was judged\n\n"
        f"{right + wrong + arguable} findings from {ledger.repositories} public repositories, drawn at random and read "
        f"one by one: {right} right, {wrong} wrong, {arguable} arguable (precision {ledger.precision:.2f}).\n"
        f"{rightly + missed + unclear} places where it is silent: {rightly} rightly, {missed} missed, {unclear} "
        "arguable.\n\n"
        f"Place by place: [`{path}`](../{path}).\n"
    )
