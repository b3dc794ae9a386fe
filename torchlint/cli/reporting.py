"""The options about the report: one format, to standard output or to one file that can be written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from torchlint.report.formats import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])


def reporting_options(function: Command) -> Command:
    """Add ``--output-format`` and ``--output-file``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def one_format(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the format, None if none is given.

    Raises:
        click.UsageError: two reports would end up in one place.
    """
    if len(set(values)) > 1:
        raise click.UsageError(
            f"one run gives one report, not {' and '.join(values)}: run once for each format, with --output-file"
        )
    return values[0] if values else None


def writable(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the path to write to, None if none is given.

    Raises:
        click.UsageError: it cannot be written; told before any file is checked.
    """
    if len(set(values)) > 1:
        raise click.UsageError(f"one run gives one report, which goes to one file, not to {' and '.join(values)}")
    if not values:
        return None
    (path,) = set(values)
    reason = _why_not(path)
    if reason:
        raise click.UsageError(f"cannot write the report to {path}: {reason}")
    return path


def writable_path(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Return the path to write to, None if none is given.

    Raises:
        click.UsageError: it cannot be written; told before anything is measured.
    """
    reason = _why_not(str(value)) if value is not None else ""
    if reason:
        raise click.UsageError(f"cannot write {value}: {reason}")
    return value


def _why_not(path: str) -> str:
    """Return why no file can be written there, nothing if none of that is known."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        return "it is a folder"
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    target = path if os.path.exists(path) else folder
    return "" if os.access(target, os.W_OK) else f"{target} may not be written"


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        multiple=True,
        callback=one_format,
        metavar="FORMAT",
        help=", ".join(FORMATS),
    ),
    click.option(
        "--output-file",
        "-o",
        type=click.Path(),
        multiple=True,
        callback=writable,
        help="Write the report to a file.",
    ),
)
