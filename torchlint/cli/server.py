"""``torchlint server``: the language server for editors, on standard input and output."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from torchlint.cli import CLEAN, FINDINGS

if TYPE_CHECKING:
    from torchlint.lsp.server import Server

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command("server", short_help="Run the language server for editors.")
@click.option("--stdio", is_flag=True, help="Taken because many editors pass it: there is no other way to talk.")
def command(stdio: bool) -> int:
    """Run the language server, which editors start: it talks to them on standard input and output.

    Findings as you type, quick fixes, the page of a rule on hover. The settings are those of the project.
    """
    server = made()
    logging.getLogger("pygls").setLevel(logging.ERROR)  # that a request was cancelled is nothing to warn of
    if sys.stdin.isatty():
        click.echo("Waiting for an editor on standard input; Ctrl-C ends this.", err=True)
    end_on_signals()
    channel = sys.stdout.buffer
    with redirect_stdout(sys.stderr):  # whatever else prints would corrupt the channel
        server.start_io(sys.stdin.buffer, channel)
    sys.stderr.flush()
    os._exit(CLEAN if server.is_stopped else FINDINGS)  # whatever the thread that checks is doing


def made() -> Server:
    """Return the server.

    Raises:
        click.ClickException: what it needs is not installed.
    """
    try:
        from pygls.lsp.server import LanguageServer  # noqa: F401
    except ImportError as error:
        words = 'the language server needs pygls 2: pip install "torchlint[lsp]"'
        raise click.ClickException(words) from error
    from torchlint.lsp.features import make_server

    return make_server()


def end_on_signals() -> None:
    """End at once after a signal: the thread that reads waits for an editor that may never write."""
    if hasattr(signal, "pthread_sigmask"):
        # A handler runs between two instructions of the main thread, which may just have gone to sleep: a thread waits.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        threading.Thread(target=lambda: end(signal.sigwait(SIGNALS)), daemon=True).start()
    else:
        for number in SIGNALS:
            signal.signal(number, lambda number, frame: end(number))


def end(number: int) -> None:
    """End the process as after a signal."""
    if number == signal.SIGINT:
        click.echo("interrupted", err=True)
    os._exit(128 + number)
