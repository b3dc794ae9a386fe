"""``python -m tests.corpus.torchfix --checkout PATH``: TorchFix's own fixtures, checked by torchlint; see ``--help``.

Each finding that TorchFix's expected results name must be one of torchlint's by the map of codes. Each line that
TorchFix rewrites must be rewritten too, to something that compiles and in which fixing again finds nothing to do.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint import check_source, fix_source
from torchlint.maps import LINTERS
from torchlint.registry import rules

OK, LESS, NOT_RUN = 0, 1, 2
TARGET = "2.5"
"""New enough for every replacement, and older than the version from which `torch.load` is safe by itself."""

WHERE = "git clone https://github.com/pytorch-labs/torchfix"
_RESULT = re.compile(r"(?P<row>\d+):\d+ (?P<code>TOR\d{3}) ")


@dataclass(frozen=True, slots=True)
class Less:
    """Something that TorchFix gives and torchlint does not."""

    file: str
    what: str
    accepted: str = ""
    """Why that is right, empty where it is not."""

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" + (f" (on purpose: {self.accepted})" if self.accepted else "")


def our_codes() -> list[str]:
    """Return the codes of our rules that stand for those of TorchFix."""
    there = {rule.code for rule in rules()}
    return sorted(there & set(LINTERS["torchfix"].codes.values()))


def expected(results: str) -> Counter[tuple[int, str]]:
    """Return how often TorchFix reports each code on each row."""
    return Counter((int(match["row"]), match["code"]) for match in _RESULT.finditer(results))


def missing_findings(text: str, results: str) -> Iterator[str]:
    """Yield what TorchFix reports and torchlint does not; TorchFix places what an import names on its first row."""
    map_ = LINTERS["torchfix"].codes
    codes = our_codes()
    found = Counter(
        (d.start.row, d.code) for d in check_source(text, select=codes, target_torch=TARGET, lint_tests=True)
    )
    for (row, theirs), count in expected(results).items():
        ours = map_.get(theirs, "")
        if ours not in codes:
            yield f"row {row}: {theirs} has no rule of ours"
        elif found[row, ours] < count:
            yield f"row {row}: {theirs} is not found as {ours}"


def missing_fixes(text: str, theirs: str) -> Iterator[str]:
    """Yield the rows that TorchFix rewrites and torchlint does not, and what is wrong with what it writes."""
    codes = our_codes()
    ours = fix_source(text, unsafe_fixes=True, select=codes, target_torch=TARGET).text
    compile(ours, "fixed", "exec")
    if fix_source(ours, unsafe_fixes=True, select=codes, target_torch=TARGET).text != ours:
        yield "fixing again changes it again"
    kept = Counter(ours.splitlines())
    rewritten = Counter(text.splitlines()) - Counter(theirs.splitlines())
    for line in rewritten:
        if line.strip() and kept[line] > Counter(theirs.splitlines())[line]:
            yield f"it keeps `{line.strip()}`"


_LATER = "torch is imported further down only"
ON_PURPOSE = {
    ("codemod/default_collate_convert.in.py", "it keeps `batch = "): _LATER,
    ("codemod/default_collate_convert.in.py", "import _utils"): _LATER,
    ("internal/checker/", "has no rule"): "it is about the tests of PyTorch itself",
}
"""By file and part of what is missing the reason why that is right."""


def accepted(file: str, what: str) -> str:
    """Return why something missing is right, empty where nothing says so."""
    return next((why for (name, part), why in ON_PURPOSE.items() if name in file and part in what), "")


def compared(checkout: Path) -> Iterator[Less]:
    """Yield everything that torchlint gives less on the fixtures of a checkout."""
    fixtures = checkout / "tests" / "fixtures"
    for path in sorted(fixtures.rglob("*.py")):
        name = path.relative_to(fixtures).as_posix()
        text = path.read_text(encoding="utf-8")
        found: Iterator[str] = iter(())
        if path.with_suffix(".txt").exists():
            found = missing_findings(text, path.with_suffix(".txt").read_text(encoding="utf-8"))
        elif name.endswith(".in.py"):
            found = missing_fixes(text, path.with_name(path.name.replace(".in.", ".out.")).read_text(encoding="utf-8"))
        for what in found:
            yield Less(name, what, accepted(name, what))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what torchlint gives less and return 0 if that is on purpose, 1 if not, 2 if there is nothing to run."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.torchfix", description=__doc__)
    parser.add_argument("--checkout", type=Path, metavar="PATH", help=f"a checkout of TorchFix: {WHERE}")
    checkout: Path | None = parser.parse_args(arguments).checkout
    if checkout is None or not (checkout / "tests" / "fixtures").is_dir():
        print(f"NOT RUN: give the fixtures of TorchFix by --checkout ({WHERE})", file=sys.stderr)
        return NOT_RUN
    less = list(compared(checkout))
    for item in less:
        print(item)
    wrong = [item for item in less if not item.accepted]
    print(f"{len(wrong)} things less than TorchFix, {len(less) - len(wrong)} more on purpose")
    return LESS if wrong else OK


if __name__ == "__main__":
    sys.exit(main())
