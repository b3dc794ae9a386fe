"""Rules of other packages, by the entry points that settings name.

Nothing of the linted tree is run for that: only what is installed counts. The current folder, the project and what lies
around it are left out of the paths that entry points and their modules are looked for on.
"""

from __future__ import annotations

import importlib.util
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import TYPE_CHECKING

from torchlint.registry import rules as built_in_rules
from torchlint.rule import Default, Family, Rule, Triggers
from torchlint.suppress import BUILT_IN, TORCHFIX_CODES

if TYPE_CHECKING:
    from torchlint.settings import Settings

GROUP = "torchlint.rules"

_CODE = re.compile(r"(?!TL)[A-Z]{2,8}\d{2,4}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")


class PluginError(Exception):
    """A plugin that the settings name cannot be used; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The rules of one entry point."""

    name: str
    distribution: str
    """With its version."""

    rules: tuple[Rule, ...]
    identity: str
    """What changes when the plugin does: its name and version, and the stamps of its files."""


def plugin_rules(settings: Settings) -> tuple[Rule, ...]:
    """Return the rules of the plugins that the settings name, none if they name none.

    Raises:
        PluginError: one of them cannot be used.
    """
    return tuple(rule for plugin in _plugins(settings) for rule in plugin.rules)


def plugin_identities(settings: Settings) -> tuple[str, ...]:
    """Return what the plugins of the settings are known by.

    Raises:
        PluginError: one of them cannot be used.
    """
    return tuple(plugin.identity for plugin in _plugins(settings))


def known_names(settings: Settings) -> Mapping[str, str]:
    """Return the name of each code that findings can have.

    Raises:
        PluginError: a plugin that the settings name cannot be used.
    """
    rules = (*built_in_rules(), *plugin_rules(settings))
    return {**{rule.code: rule.name for rule in rules}, **BUILT_IN}


def without_collisions(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return rules of several plugins, each once.

    Raises:
        PluginError: two of them share a code or a name.
    """
    owners: dict[str, Rule] = {}
    for rule in rules:
        for word in (rule.code, rule.name):
            if owners.setdefault(word, rule) is not rule:
                raise PluginError(f"two plugins have a rule {word}: use one of them only")
    return tuple({rule.code: rule for rule in owners.values()}.values())


def _plugins(settings: Settings) -> tuple[Plugin, ...]:
    return _loaded(settings.plugins, settings.root or os.getcwd()) if settings.plugins else ()


@cache
def _loaded(names: tuple[str, ...], tree: str) -> tuple[Plugin, ...]:
    with _only_installed(tree) as path:
        installed = [
            (entry, distribution)
            for distribution in distributions(path=path)
            for entry in distribution.entry_points
            if entry.group == GROUP
        ]
        found = tuple(_load(name, installed, tree) for name in dict.fromkeys(names))
    without_collisions(rule for plugin in found for rule in plugin.rules)
    return found


@contextmanager
def _only_installed(tree: str) -> Iterator[list[str]]:
    """Take the folders that have to do with the tree off the path of imports for the block, and give what is left."""
    before = list(sys.path)
    sys.path[:] = path = [folder for folder in before if _is_apart(folder, tree)]
    try:
        yield path
    finally:
        sys.path[:] = before


def _is_apart(path: str, tree: str) -> bool:
    """Return whether a path belongs to the installation of Python, or neither lies in the tree nor around it."""
    real = os.path.realpath(path)
    if any(_contains(folder, real) for folder in _installation()):
        return True
    here = os.path.realpath(os.getcwd())
    return (
        os.path.isabs(path)
        and os.path.normcase(real) != os.path.normcase(here)
        and not _contains(tree, real)
        and not _contains(real, tree)
    )


@cache
def _installation() -> tuple[str, ...]:
    """Return the folders that installers write to."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))


def _contains(folder: str, path: str) -> bool:
    folder, path = (os.path.normcase(os.path.realpath(each)) for each in (folder, path))
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _load(name: str, installed: Sequence[tuple[EntryPoint, Distribution]], tree: str) -> Plugin:
    entries = {entry.value: (entry, distribution) for entry, distribution in installed if entry.name == name}
    if not entries:
        names = ", ".join(sorted({entry.name for entry, _ in installed}))
        raise PluginError(
            f"plugin {name!r} is not installed beside torchlint; "
            + (f"there are: {names}" if names else f"no package there has an entry point in the group {GROUP}")
        )
    if len(entries) > 1:
        owners = " and ".join(_shown(distribution) for _, distribution in entries.values())
        raise PluginError(f"plugin {name!r} is in {owners}: uninstall one of them")
    ((entry, distribution),) = entries.values()
    owner = _shown(distribution)
    files = _files(name, entry.module.partition(".")[0], tree)
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise PluginError(f"plugin {name!r} of {owner} cannot be imported: {reason}") from error
    rules = (loaded,) if isinstance(loaded, Rule) else tuple(loaded) if isinstance(loaded, (list, tuple)) else ()
    if not rules or not all(isinstance(rule, Rule) for rule in rules):
        raise PluginError(f"plugin {name!r} of {owner}: {entry.value} is neither a Rule nor a list of Rules")
    for rule in rules:
        _check(rule, f"plugin {name!r} of {owner}")
    return Plugin(name, owner, rules, f"{name} {owner} {' '.join(_stamps(files))}")


def _shown(distribution: Distribution) -> str:
    return f"{distribution.metadata['Name']} {distribution.version}"


def _files(name: str, module: str, tree: str) -> list[str]:
    """Return the file or the folders of a module, which is not imported for that.

    Raises:
        PluginError: it is not there, or it is part of the tree.
    """
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise PluginError(f"plugin {name!r}: there is no module {module}, which its entry point names")
    places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
    for place in places:
        if not _is_apart(place, tree):
            raise PluginError(
                f"plugin {name!r} is at {place}, in the tree that is checked, of which nothing is run: "
                "install it as a package, and not with --editable"
            )
    return places


def _stamps(places: Iterable[str]) -> Iterator[str]:
    """Yield the stamp of each Python file."""
    for place in places:
        folders = os.walk(place) if os.path.isdir(place) else [(os.path.dirname(place), [], [os.path.basename(place)])]
        for folder, _, names in folders:
            for name in sorted(names):
                if name.endswith(".py"):
                    status = os.stat(os.path.join(folder, name))
                    yield f"{name} {status.st_mtime_ns} {status.st_size}"


def _check(rule: Rule, owner: str) -> None:
    """Raise PluginError unless torchlint can work with the rule."""
    taken = {word for known in built_in_rules() for word in (known.code, known.name)}
    taken |= {*BUILT_IN, *BUILT_IN.values(), *TORCHFIX_CODES}
    problems = []
    if not _CODE.fullmatch(rule.code):
        problems.append("its code must be two to eight capital letters, not beginning with TL, and two to four digits")
    if not _NAME.fullmatch(rule.name):
        problems.append("its name must be two or more words in small letters, joined by hyphens")
    problems += [f"{word} is torchlint's own" for word in (rule.code, rule.name) if word in taken]
    typed = ((rule.family, Family), (rule.default, Default), (rule.triggers, Triggers))
    problems += [f"{value!r} is no {kind.__name__}" for value, kind in typed if not isinstance(value, kind)]
    if not rule.checks:
        problems.append("it has no check")
    if not (rule.summary.strip() and (rule.documentation or "").strip()):
        problems.append("it lacks a summary or documentation")
    if not _is_specifier(rule.torch):
        problems.append(f"{rule.torch!r} is no specifier of versions")
    if problems:
        raise PluginError(f"{owner}: rule {rule.code} {rule.name}: {'; '.join(problems)}")


def _is_specifier(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True
