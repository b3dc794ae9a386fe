"""``python -m tests.corpus.linters``: the table of other linters against the releases that it was read from.

Downloads the wheels of TorchFix, dslinter and Bandit, and looks for the codes of their checks about PyTorch in them;
nothing is installed or imported.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.packages import NotAvailable, downloaded, unpacked
from torchlint.maps import LINTERS

OK, DIFFERENT, NOT_RUN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Release:
    """A release of a linter, and how its checks about PyTorch are found in it."""

    linter: str
    pin: str
    files: str
    """A pattern for the paths of the files that define such checks."""

    code: str
    """A pattern for a code where it is defined."""

    later: frozenset[str] = frozenset()
    """Codes that came after the release."""


RELEASES = (
    Release("torchfix", "torchfix==0.7.0", r"torchfix/.*\.py", r"\"(TOR\d{3})\"", frozenset({"TOR108", "TOR402"})),
    Release("dslinter", "dslinter==2.0.9", r"checkers/.*_pytorch\.py", r"\"([CRW]\d{4})\": \("),
    Release("bandit", "bandit==1.9.4", r"plugins/pytorch_\w+\.py", r"test_id\(\"(B\d{3})\"\)"),
)


def codes(release: Release, folder: Path, files: list[Path]) -> set[str]:
    """Return the codes that the files of a release define."""
    names = ((path, path.relative_to(folder).as_posix()) for path in files)
    chosen = (path for path, name in names if re.search(f"(?:^|/){release.files}$", name))
    return {code for path in chosen for code in re.findall(release.code, path.read_text(encoding="utf-8"))}


def differences(release: Release, found: set[str]) -> Iterator[str]:
    """Yield what the table lacks of a release, and what it has beyond."""
    listed = set(LINTERS[release.linter].codes)
    yield from (f"{release.pin}: {code} is not in the table" for code in sorted(found - listed))
    yield from (f"{release.pin} has no {code}" for code in sorted(listed - found - release.later))


def main() -> int:
    """Print the differences and return 0 if there are none, 1 otherwise, 2 if a release could not be had."""
    with tempfile.TemporaryDirectory() as cache:
        wrong: list[str] = []
        for release in RELEASES:
            folder = Path(cache) / release.linter
            try:
                files = unpacked(downloaded(release.pin, Path(cache)), folder)
            except NotAvailable as error:
                print(f"NOT RUN: {error}", file=sys.stderr)
                return NOT_RUN
            found = codes(release, folder, files)
            print(f"{release.pin}: {len(found)} checks about PyTorch")
            wrong += differences(release, found)
    print("\n".join([*wrong, f"{len(wrong)} differences"]))
    return DIFFERENT if wrong else OK


if __name__ == "__main__":
    sys.exit(main())
