"""The oldest torch that a project says it supports, read from its files; nothing of it is run."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from torchlint.semantics.process.target import Target
from torchlint.settings import Settings

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_MOST_BYTES = 1_000_000
_LOWER_BOUNDS = (">=", "==", "~=", ">", "===")
_NAMES = ("torch", "pytorch")
_CARET = re.compile(r"^\s*[\^~](?=\d)")
_BUILD = re.compile(r"(?<=\d)\+[\w.]+")
"""``+cu118`` is only allowed after ``==``, but written after other operators too."""

_CONDA = re.compile(r"^(?:[\w-]+::)?(torch|pytorch)\s*(?P<bounds>[<>=!~\d].*)?$")
_ENVIRONMENT_LINE = re.compile(r"^\s*-\s*[\"']?(?P<item>[^\"'#]+)")

Bound = tuple[int, int]


def find_target(folder: str, settings: Settings) -> Target | None:
    """Return the target of the files in a folder, None if neither the settings nor the project says one."""
    if settings.target_torch is not None:
        from packaging.version import Version

        version = Version(settings.target_torch)
        origin = f"target-torch in {os.path.basename(settings.origin)}" if settings.origin else "target-torch"
        return Target((version.major, version.minor), origin)
    return project_target(os.path.abspath(folder))


@lru_cache(maxsize=4096)
def project_target(folder: str) -> Target | None:
    """Return what the nearest folder with a requirement on torch says, up to the root of the repository."""
    found = _target_of(folder)
    above = os.path.dirname(folder)
    if found is not None or above == folder or os.path.exists(os.path.join(folder, ".git")):
        return found
    return project_target(above)


def _target_of(folder: str) -> Target | None:
    """Return what the files of this very folder say: the first that sets a bound counts."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    for name in sorted(names, key=_rank):
        reader = _reader(name)
        if reader is None:
            continue
        for label, path in _files(folder, name):
            bounds = list(_bounds(reader, path))
            if bounds:
                (major, minor), requirement = min(bounds)
                return Target((major, minor), f"{requirement} in {label}")
    return None


def _files(folder: str, name: str) -> Iterator[tuple[str, str]]:
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        yield name, path
    elif name == "requirements":
        for item in _listed(path):
            inner = os.path.join(path, item)
            if item.endswith(".txt"):
                yield f"{name}/{item}", inner
            for part in _listed(inner):
                if part.endswith(".txt"):
                    yield f"{name}/{item}/{part}", os.path.join(inner, part)


def _listed(folder: str) -> list[str]:
    """Return the sorted names in a folder, none if it cannot be listed or is no folder."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _bounds(reader: Callable[[str], Iterator[str]], path: str) -> Iterator[tuple[Bound, str]]:
    text = _text(path)
    for requirement in reader(text) if text is not None else ():
        bound = lower_bound(requirement)
        if bound is not None:
            yield bound, re.sub(r"\s+", "", requirement.partition(";")[0])


def _text(path: str) -> str | None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    return text if "torch" in text else None


def lower_bound(requirement: str) -> Bound | None:
    """Return the oldest minor version that a requirement on torch admits, None for others and without a bound."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion, Version

    text = re.split(r"\s(?:#|--)", requirement, maxsplit=1)[0].strip()
    try:
        parsed = Requirement(_BUILD.sub("", text))
    except InvalidRequirement:
        return None
    if parsed.name.lower() not in _NAMES or parsed.url:
        return None
    bounds = []
    for specifier in parsed.specifier:
        if specifier.operator in _LOWER_BOUNDS:
            try:
                version = Version(specifier.version.removesuffix(".*"))
            except InvalidVersion:
                continue
            bounds.append((version.major, version.minor))
    return max(bounds, default=None)


def _toml(text: str) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
    return content


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in lists and tables, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _table(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = value.get(key)
        if not isinstance(inner, Mapping):
            return {}
        value = inner
    return value


def _from_pyproject(text: str) -> Iterator[str]:
    content = _toml(text)
    project = _table(content, "project")
    yield from _strings(project.get("dependencies"))
    yield from _strings(project.get("optional-dependencies"))
    yield from _strings(content.get("dependency-groups"))
    poetry = _table(content, "tool", "poetry")
    groups = [_table(group, "dependencies") for group in _table(poetry, "group").values() if isinstance(group, Mapping)]
    for dependencies in (_table(poetry, "dependencies"), *groups):
        yield from _from_poetry(dependencies.get("torch"))


def _from_poetry(value: object) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        version = item.get("version") if isinstance(item, Mapping) else item
        if isinstance(version, str):
            yield from _from_version_constraint(version)


def _from_version_constraint(version: str) -> Iterator[str]:
    """Yield a constraint of poetry as requirements: ``^2.0`` and ``~2.0`` start at 2.0, a bare number is exact."""
    for alternative in version.split("||"):
        parts = [_CARET.sub(">=", part.strip()) for part in alternative.split(",")]
        yield "torch" + ",".join(f"=={part}" if part[:1].isdigit() else part for part in parts)


def _from_setup_cfg(text: str) -> Iterator[str]:
    import configparser  # only now: few projects have the file

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    sections = ["options.extras_require"] if parser.has_section("options.extras_require") else []
    values = [parser.get("options", "install_requires", fallback="")]
    values += [value for section in sections for _, value in parser.items(section)]
    for value in values:
        yield from re.split(r"[\n;]", value) if "\n" not in value else value.splitlines()


def _from_setup_py(text: str) -> Iterator[str]:
    """Yield every string of the program: those that are requirements on torch show themselves."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield node.value


def _from_requirements(text: str) -> Iterator[str]:
    yield from text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()


def _from_environment(text: str) -> Iterator[str]:
    """Yield conda's and pip's requirements of an environment, which need no more of YAML than its list items."""
    for line in text.splitlines():
        match = _ENVIRONMENT_LINE.match(line)
        conda = _CONDA.match(match["item"].strip()) if match else None
        if conda and conda["bounds"]:
            bounds = conda["bounds"].strip()
            # conda writes `=1.13` for what pip calls `==1.13.*`, and a build after a second `=`
            exact = re.match(r"=(?!=)\s*(\d[\d.]*)", bounds)
            yield f"torch=={exact[1].rstrip('.')}" if exact else f"torch{bounds}"


_READERS: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[str]]], ...] = (
    (re.compile(r"pyproject\.toml"), _from_pyproject),
    (re.compile(r"setup\.cfg"), _from_setup_cfg),
    (re.compile(r"setup\.py"), _from_setup_py),
    (re.compile(r"requirements\.txt"), _from_requirements),
    (re.compile(r"requirements"), _from_requirements),
    (re.compile(r"requirements.*\.txt"), _from_requirements),
    (re.compile(r"(environment|conda|env).*\.ya?ml"), _from_environment),
)
"""The files that are read, the most binding first."""


def _rank(name: str) -> int:
    ranks: Iterable[int] = (rank for rank, (pattern, _) in enumerate(_READERS) if pattern.fullmatch(name))
    return min(ranks, default=len(_READERS))


def _reader(name: str) -> Callable[[str], Iterator[str]] | None:
    rank = _rank(name)
    return _READERS[rank][1] if rank < len(_READERS) else None
