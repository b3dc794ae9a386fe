"""``torchlint completion``: the script that lets a shell complete commands, options, formats and rules."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from torchlint.cli import CLEAN

VARIABLE = "_TORCHLINT_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print the script for completion in bash, zsh or fish.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the script that lets your shell complete commands, options, formats, codes and names of rules.

    \b
    bash:  eval "$(torchlint completion bash)"    in ~/.bashrc
    zsh:   eval "$(torchlint completion zsh)"     in ~/.zshrc
    fish:  torchlint completion fish > ~/.config/fish/completions/torchlint.fish
    """
    complete = get_completion_class(shell)
    if complete is None:  # a version of click without this shell
        raise click.UsageError(f"this version of click cannot complete for {shell}")
    click.echo(complete(ctx.find_root().command, {}, "torchlint", VARIABLE).source())
    return CLEAN
