"""The page of a rule, and the table of all rules, as Markdown made from the rules themselves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from torchlint import evidence
from torchlint.dropped import COVERED, DROPPED
from torchlint.maps import LINTERS, PLANNED, Counterpart
from torchlint.rule import Default, Example, Rule
from torchlint.safety import Safety

DEFAULTS = {
    Default.ON: "on",
    Default.ADVICE: "off (advice: select it to use it)",
    Default.PREVIEW: "off (preview: not yet judged on enough real code)",
}
SAFETIES = {
    Safety.SAFE: "**safe**: a run that succeeded before computes the same values after. Applied by "
    "`torchlint fix --apply`.",
    Safety.UNSAFE: "**unsafe**: right in almost every program, but something observable can change; the finding says "
    "what. Applied only with `--unsafe-fixes`, or where `extend-safe-fixes` trusts it.",
    Safety.DISPLAY: "**shown only**: the finding shows a rewrite that is never applied by itself.",
}


def fix_words(rule: Rule) -> str:
    """Return the safeties of the rule's fixes in words, ``none`` without any."""
    return " or ".join(safety.value for safety in rule.fixes) or "none"


def page(rule: Rule) -> str:
    """Return the page of a rule."""
    return "\n".join(_page(rule)).rstrip() + "\n"


def _page(rule: Rule) -> Iterator[str]:
    yield f"# {rule.code} {rule.name}"
    yield ""
    yield f"Family: {rule.family.value} · default: {DEFAULTS[rule.default]} · fix: {fix_words(rule)}"
    yield f"· since {rule.since}" + (f" · holds for torch {rule.torch}" if rule.torch else "")
    yield ""
    yield textwrap.dedent(rule.documentation).strip()
    yield ""
    yield "## Example" if len(rule.examples) == 1 else "## Examples"
    yield ""
    for example in rule.examples:
        yield from _example(example)
    yield "## How safe the fix is"
    yield ""
    yield from _safety(rule)
    yield ""
    if rule.silences:
        yield "## When it stays silent"
        yield ""
        yield from (f"- {sentence} (`{clause}`)" for clause, sentence in rule.silences.items())
        yield ""
    yield "## What it is worth"
    yield ""
    yield from measured(rule.code, about_speed=rule.about_speed)
    yield ""
    yield "## Switching it off"
    yield ""
    yield f"On one line: `# torchlint: ignore[{rule.code}]`."
    yield f'Everywhere: `ignore = ["{rule.code}"]` in `[tool.torchlint]`.'
    yield ""
    yield "## References"
    yield ""
    yield from (f"- {_linked(reference)}" for reference in rule.references)


def _example(example: Example) -> Iterator[str]:
    yield from ("```python", textwrap.dedent(example.bad).strip("\n"), "```", "")
    if example.good is not None:
        yield from ("becomes", "", "```python", textwrap.dedent(example.good).strip("\n"), "```", "")


def _safety(rule: Rule) -> Iterator[str]:
    if not rule.fixes:
        yield "There is no automatic fix: the message says what to do by hand."
        return
    yield from (f"- {SAFETIES[safety]}" for safety in rule.fixes)


def measured(code: str, *, about_speed: bool = True) -> Iterator[str]:
    """Yield what ``torchlint bench`` found for a rule on each device, quoted from the evidence."""
    found = evidence.for_rule(code)
    if not found and not about_speed:
        yield "Nothing to measure: the rule is about what a program computes, or whether it runs, not about its speed."
        return
    if not found:
        yield "Not measured: no figures for this rule are shipped."
        return
    yield from (f"- {measurement.sentence}" for measurement in found)
    if all(measurement.kind == "cpu" for measurement in found):
        yield "- On a GPU: not measured."


def _linked(reference: str) -> str:
    return f"<{reference}>" if reference.startswith("http") and " " not in reference else reference


def table(rules: Sequence[Rule]) -> str:
    """Return the table of all rules with links to their pages."""
    lines = [
        "# The rules",
        "",
        "Made from the rules by `make rules`. `torchlint rules CODE` shows a page in the terminal.",
        "",
        "| code | name | what is wrong | fix | default |",
        "|---|---|---|---|---|",
    ]
    for rule in rules:
        link = f"[{rule.name}]({rule.name}.md)"
        lines.append(f"| {rule.code} | {link} | {_cell(rule.summary)} | {fix_words(rule)} | {rule.default.value} |")
    return "\n".join(lines) + "\n"


def dropped() -> str:
    """Return the table of rules that were tried and will not come."""
    rows = (f"| {rule.code} | {rule.name} | {_cell(rule.meant)} | {_cell(rule.why)} |" for rule in DROPPED)
    head = ("## What was tried and dropped", "", "| code | name | what it was to find | why not |", "|---|---|---|---|")
    return "\n".join((*head, *rows, ""))


def covered(rules: Sequence[Rule]) -> str:
    """Return the table of planned rules whose findings another rule reports, with links to its page."""
    pages = {rule.code: f"[{rule.code} {rule.name}]({rule.name}.md)" for rule in rules}
    rows = (f"| {rule.code} | {rule.name} | {_cell(rule.meant)} | {pages[rule.by]} |" for rule in COVERED)
    head = ("## What another rule finds", "", "| code | name | what it was to find | found by |", "|---|---|---|---|")
    return "\n".join((*head, *rows, ""))


def counterparts(rules: Sequence[Rule]) -> str:
    """Return the table of the checks of other linters, with links to the pages of the rules that stand for them."""
    by_code = {rule.code: rule for rule in rules}
    return "\n".join(
        (
            "## What other linters find",
            "",
            "`torchlint rules --map` prints this for one linter. Each list is as complete as its source:",
            "",
            *(f"- {linter.title} (`--map {word}`): {linter.source}" for word, linter in LINTERS.items()),
            "",
            "| linter | its check | what it finds | torchlint |",
            "|---|---|---|---|",
            *(
                f"| {linter.title} | {check.theirs} | {_cell(check.finds)} | {_cell(_ours(check, by_code))} |"
                for linter in LINTERS.values()
                for check in linter.checks
            ),
            "",
        )
    )


def _ours(check: Counterpart, by_code: Mapping[str, Rule]) -> str:
    rule = by_code.get(check.code)
    if rule is not None:
        return f"[{rule.code} {rule.name}]({rule.name}.md)"
    if check.code:
        return f"{check.code} {PLANNED[check.code]}, which is not there yet"
    return f"none: {check.why}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
