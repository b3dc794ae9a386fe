"""The group of commands, each imported only when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any, cast

import click

from torchlint.cli import CLEAN, ERROR, INTERRUPTED
from torchlint.cli.streams import OutputError, silence
from torchlint.spelling import nearest
from torchlint.version import __version__

COMMANDS = {
    "check": "Report code that wastes time.",
    "fix": "Show the fixes as a diff, or apply them with --apply.",
    "rules": "List the rules, or explain one.",
    "bench": "Measure what the fixes are worth on this device.",
    "verify": "Run your own program before and after the fixes.",
    "server": "Run the language server for editors.",
    "clean": "Remove the cache.",
    "completion": "Print the script for completion in bash, zsh or fish.",
}

_OTHERS = {"explain": "rules", "lint": "check", "format": "fix", "lsp": "server"}
"""What other tools call a command."""


class LazyGroup(click.Group):
    """Commands by name; the module of a command is imported when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands that this installation has."""
        return [name for name in COMMANDS if importlib.util.find_spec(f"torchlint.cli.{name}")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, None if there is none of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        return cast("click.Command", importlib.import_module(f"torchlint.cli.{cmd_name}").command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command to run, or say what was probably meant."""
        name = args[0]
        if name in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        if os.path.exists(name) or name.endswith(".py") or {os.sep, "/"} & set(name):
            raise click.UsageError(f"{name!r} is not a command; did you mean `torchlint check {' '.join(args)}`?")
        close = _OTHERS.get(name) or nearest(name, self.list_commands(ctx))
        hint = f"did you mean `torchlint {close}`?" if close else "`torchlint --help` lists the commands."
        raise click.UsageError(f"there is no command {name!r}; {hint}")


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: torchlint check .",
)
@click.version_option(__version__, "-V", "--version", prog_name="torchlint", message="%(prog)s %(version)s")
def app() -> None:
    """Find code that wastes time in PyTorch programs, and rewrite it."""


def run_app(arguments: list[str]) -> int:
    """Run the group and return the exit code."""
    try:
        return int(app.main(arguments or ["--help"], prog_name="torchlint", standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        usage_error(error)
        return ERROR
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        return ERROR
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        silence(sys.stdout)
        return CLEAN
    except OutputError:
        raise
    except Exception as error:
        if "--verbose" in arguments or "-v" in arguments:
            import traceback

            traceback.print_exc(file=sys.stderr)
        summary = f"{type(error).__name__}: {error}".partition("\n")[0]
        click.echo(f"error: internal error: {summary} (run again with --verbose for the traceback)", err=True)
        return ERROR


def usage_error(error: click.UsageError) -> None:
    """Print what is wrong with the arguments on one line."""
    command = error.ctx.command_path if error.ctx else "torchlint"
    message = " ".join(error.format_message().split()).rstrip(".")
    ending = "" if message.endswith("?") else f" (`{command} --help` lists the options)"
    click.echo(f"error: {message}{ending}", err=True)
