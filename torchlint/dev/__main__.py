"""``python -m torchlint.dev``: write stubs for a new rule, regenerate the pages, draw places to judge."""

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
    """Regenerate rules/, and the index of the rules in the package, from the rules."""
    from torchlint.dev.pages import outdated, write

    changed = outdated(Path()) if check else write(Path())
    for name in changed:
        click.echo(f"{'not current' if check else 'wrote'}: {name}")
    if check and changed:
        raise click.ClickException("what is generated is not current: run `make rules`")


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


@app.command("ledger-sample")
@click.argument("rule")
@click.argument("checkouts", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--findings", default=20, show_default=True, help="How many findings to draw.")
@click.option("--silent", default=20, show_default=True, help="How many hot files to draw in which it is silent.")
@click.option("--seed", default=0, show_default=True, help="Draw others.")
def ledger_sample(rule: str, checkouts: tuple[Path, ...], findings: int, silent: int, seed: int) -> None:
    """Draw places that nobody has judged yet, as lines of the ledger of RULE (its name).

    CHECKOUTS are git repositories in folders named owner+name.
    """
    from torchlint.dev.ledger import LedgerError, read
    from torchlint.dev.sample import SampleError, draw

    path = Path("tests/corpus/ledger", f"{rule}.tsv")
    try:
        judged = read(path) if path.exists() else None
        sample = draw(rule, checkouts, judged, findings=findings, silent=silent, seed=seed)
    except (LedgerError, SampleError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for place in sample.places:
        click.echo(place.row())
    click.echo(f"{sample.findings} findings in {sample.repositories} repositories", err=True)


if __name__ == "__main__":
    app()
