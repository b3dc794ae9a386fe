"""``python -m tests.refute.run``: look for programs that a safe fix changes; see ``--help``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from tests.refute.search import Search, Tally, missing, run_search
from torchlint.dev.certificates import Certificate, digest, has_safe_fix, read, search_path, write
from torchlint.engine.many import Work, run_many
from torchlint.registry import rules
from torchlint.rule import Rule

ROOT = Path(__file__).parents[2]
OK, REFUTED, INCOMPLETE = 0, 1, 2
LEAST_FIXED = 0.3
"""The least share of programs that carry a safe fix; with fewer a search looks past the rule."""


def search_of(rule: Rule) -> Search:
    """Return the search of a rule."""
    module = importlib.import_module(f"tests.refute.rules.{rule.name.replace('-', '_')}")
    found: Search = module.search
    return found


def searchable() -> list[Rule]:
    """Return the rules that have a search."""
    return [rule for rule in rules() if has_safe_fix(rule) and (ROOT / search_path(rule)).exists()]


def unsearchable() -> dict[str, str]:
    """Return the rules whose search cannot be run here, by code, each with the package that is missing."""
    return {rule.code: package for rule in searchable() if (package := missing(search_of(rule)))}


def searched(code: str, *, wanted: int, start: int) -> Tally:
    """Return what the search of one rule sees."""
    torch.set_num_threads(1)
    search = search_of(next(rule for rule in rules() if rule.code == code))
    return run_search(search, wanted=wanted, start=start)


def is_enough(tally: Tally, wanted: int) -> bool:
    """Return whether as many programs as wanted were compared, and enough of all tried carry a safe fix."""
    return tally.judged >= wanted and tally.fixed >= LEAST_FIXED * tally.tried


def said(tally: Tally) -> str:
    """Return what the search of a rule saw: refutations, and a line of figures."""
    places = ", ".join(f"{count:,} {place}" for place, count in tally.places.items())
    share = tally.fixed / max(1, tally.tried)
    figures = (
        f"{tally.rule}: {tally.tried:,} programs, {share:.0%} of them with a safe fix, {tally.judged:,} of those run "
        f"and compared ({places}), {len(tally.refutations)} refuted"
    )
    return "\n\n".join([*tally.refutations, figures])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0, 1 after a refutation, 2 if too little was compared."""
    safe = searchable()
    parser = argparse.ArgumentParser(prog="python -m tests.refute.run", description=__doc__)
    parser.add_argument("--programs", type=int, default=1_000, metavar="N", help="programs with a safe fix, per rule")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed gives other programs")
    parser.add_argument("--rule", action="append", choices=[rule.code for rule in safe], help="only this rule")
    parser.add_argument("--jobs", type=int, default=None, metavar="N")
    parser.add_argument("--write", action="store_true", help="note what was found in tests/refute/certificates.json")
    given = parser.parse_args(arguments)
    lacking = unsearchable()
    asked = given.rule or [rule.code for rule in safe]
    codes = [code for code in asked if code not in lacking]
    for code in asked:
        if code in lacking:
            print(f"{code}: NOT RUN: its programs need {lacking[code]}, which is not installed", flush=True)
    work: Work[str, Tally] = Work(
        partial(searched, wanted=given.programs, start=given.seed),
        size=lambda _: 1_000_000,
        on_death=lambda code, status: Tally(code, refutations=[f"the process died with {status}"]),
    )
    digests = {rule.code: digest(ROOT, rule) for rule in safe}

    def ended(tally: Tally) -> None:
        print(said(tally), flush=True)
        if given.write:
            note(ROOT, tally, digests[tally.rule], given.programs, given.seed)

    tallies = run_many(work, codes, jobs=given.jobs, on_result=ended)
    if any(tally.refutations for tally in tallies):
        return REFUTED
    return OK if codes == asked and all(is_enough(tally, given.programs) for tally in tallies) else INCOMPLETE


def note(root: Path, tally: Tally, searched_for: str, wanted: int, seed: int) -> None:
    """Write a certificate for a rule that was not refuted, and take away that of one that was."""
    certificates = read(root)
    certificates.pop(tally.rule, None)
    if not tally.refutations and is_enough(tally, wanted):
        places, version = dict(tally.places), torch.__version__
        certificates[tally.rule] = Certificate(
            tally.rule, tally.judged, tally.tried, places, seed, version, searched_for
        )
    write(root, certificates)


if __name__ == "__main__":
    sys.exit(main())
