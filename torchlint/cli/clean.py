"""``torchlint clean``: remove the cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from torchlint.cli import CLEAN

if TYPE_CHECKING:
    from torchlint.engine.cache.folder import CacheFolder


@click.command("clean", short_help="Remove the cache.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing.")
def command(quiet: bool) -> int:
    """Remove the cache of the project that the current folder belongs to.

    Only files that torchlint made are removed; no other run is disturbed.
    """
    from torchlint.engine.cache.folder import cache_folder
    from torchlint.settings import SettingsError, SettingsFinder

    try:
        settings = SettingsFinder().for_folder(".")
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    folder = cache_folder(settings.root or os.getcwd(), settings.cache_dir)
    words = "There is no cache." if folder is None or not folder.exists() else removed(folder)
    if not quiet:
        click.echo(words)
    return CLEAN


def removed(folder: CacheFolder) -> str:
    """Remove a cache and return what was done.

    Raises:
        click.ClickException: it cannot be removed.
    """
    try:
        others = folder.remove()
    except OSError as error:
        raise click.ClickException(f"cannot remove {folder.path}: {error.strerror or error}") from error
    if others:
        return f"Emptied {folder.path}; left what torchlint did not make: {', '.join(others)}"
    return f"Removed {folder.path}"
