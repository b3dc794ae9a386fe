"""What else a result depends on than the file: the program that finds, and how it was asked to."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from torchlint.source import digest
from torchlint.version import __version__

if TYPE_CHECKING:
    from torchlint.engine.plan import Plan

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_WITHOUT_INFLUENCE = frozenset({"__pycache__", "cli", "dev", "harness", "lsp", "report"})
"""Folders of the package that no finding can come from, since what finds imports nothing of them."""

_CHOOSE_FILES_OR_OUTPUT = frozenset(
    {
        "exclude",
        "extend_exclude",
        "force_exclude",
        "respect_gitignore",
        "output_format",
        "cache_dir",
        "file_timeout",
        "baseline",
        "fail_level",
        "root",
        "origin",
    }
)
"""Settings that change nothing in the result of a file."""


@cache
def program() -> str:
    """Return a name for the code that runs: torchlint's own source, libcst and the interpreter.

    The version alone would not do: between releases the code changes and the version does not.
    """
    parts = [__version__, sys.version, sys.implementation.name, *_sources(), _parser()]
    return digest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _sources() -> Iterator[str]:
    for folder, folders, names in os.walk(_PACKAGE):
        folders[:] = sorted(set(folders) - _WITHOUT_INFLUENCE)
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                yield f"{path[len(_PACKAGE) :]} {digest(file.read())}"


def _parser() -> str:
    """Return the version of libcst, as it stands in its files: importing it would take longer than all else."""
    found = importlib.util.find_spec("libcst")
    origin = found.origin if found and found.origin else ""
    try:
        with open(os.path.join(os.path.dirname(origin), "_version.py"), "rb") as file:
            return digest(file.read())
    except OSError:
        from importlib.metadata import version

        return version("libcst")


def run_name(overrides: Mapping[str, Any], *, isolated: bool, config: str | None) -> str:
    """Return a name for all that the runs that share a file of results have in common."""
    given = [
        (name, repr(value))
        for name, value in sorted(overrides.items())
        if value is not None and name not in _CHOOSE_FILES_OR_OUTPUT
    ]
    return digest(repr((program(), given, isolated, config)).encode("utf-8", "surrogatepass"))


def plan_name(plan: Plan) -> str:
    """Return a name for the settings, rules and target by which a file is checked."""
    settings = [
        (field.name, repr(getattr(plan.settings, field.name)))
        for field in fields(plan.settings)
        if field.name not in _CHOOSE_FILES_OR_OUTPUT
    ]
    known_by = (settings, sorted(plan.codes), repr(plan.target), _plugins(plan))
    return digest(repr(known_by).encode("utf-8", "surrogatepass"))


def _plugins(plan: Plan) -> tuple[str, ...]:
    """Return what the plugins are known by: their rules are no part of the program."""
    if not plan.settings.plugins:
        return ()
    from torchlint.plugins import plugin_identities

    return plugin_identities(plan.settings)
