"""The generated folder ``rules/``: one page per rule and the table."""

from __future__ import annotations

from pathlib import Path

from torchlint.dev import certificates
from torchlint.dev.ledger import read_all, section
from torchlint.registry import rules
from torchlint.report.page import counterparts, covered, dropped, page, table

LEDGERS = "tests/corpus/ledger"


def pages(root: Path) -> dict[str, str]:
    """Return file name to content of all that stands in the folder, with ledgers and certificates below ``root``."""
    ledgers, certified = read_all(root / LEDGERS), certificates.read(root)
    found = {"README.md": "\n".join((table(rules()), counterparts(rules()), covered(rules()), dropped()))}
    for rule in rules():
        judged = section(ledgers.get(rule.name), f"{LEDGERS}/{rule.name}.tsv")
        refuted = certificates.section(root, rule, certified.get(rule.code))
        found[f"{rule.name}.md"] = f"{page(rule)}{refuted}\n{judged}"
    return found


def outdated(folder: Path) -> list[str]:
    """Return the files that differ from what the rules say, missing and left over ones included."""
    wanted = pages(folder.absolute().parent)
    names = {path.name for path in folder.glob("*.md")} | set(wanted)
    return sorted(name for name in names if wanted.get(name) != _content(folder / name))


def write(folder: Path) -> list[str]:
    """Bring the folder up to date and return the files that changed."""
    changed = outdated(folder)
    wanted = pages(folder.absolute().parent)
    folder.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8", newline="\n")
        else:
            (folder / name).unlink()
    return changed


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
