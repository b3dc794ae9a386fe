"""Frozen settings from ``[tool.torchlint]`` in pyproject.toml or from torchlint.toml; no mistake in them is silent."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from torchlint.diagnostic import Severity
from torchlint.spelling import nearest

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

OWN_FILE = "torchlint.toml"
SHARED_FILE = "pyproject.toml"

DEFAULT_EXCLUDE = tuple(
    """
    .bzr .direnv .eggs .git .git-rewrite .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv .pytest_cache .pytype
    .ruff_cache .svn .tox .venv .vscode __pypackages__ _build buck-out dist node_modules site-packages venv
    third_party _vendor vendor wandb mlruns lightning_logs
    """.split()
)
"""What Ruff leaves out, and folders of other people's code and of training logs."""

OUTPUT_FORMATS = tuple(
    "full text concise grouped json json-lines sarif github gitlab junit pylint azure rdjson html".split()
)

_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)*([a-z]+\d*)?(\+\w+)?")


class SettingsError(Exception):
    """The settings are wrong; the message says in one line which file and key, and what would be right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How files are chosen and checked. Patterns are those of .gitignore, relative to ``root``."""

    select: tuple[str, ...] | None = None
    """Codes, prefixes, names or ALL; None is the default set."""

    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Pattern to the selectors that are off in the files that match it; a pattern after ``!`` means all others."""

    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    fixable: tuple[str, ...] | None = None
    """None is every rule."""

    unfixable: tuple[str, ...] = ()
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    target_torch: str | None = None
    """``major.minor`` of the oldest torch that the code supports; more digits mean nothing."""

    num_workers: int = 4
    """What the fix of ``dataloader-no-workers`` writes."""

    lint_tests: bool = False
    file_timeout: float = 60.0
    """Seconds that checking or fixing one file may take; 0 is no limit."""

    severity: Mapping[str, Severity] = field(default_factory=dict, hash=False)
    """Selector to severity; the most specific selector counts."""

    baseline: str | None = None
    """The file of findings that are known, relative to ``root``; None or empty: there is none."""

    fail_level: Severity = Severity.INFO
    """Findings below this severity do not make the exit code 1."""

    output_format: str | None = None
    cache_dir: str | None = None
    """Folder of the cache, relative to ``root``; None is ``.torchlint_cache``."""

    plugins: tuple[str, ...] = ()
    root: str = ""
    """The folder of the file that these settings come from, absolute; empty without a file."""

    origin: str = ""
    """That file; empty without one."""


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise TypeError("a list of strings")
    return tuple(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _table_of_lists(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or any(isinstance(item, str) for item in value.values()):
        raise TypeError('a table of lists of strings, as in "scripts/*" = ["TL101"]')
    return {str(key): _strings(item) for key, item in value.items()}


def _severities(value: object) -> dict[str, Severity]:
    names = [severity.value for severity in Severity]
    if not isinstance(value, Mapping) or not all(item in names for item in value.values()):
        raise TypeError(f'a table of {", ".join(names)}, as in TL101 = "{names[0]}"')
    return {str(key): Severity(item) for key, item in value.items()}


def _torch_version(value: object) -> str:
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise TypeError('a version in quotes, as in "2.1"')
    return value


def _worker_count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError("a whole number of at least 1")
    return value


def _seconds(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < threading.TIMEOUT_MAX:
        raise TypeError("a number of seconds, 0 for no limit")
    return float(value)


def _file_name(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError('the path of a file in quotes, as in "torchlint-baseline.json"')
    return value


def _severity(value: object) -> Severity:
    names = [severity.value for severity in Severity]
    if value not in names:
        raise TypeError(f"one of {', '.join(names)}")
    return Severity(value)


def _output_format(value: object) -> str:
    if value not in OUTPUT_FORMATS:
        raise TypeError(f"one of {', '.join(OUTPUT_FORMATS)}")
    return str(value)


def _folder(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise TypeError("the path of a folder")
    return value


_READERS: Mapping[str, Callable[[object], object]] = MappingProxyType(
    {
        **dict.fromkeys(
            "select extend_select ignore exclude extend_exclude fixable unfixable extend_safe_fixes "
            "extend_unsafe_fixes plugins".split(),
            _strings,
        ),
        **dict.fromkeys("force_exclude respect_gitignore unsafe_fixes lint_tests".split(), _flag),
        "per_file_ignores": _table_of_lists,
        "severity": _severities,
        "baseline": _file_name,
        "fail_level": _severity,
        "target_torch": _torch_version,
        "num_workers": _worker_count,
        "file_timeout": _seconds,
        "output_format": _output_format,
        "cache_dir": _folder,
    }
)
"""How the value of each key is checked; a TypeError says what it must be."""

KEYS = tuple(sorted(name.replace("_", "-") for name in (*_READERS, "extend")))
"""Every key that a configuration may have."""


def load_settings(path: str) -> Settings:
    """Return the settings of a configuration file, its ``extend`` included.

    Raises:
        SettingsError: it cannot be read, or holds a key or a value that means nothing.
    """
    return replace(_load(path, ()), root=os.path.dirname(os.path.abspath(path)), origin=path)


def _load(path: str, extended_by: tuple[str, ...]) -> Settings:
    real = os.path.realpath(path)
    if real in extended_by:
        raise SettingsError(f"{path}: `extend` leads back to this file")
    table = dict(_table(path) or {})
    base = Settings()
    if "extend" in table:
        extend = table.pop("extend")
        if not isinstance(extend, str):
            raise SettingsError(f"{path}: `extend` must be the path of a file")
        beside = os.path.join(os.path.dirname(path), os.path.expanduser(extend))
        base = _load(beside, (*extended_by, real))
    return replace(base, **{_name(path, key): _value(path, key, value) for key, value in table.items()})


def _table(path: str) -> Mapping[str, Any] | None:
    """Return the table of torchlint in a configuration file, None if it has none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SettingsError(f"{path}: cannot read: {error.strerror or error}") from error
    shared = os.path.basename(path) == SHARED_FILE
    if shared and b"torchlint" not in data:
        return None
    try:
        content: Mapping[str, Any] = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}".replace("\n", " ")) from error
    if not shared:
        return content
    tools = content.get("tool", {})
    table = tools.get("torchlint") if isinstance(tools, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise SettingsError(f"{path}: `tool.torchlint` must be a table")
    return table


def _name(path: str, key: str) -> str:
    if key in KEYS:
        return key.replace("-", "_")
    close = nearest(key.replace("_", "-"), KEYS)
    hint = f"did you mean `{close}`?" if close else f"the keys are {', '.join(KEYS)}"
    raise SettingsError(f"{path}: unknown key `{key}`; {hint}")


def _value(path: str, key: str, value: object) -> Any:
    try:
        return _READERS[key.replace("-", "_")](value)
    except TypeError as error:
        raise SettingsError(f"{path}: `{key}` must be {error}") from error


def merged(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """Return the settings with what the command line says (by Python names; None says nothing) on top.

    What extends and ignores is added to what is configured, anything else takes its place. A new ``select`` starts
    afresh: what the configuration adds and ignores is forgotten, as in Ruff.

    Raises:
        SettingsError: an option has a value that means nothing.
    """
    given = {
        name: _value("command line", name.replace("_", "-"), value)
        for name, value in overrides.items()
        if value is not None
    }
    if "select" in given:
        settings = replace(settings, extend_select=(), ignore=())
    changes: dict[str, Any] = {}
    for name, value in given.items():
        before = getattr(settings, name)
        if isinstance(value, tuple) and name.startswith(("extend", "ignore", "unfixable")):
            value = (*before, *value)
        elif isinstance(value, Mapping):
            value = _joined(before, value)
        changes[name] = value
    return replace(settings, **changes)


def _joined(before: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    joined = {**before, **added}
    for key in before.keys() & added.keys():
        if isinstance(added[key], tuple):
            joined[key] = (*before[key], *added[key])
    return joined


class SettingsFinder:
    """Answers which settings hold in a folder: those of the nearest configuration, with the command line on top."""

    def __init__(
        self, overrides: Mapping[str, Any] | None = None, *, config: str | None = None, isolated: bool = False
    ) -> None:
        """Take the options of a run: ``config`` holds for every file, ``isolated`` means no configuration at all.

        Raises:
            SettingsError: an option or the given configuration is wrong.
        """
        self._overrides = dict(overrides or {})
        self._default = merged(replace(Settings(), root=os.getcwd()), self._overrides)
        self._fixed = self._default if isolated else None
        if config is not None:
            self._fixed = merged(replace(load_settings(config), root=os.getcwd()), self._overrides)
        self._found: dict[str, Settings] = {}

    def is_given(self, selector: str) -> bool:
        """Return whether the command line names a selector of rules."""
        tables = (value for value in self._overrides.values() if isinstance(value, Mapping))
        lists = [value for value in self._overrides.values() if isinstance(value, (tuple, list))]
        return any(selector in value for value in (*lists, *(codes for table in tables for codes in table.values())))

    def for_file(self, path: str) -> Settings:
        """Return the settings of a file."""
        return self.for_folder(os.path.dirname(path) or ".")

    def for_folder(self, folder: str) -> Settings:
        """Return the settings of the files in a folder.

        Raises:
            SettingsError: the nearest configuration is wrong.
        """
        if self._fixed is not None:
            return self._fixed
        return self._nearest(os.path.abspath(folder))

    def _nearest(self, folder: str) -> Settings:
        passed = []
        while folder not in self._found:
            passed.append(folder)
            path = configuration_in(folder)
            above = os.path.dirname(folder)
            if path is not None:
                self._found[folder] = merged(load_settings(path), self._overrides)
            elif above == folder:
                self._found[folder] = self._default
            else:
                folder = above
        settings = self._found[folder]
        self._found.update(dict.fromkeys(passed, settings))
        return settings


def configuration_in(folder: str) -> str | None:
    """Return the configuration file of this very folder; a pyproject.toml without our table is none."""
    own = os.path.join(folder, OWN_FILE)
    if os.path.isfile(own):
        return own
    shared = os.path.join(folder, SHARED_FILE)
    return shared if os.path.isfile(shared) and _table(shared) is not None else None
