"""``torchlint rules``: the list of rules, or the page of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import CLEAN
from torchlint.maps import LINTERS, PLANNED

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from torchlint.cli.output import Output
    from torchlint.rule import Rule


class RuleName(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click only
    """A code or a name."""

    name = "rule"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the rules that the word can become."""
        return completions(incomplete)


@click.command("rules", short_help="List the rules, or explain one.")
@click.argument("name", required=False, metavar="[CODE or NAME]", type=RuleName())
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", help="text or json.")
@click.option(
    "--map", "linter", type=click.Choice(tuple(LINTERS)), help="Show which rule stands for each of a linter's."
)
@click.option("--isolated", is_flag=True, help="Leave out the rules of plugins that the settings name.")
@click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto", help="When to colour.")
def command(name: str | None, output_format: str, linter: str | None, isolated: bool, color: str) -> int:
    """List the rules, or explain one: what it finds, why it costs, what the fix changes."""
    from torchlint.cli.output import Output
    from torchlint.registry import rules
    from torchlint.report.built_in import built_in_code, built_in_page
    from torchlint.report.page import page
    from torchlint.suppress import BUILT_IN

    output = Output(colour=color)
    if linter is not None:
        if name is not None:
            raise click.UsageError(f"--map shows all rules of {linter}: leave {name!r} out")
        show_map(counterparts(linter, rules()), output, as_json=output_format == "json")
        return CLEAN
    as_json = output_format == "json"
    built_in = None if name is None else built_in_code(name)
    if built_in is not None:
        data = {"code": built_in, "name": BUILT_IN[built_in], "documentation": built_in_page(built_in)}
        show(json.dumps(data, indent=2) + "\n" if as_json else data["documentation"], output, as_is=as_json)
        return CLEAN
    known = rules() if isolated else (*rules(), *of_plugins())
    shown = known if name is None else (find(name, known),)
    if as_json:
        rows = [description(rule) for rule in shown]
        output.text(json.dumps(rows if name is None else rows[0], indent=2) + "\n")
    elif name is None:
        listing(shown, output)
    else:
        show(page(shown[0]), output)
    return CLEAN


def completions(word: str, before: str = "") -> list[CompletionItem]:
    """Return what a word can become that is to name a rule, with its code or its name."""
    from click.shell_completion import CompletionItem

    from torchlint.registry import rules

    try:
        known = (*rules(), *of_plugins())
    except click.ClickException:  # wrong settings are no reason not to complete
        known = rules()
    codes = [(rule.code, rule) for rule in known if rule.code.startswith(word.upper())]
    names = [(rule.name, rule) for rule in known if rule.name.startswith(word)]
    return [CompletionItem(before + text, help=rule.summary) for text, rule in codes + names]


def of_plugins() -> Sequence[Rule]:
    """Return the rules of the plugins that the settings of the current folder name.

    Raises:
        click.ClickException: the settings are wrong, or a plugin cannot be used.
    """
    from torchlint.engine.plan import PlanError, plugin_rules
    from torchlint.settings import SettingsError, SettingsFinder

    try:
        return plugin_rules(SettingsFinder().for_folder("."))
    except (PlanError, SettingsError) as error:
        raise click.ClickException(str(error)) from error


def counterparts(linter: str, rules: Sequence[Rule]) -> list[dict[str, str | None]]:
    """Return each check of another linter with the code, name and default of the rule that stands for it.

    Where that rule is not there yet ``planned`` holds its code, and where there will be none ``why`` says why.
    """
    by_code = {rule.code: rule for rule in rules}
    found = ((check, by_code.get(check.code)) for check in LINTERS[linter].checks)
    return [
        {
            "theirs": check.theirs,
            "finds": check.finds,
            "code": rule.code if rule else None,
            "name": rule.name if rule else None,
            "default": rule.default.value if rule else None,
            "planned": None if rule else check.code or None,
            "why": check.why or None,
        }
        for check, rule in found
    ]


def show_map(rows: Sequence[Mapping[str, str | None]], output: Output, *, as_json: bool) -> None:
    """Print the checks of another linter beside ours."""
    if as_json:
        output.text(json.dumps(list(rows), indent=2) + "\n")
        return
    width = max(len(row["theirs"] or "") for row in rows)
    for row in rows:
        output.text(f"{row['theirs'] or '':<{width}}  {_ours(row)}\n")


def _ours(row: Mapping[str, str | None]) -> str:
    if row["code"]:
        return f"{row['code']}  {row['name']} ({row['default']})"
    if row["planned"]:
        return f"none yet: planned as {row['planned']} {PLANNED[row['planned']]}"
    return f"none: {row['why']}"


def find(name: str, rules: Sequence[Rule]) -> Rule:
    """Return the rule of this code or name.

    Raises:
        click.UsageError: there is none.
    """
    for rule in rules:
        if name.lower() in (rule.code.lower(), rule.name):
            return rule
    from torchlint.engine.selection import hint_at

    words = [word for rule in rules for word in (rule.code, rule.name)]
    raise click.UsageError(f"unknown rule {name!r}{hint_at(name, words)}")


def description(rule: Rule) -> dict[str, Any]:
    """Return what there is to know about a rule as JSON data."""
    return {
        "code": rule.code,
        "name": rule.name,
        "family": rule.family.value,
        "summary": rule.summary,
        "default": rule.default.value,
        "fixes": [safety.value for safety in rule.fixes],
        "since": rule.since,
        "torch": rule.torch or None,
        "documentation": rule.documentation,
        "silences": dict(rule.silences),
        "references": list(rule.references),
    }


def listing(rules: Sequence[Rule], output: Output) -> None:
    """Print the table of rules."""
    from torchlint.report.page import fix_words

    head = ("code", "name", "default", "fix", "what is wrong")
    rows = [(rule.code, rule.name, rule.default.value, fix_words(rule), rule.summary) for rule in rules]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(4)]
    styles = ("code", "name", "", "dim", "")
    output.lines(
        [
            [
                (cell if width is None else f"{cell:<{width}}  ", "header" if row is head else style)
                for cell, width, style in zip(row, (*widths, None), styles, strict=True)
            ]
            for row in (head, *rows)
        ]
    )


def show(page: str, output: Output, *, as_is: bool = False) -> None:
    """Print a page: rendered on a terminal, as Markdown in a pipe or where it is to stay as it is."""
    if as_is or not output.coloured:
        output.text(page)
        return
    from rich.markdown import Markdown

    output.console().print(Markdown(page, hyperlinks=False))
