"""The site's pages: the files of the repository where they are, so that a link is right in both places."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = ("*.md", "docs/*.md", "rules/*.md")
INDEX = "rules/README.md"
ROW = re.compile(r"^\| (TL\d{3}) \| \[([\w-]+)\]", re.MULTILINE)
LINKED = ("LICENSE", "docs/pictures/*.svg", "tests/corpus/ledger/*.tsv")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the rules below their index in the navigation."""
    index = (ROOT / INDEX).read_text(encoding="utf-8")
    rules = [{f"{code} {name}": f"rules/{name}.md"} for code, name in ROW.findall(index)]
    config.nav = [{"Rules": [INDEX, *rules]} if entry == {"Rules": INDEX} else entry for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the theme's files, and the repository's pages with the files that they link to."""
    kept = [file for file in files if file.src_dir != config.docs_dir]
    paths = [path for pattern in (*PAGES, *LINKED) for path in sorted(ROOT.glob(pattern))]
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    return Files([*kept, *(File(name, str(ROOT), config.site_dir, config.use_directory_urls) for name in names)])
