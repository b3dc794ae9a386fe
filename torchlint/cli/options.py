"""Options that several commands share."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


class CommaSeparated(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A list written with commas."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the parts without the white space around them."""
        if isinstance(value, tuple):
            return value
        return tuple(part.strip() for part in str(value).split(",") if part.strip())


class RuleList(CommaSeparated):
    """A list of codes, names and beginnings of codes, which a shell can complete."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the rules that the last word of the list can become."""
        from torchlint.cli.rules import completions

        before, comma, word = incomplete.rpartition(",")
        return completions(word, before + comma)


def listed(*names: str, help: str, metavar: str = "RULES") -> Callable[[Command], Command]:
    """Return an option that takes a list with commas, any number of times."""
    kind = RuleList() if metavar == "RULES" else CommaSeparated()
    return click.option(*names, type=kind, multiple=True, metavar=metavar, help=help)


def joined(values: tuple[tuple[str, ...], ...]) -> tuple[str, ...] | None:
    """Return the parts of all uses of an option, None if it was not used."""
    return tuple(part for value in values for part in value) if values else None


_NAMED_PATHS = 3


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says about settings; None leaves a setting as configured."""

    paths: tuple[str, ...] = (".",)
    isolated: bool = False
    config: str | None = None
    settings: Mapping[str, Any] | None = None
    """Settings by their Python names."""

    since: str | None = None
    """The revision since which lines must have changed to count."""

    def given(self) -> Mapping[str, Any]:
        """Return the settings that the command line gives."""
        return {name: value for name, value in (self.settings or {}).items() if value is not None}

    def overrides(self) -> Mapping[str, Any]:
        """Return the settings that the command line gives, with paths that no longer depend on the folder."""
        given = dict(self.given())
        if given.get("baseline"):
            given["baseline"] = os.path.abspath(given["baseline"])
        return given

    def repeated(self) -> str:
        """Return the selecting options and the paths, quoted for a shell; hooks name more paths than anybody reads."""
        words: list[str] = ["--isolated"] if self.isolated else []
        words += ["--config", self.config] if self.config else []
        words += ["--since", self.since] if self.since else []
        for name, value in self.given().items():
            option = "--" + name.replace("_", "-")
            if value is True:
                words.append(option)
            elif name == "baseline" and not value:
                words.append("--no-baseline")
            elif isinstance(value, Mapping):
                words += [option, ",".join(f"{pattern}:{code}" for pattern, codes in value.items() for code in codes)]
            elif value is not False:
                words += [option, ",".join(value) if isinstance(value, tuple) else str(value)]
        more = ["..."] if len(self.paths) > _NAMED_PATHS else []
        words += [*self.paths[:_NAMED_PATHS], *more]
        if os.name == "nt":  # whose shells know no single quotes
            from subprocess import list2cmdline

            return list2cmdline(words)
        return shlex.join(words)


def per_file_ignores(values: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]] | None:
    """Return pattern to codes from ``PATTERN:CODE`` pairs, None without any.

    Raises:
        click.UsageError: a pair has no colon.
    """
    found: dict[str, tuple[str, ...]] = {}
    for pair in joined(values) or ():
        pattern, colon, code = pair.rpartition(":")
        if not colon or not pattern or not code:
            raise click.UsageError(f"--per-file-ignores takes PATTERN:CODE pairs, not {pair!r}")
        found[pattern] = (*found.get(pattern, ()), code)
    return found or None


def expanded(paths: Sequence[str], *, by_shell: bool = os.name != "nt") -> tuple[str, ...]:
    """Return the paths, patterns among them as what they match, in order: the shells of Windows leave that to programs.

    What matches nothing stays, to be named as missing.
    """
    if by_shell:
        return tuple(paths)
    import glob

    found = [path if os.path.exists(path) else sorted(glob.glob(path, recursive=True)) or path for path in paths]
    return tuple(path for one in found for path in ([one] if isinstance(one, str) else one))


_SELECTING = (
    click.argument("paths", nargs=-1, type=click.Path(readable=False), metavar="[PATHS]..."),
    listed("--select", help="Rules to enable: codes, prefixes, names or ALL."),
    listed("--extend-select", help="Rules to enable on top of the configured ones."),
    listed("--ignore", help="Rules to disable."),
    listed("--fixable", help="Rules whose fixes to offer; default: all."),
    listed("--unfixable", help="Rules whose fixes not to offer."),
    listed("--extend-safe-fixes", help="Rules whose unsafe fixes to treat as safe."),
    listed("--extend-unsafe-fixes", help="Rules whose safe fixes to treat as unsafe."),
    listed("--per-file-ignores", metavar="PATTERN:CODE", help="Rules to disable in the files that match."),
    listed("--exclude", metavar="PATTERNS", help="Files and folders to leave out, in place of the default list."),
    listed("--extend-exclude", metavar="PATTERNS", help="Files and folders to leave out on top of the others."),
    click.option("--force-exclude", is_flag=True, default=None, help="Leave excluded files out even if named."),
    click.option("--target-torch", metavar="VERSION", help="Oldest torch version that the code supports."),
    click.option("--num-workers", type=click.IntRange(min=1), metavar="N", help="What TL101 writes for num_workers."),
    click.option("--file-timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Limit per file; 0: none."),
    click.option("--lint-tests", is_flag=True, default=None, help="Apply performance rules to tests too."),
    click.option("--baseline", type=click.Path(), metavar="FILE", help="Leave out the findings in this file."),
    click.option("--no-baseline", is_flag=True, help="Leave out nothing, whatever the settings say."),
    click.option("--since", metavar="REV", help="Only findings on lines that changed since this git revision."),
    click.option(
        "--fail-level",
        type=click.Choice(("error", "warning", "info")),
        help="Exit with 1 only for findings of at least this severity; default: info.",
    ),
    click.option("--isolated", is_flag=True, help="Ignore all configuration and project files."),
    click.option("--config", type=click.Path(), metavar="FILE", help="Configuration file for all files."),
    click.option("--stdin-filename", metavar="PATH", help="Name of what is read from standard input (path -)."),
    click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Processes to use; default: all cores."),
    click.option("--no-cache", is_flag=True, help="Check every file anew."),
    click.option(
        "--color", type=click.Choice(("auto", "always", "never")), default="auto", help="When to colour the output."
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print findings only, without notes and summary."),
    click.option("--verbose", "-v", is_flag=True, help="Say more, with tracebacks of internal errors."),
    click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings."),
)

_SETTINGS = (
    "select",
    "extend_select",
    "ignore",
    "fixable",
    "unfixable",
    "extend_safe_fixes",
    "extend_unsafe_fixes",
    "exclude",
    "extend_exclude",
)
_SINGLE_SETTINGS = (
    "force_exclude",
    "target_torch",
    "num_workers",
    "file_timeout",
    "lint_tests",
    "baseline",
    "fail_level",
)


def selecting_options(function: Command) -> Command:
    """Add the options that say which files and rules, and hand them over as ``choices``."""

    @functools.wraps(function)
    def with_choices(*args: Any, **options: Any) -> Any:
        settings: dict[str, Any] = {name: joined(options.pop(name)) for name in _SETTINGS}
        settings["per_file_ignores"] = per_file_ignores(options.pop("per_file_ignores"))
        for name in _SINGLE_SETTINGS:
            settings[name] = options.pop(name)
        if options.pop("no_baseline"):
            if settings["baseline"]:
                raise click.UsageError("--baseline and --no-baseline contradict each other")
            settings["baseline"] = ""
        choices = Choices(
            paths=expanded(options.pop("paths")) or (".",),
            isolated=options.pop("isolated"),
            config=options.pop("config"),
            settings=settings,
            since=options.pop("since"),
        )
        return function(*args, choices=choices, **options)

    decorated: Any = with_choices
    for option in reversed(_SELECTING):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
