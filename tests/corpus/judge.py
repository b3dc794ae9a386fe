"""What must hold of one published file: it is checked without failing, and its fixes leave it the program it was."""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from pyflakes import checker
from pyflakes.messages import Message, UndefinedName, UnusedImport

from tests.corpus.same_code import difference, parsed
from torchlint.diagnostic import Diagnostic
from torchlint.engine.file import check_file
from torchlint.engine.fix import FixResult, fix_file
from torchlint.engine.result import FileResult
from torchlint.registry import rules
from torchlint.rule import Rule
from torchlint.semantics.process.target import UNKNOWN_TARGET, Target
from torchlint.settings import Settings
from torchlint.source import Source, SourceError, read_source

Check = Callable[[Source], FileResult]
Fixer = Callable[[Source, Check], FixResult]


_UNUSED = "imported but unused"


@dataclass(slots=True)
class Verdict:
    """What was seen in one file, and what went wrong; plain data, sent between processes."""

    path: str
    findings: Counter[str] = field(default_factory=Counter)
    fixes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Offered, by code and safety."""

    applied: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By code and reason."""

    alone: int = 0
    """Fixes that were tried alone."""

    not_alone: int = 0
    """Fixes that were not tried alone, for want of time."""

    unreadable: str = ""
    after: str | None = None
    """The text with all fixes, None if it is as it was."""

    violations: list[str] = field(default_factory=list)


def every_rule(source: Source, *, screened: bool = True) -> FileResult:
    """Return what all rules say of a source, where nothing is known about the torch version."""
    return check_file(source, _settings(), rules(), UNKNOWN_TARGET, screened=screened)


def every_fix(source: Source, check: Check) -> FixResult:
    """Return the source with all its fixes, the unsafe ones too."""

    def asked(some: Source, settings: Settings, chosen: Sequence[Rule], target: Target) -> FileResult:
        return check(some)

    return fix_file(source, _settings(), rules(), UNKNOWN_TARGET, unsafe=True, check=asked)


@cache
def _settings() -> Settings:
    return Settings(select=("ALL",), lint_tests=True)


def judge(path: str, *, deadline: float, fixer: Fixer = every_fix) -> Verdict:
    """Return the verdict on one file; fixes are tried alone until the deadline, a time of ``time.monotonic``."""
    verdict = Verdict(path)
    try:
        source = read_source(path)
    except SourceError as error:
        verdict.unreadable = str(error)
        return verdict
    try:
        judge_source(source, verdict, fixer, deadline)
    except Exception as error:
        verdict.violations.append(f"{type(error).__name__}: {error}")
    return verdict


def judge_source(source: Source, verdict: Verdict, fixer: Fixer, deadline: float) -> None:
    """Enter into the verdict what is seen in a source."""
    found = every_rule(source)
    verdict.findings.update(diagnostic.code for diagnostic in found.diagnostics)
    verdict.violations += [f"error while checking: {problem}" for problem in found.errors]
    if every_rule(source, screened=False).diagnostics != found.diagnostics:
        verdict.violations.append("the screen changes what is found")
    offered = [diagnostic for diagnostic in found.diagnostics if diagnostic.fix]
    verdict.fixes.update(_kind(diagnostic) for diagnostic in offered)
    if not offered:
        return
    fixed = fixer(source, _remembering(source, found))
    verdict.applied.update(map(_kind, fixed.applied))
    verdict.refused.update((diagnostic.code, reason) for diagnostic, reason in fixed.refused)
    if fixed.text != source.text:
        verdict.after = fixed.text
        verdict.violations += [f"all fixes: {wrong}" for wrong in wrongs(source.text, fixed.text)]
        again = fixer(replace(source, text=fixed.text), every_rule)
        if again.text != fixed.text or again.applied:
            codes = sorted({diagnostic.code for diagnostic in again.applied}) or ["nothing that it names"]
            verdict.violations.append(f"all fixes: a second run still does {', '.join(codes)}")
    if len(offered) > 1:
        _judge_alone(source, found, offered, verdict, fixer, deadline)


def _judge_alone(
    source: Source,
    found: FileResult,
    offered: Sequence[Diagnostic],
    verdict: Verdict,
    fixer: Fixer,
    deadline: float,
) -> None:
    for index, diagnostic in enumerate(offered):
        if time.monotonic() > deadline:
            verdict.not_alone += len(offered) - index
            return
        verdict.alone += 1
        only = replace(found, diagnostics=tuple(map(lambda d, one=diagnostic: _only(d, one), found.diagnostics)))
        fixed = fixer(source, _offering(source, only))
        lost = wrongs(source.text, fixed.text) if fixed.text != source.text else []
        place = f"{diagnostic.code} at {diagnostic.start.row}:{diagnostic.start.column} alone"
        verdict.violations += [f"{place}: {wrong}" for wrong in lost]


def _kind(diagnostic: Diagnostic) -> tuple[str, str]:
    return diagnostic.code, diagnostic.fix.safety.value if diagnostic.fix else ""


def _only(diagnostic: Diagnostic, one: Diagnostic) -> Diagnostic:
    return diagnostic if diagnostic is one else diagnostic._replace(fix=None)


def _remembering(source: Source, found: FileResult) -> Check:
    """Return the check of all rules, which knows what it found in this source."""
    return lambda some: found if some.text == source.text else every_rule(some)


def _offering(source: Source, only: FileResult) -> Check:
    """Return a check that offers the fixes of one result, and none once the text is another."""

    def check(some: Source) -> FileResult:
        if some.text == source.text:
            return only
        result = every_rule(some)
        return replace(result, diagnostics=tuple(d._replace(fix=None) for d in result.diagnostics))

    return check


def wrongs(old: str, new: str) -> Iterator[str]:
    """Yield what the edited text has lost."""
    if parsed(old) is None:
        return
    if parsed(new) is None:
        yield "the result does not parse"
        return
    changed = difference(old, new)
    if changed:
        yield f"code outside the edits means something else: {changed}"
    before, after = pyflakes(old), pyflakes(new)
    renamed = _unused_imports(after) <= _unused_imports(before)
    for message in sorted((after - before).elements()):
        if not (renamed and message.endswith(_UNUSED)):
            yield f"pyflakes says {message!r}"


def _unused_imports(messages: Counter[str]) -> int:
    """Return how many imports nothing uses; one that was so before may have got another name."""
    return sum(count for message, count in messages.items() if message.endswith(_UNUSED))


def pyflakes(text: str) -> Counter[str]:
    """Return what pyflakes says of a text that parses, without places.

    Left out is what it says of imports in an `if` or a `try`, which stay whatever uses them, since another branch may
    bind the same names, of star imports, of which nobody knows what they bind, and of names that stand in a string, or
    in a file that looks names up.
    """
    tree = parsed(text)
    if tree is None:
        return Counter({"does not parse": 1})
    rows = set(_rows_of_conditional_imports(tree))
    found = checker.Checker(tree, "<file>").messages

    def stays(message: UnusedImport) -> bool:
        return (
            looked_up
            or message.lineno in rows
            or "*" in message.message_args[0]
            or not strings.isdisjoint(re.findall(r"\w+", str(message.message_args)))
        )

    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    strings = {word for value in values if isinstance(value, str) for word in re.findall(r"\w+", value)}
    looked_up = re.search(r"\b(?:(?:eval|exec|globals|locals)\(|(?:vars|dir)\(\)|sys\.modules|import __main__)", text)
    kept = [each for each in found if not (isinstance(each, UnusedImport) and stays(each))]
    undefined = {_sentence(each) for each in kept if isinstance(each, UndefinedName)}
    return Counter(_sentence(each) for each in kept if not isinstance(each, UndefinedName)) + Counter(undefined)


def _rows_of_conditional_imports(tree: ast.Module) -> Iterator[int]:
    plain = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
    for owner in ast.walk(tree):
        for child in ast.iter_child_nodes(owner):
            if isinstance(child, (ast.Import, ast.ImportFrom)) and not isinstance(owner, plain):
                yield child.lineno


def _sentence(message: Message) -> str:
    """Return a message with the lines that it names left out, and of what is imported but the name that it binds."""
    named = message.message_args
    if isinstance(message, UnusedImport):
        named = (re.split(r"[. ]", str(named[0]))[-1],)
    given = named if isinstance(named, tuple) else (named,)
    return str(message.message % tuple(0 if isinstance(arg, int) else arg for arg in given))
