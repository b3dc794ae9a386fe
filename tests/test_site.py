"""The site holds every page, and its pictures show what torchlint says today."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
MAKE = "`make pictures` draws them anew"


def paths(entry: Any) -> Iterator[str]:
    """Yield the pages that an entry of the navigation leads to."""
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from paths(below)


def test_each_page_is_in_the_navigation_once() -> None:
    settings = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "rules" / "README.md"]
    assert sorted(paths(settings["nav"])) == sorted(page.relative_to(ROOT).as_posix() for page in pages)


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """The program that makes the pictures."""
    spec = importlib.util.spec_from_file_location("make_pictures", PICTURES / "make.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_plots_show_the_evidence_that_is_shipped(make: ModuleType) -> None:
    wanted = make.evidence()
    assert wanted
    assert {path.name: path.read_text("utf-8") for path in PICTURES.glob("evidence-*.svg")} == wanted, MAKE
    shown = (ROOT / "README.md").read_text(encoding="utf-8") + (ROOT / "docs/measuring.md").read_text(encoding="utf-8")
    assert [name for name in wanted if f"pictures/{name})" not in shown] == []


@pytest.mark.parametrize("name", ["check.svg", "fix.svg"])
def test_pictures_show_what_is_said_today(make: ModuleType, name: str) -> None:
    shown = unescape("".join(re.findall(r"<text [^>]*>([^<]*)</text>", (PICTURES / name).read_text("utf-8"))))
    said = make.terminal(make.RUNS[name]).plain
    assert "".join(said.split()) in "".join(shown.split()), MAKE
