"""What is generated from the rules: in ``rules/`` one page per rule and the table, and the index beside them."""

from __future__ import annotations

from pathlib import Path

from torchlint.dev import certificates
from torchlint.dev.ledger import read_all, section
from torchlint.registry import INDEX, index, rules
from torchlint.report.page import counterparts, covered, dropped, page, table

LEDGERS = "tests/corpus/ledger"
_PAGES = "rules"
_INDEX = f"torchlint/rules/{INDEX}"


def pages(root: Path) -> dict[str, str]:
    """Return path below ``root`` to content of all that is generated, with ledgers and certificates from there."""
    ledgers, certified = read_all(root / LEDGERS), certificates.read(root)
    tables = (table(rules()), counterparts(rules()), covered(rules()), dropped())
    found = {_INDEX: index(), f"{_PAGES}/README.md": "\n".join(tables)}
    for rule in rules():
        judged = section(ledgers.get(rule.name), f"{LEDGERS}/{rule.name}.tsv")
        refuted = certificates.section(root, rule, certified.get(rule.code))
        found[f"{_PAGES}/{rule.name}.md"] = f"{page(rule)}{refuted}\n{judged}"
    return found


def outdated(root: Path) -> list[str]:
    """Return the files that differ from what the rules say, missing and left over ones included."""
    wanted = pages(root)
    names = {f"{_PAGES}/{path.name}" for path in (root / _PAGES).glob("*.md")} | set(wanted)
    return sorted(name for name in names if wanted.get(name) != _content(root / name))


def write(root: Path) -> list[str]:
    """Bring the files up to date and return those that changed."""
    changed = outdated(root)
    wanted = pages(root)
    for path in (root / name for name in changed):
        content = wanted.get(path.relative_to(root).as_posix())
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
    return changed


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
