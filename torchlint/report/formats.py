"""The output formats by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import cast

from torchlint.report.data import Report
from torchlint.report.styled import Line

TEXT_FORMATS = ("full", "text", "concise", "grouped")
MACHINE_FORMATS = ("json", "json-lines", "sarif", "github", "gitlab", "junit", "pylint", "azure", "rdjson", "html")
DEFAULT_FORMAT = "full"
FORMATS = TEXT_FORMATS + MACHINE_FORMATS
_ALIASES = {"text": "full"}


def text_format(name: str) -> Callable[[Report], Iterator[Line]]:
    """Return the function that yields the styled lines of a format for people."""
    module = importlib.import_module(f"torchlint.report.{_ALIASES.get(name, name)}")
    return cast("Callable[[Report], Iterator[Line]]", module.lines)


def machine_format(name: str) -> Callable[[Report], str]:
    """Return the function that gives the text of a format for programs."""
    module = importlib.import_module("torchlint.report." + name.replace("-", "_"))
    return cast("Callable[[Report], str]", module.render)
