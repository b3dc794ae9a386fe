"""``python -m torchlint.dev``: write stubs for a new rule, regenerate the pages."""

from __future__ import annotations

from pathlib import Path

import click

from torchlint.rule import Family


@click.group()
def app() -> None:
    """Work on torchlint itself."""


@app.command()
@click.option("--check", is_flag=True, help="Change nothing; fail if a page is not current.")
def pages(check: bool) -> None:
    """Regenerate rules/ from the rules."""
    from torchlint.dev.pages import outdated, write

    folder = Path("rules")
    changed = outdated(folder) if check else write(folder)
    for name in changed:
        click.echo(f"{'not current' if check else 'wrote'}: {folder / name}")
    if check and changed:
        raise click.ClickException("rules/ is not current: run `make rules`")


@app.command()
@click.argument("family", type=click.Choice([family.value for family in Family]))
@click.argument("name")
def new(family: str, name: str) -> None:
    """Write the stubs of a new rule: its module and its fixtures."""
    from torchlint.dev.new import NewRuleError, write_stubs

    try:
        for path in write_stubs(Path(), Family(family), name):
            click.echo(f"wrote {path}")
    except NewRuleError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    app()
