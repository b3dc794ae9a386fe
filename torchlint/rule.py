"""What a rule is: words, triggers and checks. A rule holds no state and never traverses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from torchlint.safety import Safety

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.finding import Finding
    from torchlint.semantics.model import Model

Check: TypeAlias = "Callable[[Any, Model], Iterator[Finding]]"
CheckType = TypeVar("CheckType", bound="Check")


class Default(str, Enum):
    """Whether a rule is in the default set."""

    ON = "on"
    ADVICE = "advice"
    """Off unless selected: useful, but judgement is needed."""

    PREVIEW = "preview"
    """Off unless selected: not yet judged on real code."""


class Family(str, Enum):
    """Rules are grouped by effect; the value is the folder under ``torchlint/rules``."""

    DATA = "data"
    DEVICE = "device"
    TRAINING = "training"
    MODEL = "model"
    INFERENCE = "inference"
    DEBUG = "debug"
    DISTRIBUTED = "distributed"
    MODERN = "modern"
    HYGIENE = "hygiene"


@dataclass(frozen=True, slots=True)
class Triggers:
    """Identifiers without which a rule cannot fire: of every group at least one must occur in the file.

    The screens that decide whether a file is parsed at all are derived from this, so a group must hold every
    spelling that the rule can react to. An import alias hides nothing: the original name stands in the import.
    """

    groups: tuple[frozenset[str], ...]

    @staticmethod
    def all_of(*groups: str | tuple[str, ...] | frozenset[str]) -> Triggers:
        """Return triggers from groups given as one name or several.

        Raises:
            ValueError: one is no identifier, so that no file would seem to hold it.
        """
        found = Triggers(tuple(frozenset((g,) if isinstance(g, str) else g) for g in groups))
        wrong = sorted(name for group in found.groups for name in group if not name.isidentifier())
        if wrong:
            raise ValueError(f"a trigger is one identifier, which {wrong[0]!r} is not: give its parts as groups")
        return found


@dataclass(frozen=True, slots=True)
class Example:
    """Code on which the rule fires exactly once, and what its fix makes of it (None: there is no fix)."""

    bad: str
    good: str | None = None


class Described(Protocol):
    """What reports say about a rule."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def documentation(self) -> str: ...


class RuleWords(Described, Protocol):
    """What selecting and reporting need to know of a rule: no check, so that no syntax tree is needed."""

    @property
    def default(self) -> Default: ...
    @property
    def in_tests(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``documentation`` (the module's docstring) is its page."""

    code: str
    name: str
    family: Family
    since: str
    default: Default
    summary: str
    """One line for lists: what is wrong."""

    triggers: Triggers
    examples: tuple[Example, ...]
    references: tuple[str, ...]
    """Where the claim comes from: addresses of PyTorch documentation, papers, measurements."""

    documentation: str
    silences: Mapping[str, str]
    """Id and sentence of every clause under which the rule stays silent; each has a near miss in ``good.py``."""

    fixes: tuple[Safety, ...] = ()
    """The safeties that the fixes of this rule can have."""

    asks_project: bool = False
    """Whether other files may see what an unsafe fix changes: then they are read along before it is applied."""

    torch: str = ""
    """The torch versions for which the rule holds, as a specifier (``>=1.9``); empty: all supported ones."""

    in_tests: bool = False
    """Whether the rule also applies to test files (performance rules do not)."""

    about_speed: bool = True
    """Whether the rule claims that its finding costs time or memory; False: it is about what the program computes."""

    yields_to: tuple[str, ...] = ()
    """Rules that speak alone where both could: their fixes may bring findings of this one to light."""

    checks: dict[type[cst.CSTNode], list[Check]] = field(default_factory=dict)
    called: dict[Check, frozenset[str]] = field(default_factory=dict)
    """For checks of calls: the last names of the functions and methods that they ask for."""

    conditions: dict[Check, Callable[[Model], bool]] = field(default_factory=dict)
    """For checks that can find something in certain files only: whether a file is one of them."""

    switched_off: set[str] = field(default_factory=set)
    """Silence clauses that a test has switched off to prove that a fixture needs them."""

    def check(
        self,
        *node_types: type[cst.CSTNode],
        called: Iterable[str] | None = None,
        condition: Callable[[Model], bool] | None = None,
    ) -> Callable[[CheckType], CheckType]:
        """Return a decorator that runs the function on every node of these types.

        ``called``, names of functions and methods, of which the last part counts, spares it the calls of others;
        ``condition``, asked once, files in which it cannot find anything.
        """

        def register(function: CheckType) -> CheckType:
            for node_type in node_types:
                self.checks.setdefault(node_type, []).append(function)
            if called is not None:
                self.called[function] = frozenset(name.rpartition(".")[2] for name in called)
            if condition is not None:
                self.conditions[function] = condition
            return function

        return register

    def silent(self, clause: str, holds: bool) -> bool:
        """Return whether a silence clause keeps the rule quiet here."""
        if clause not in self.silences:
            raise KeyError(f"{self.name} has no silence clause {clause!r}")
        return holds and clause not in self.switched_off
