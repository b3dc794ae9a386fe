"""The modules of a project around one of them: those that it imports, and those that import it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchlint.edits.importers import files_around, top_of_project
from torchlint.edits.orphans import HARMLESS
from torchlint.edits.verify import parse_python

_MOST = 12
"""Modules that are read along with one, the nearest first."""
_LARGEST = 100_000
_PACKAGE = "__init__"
_OF_PACKAGE = re.compile(rb"^[ \t]*from[ \t]+\.+[ \t]+import\b", re.MULTILINE)
_SOURCES = "src"
"""The folder in which some projects keep their packages."""


@dataclass(frozen=True)
class Module:
    """One file of a project as Python's own parser reads it."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """All imports, also those in functions."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, (ast.Import, ast.ImportFrom)))

    @cached_property
    def roots(self) -> list[Path]:
        """The folders from which it may import by a name without a point: that of a script, the project's own."""
        here, top = self.path.parent, top_of_project(self.path)
        above = [here, *(each for each in here.parents if top is not None and (each == top or top in each.parents))]
        above += [top / _SOURCES] if top is not None else []
        return [folder for folder in above if not _is_file(folder / f"{_PACKAGE}.py")]

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names of the functions and classes of the module."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return frozenset(node.name for node in self.tree.body if isinstance(node, kinds))


@dataclass(frozen=True, slots=True)
class Link:
    """One name by which a module has another, or something of it."""

    statement: ast.Import | ast.ImportFrom
    alias: ast.alias
    is_module: bool
    """Whether the name stands for the other module itself."""

    is_package: bool = False
    """Whether it stands for a package that may have what the other module defines."""

    @property
    def name(self) -> str:
        """The name in the module that imports."""
        return self.alias.asname or self.alias.name


def read_module(path: Path, text: str | None = None) -> Module | None:
    """Return a module, None if it cannot be read or parsed; ``text`` is what stands in it, if that is known."""
    if text is None:
        try:
            text = path.read_bytes().decode() if path.stat().st_size <= _LARGEST else ""
        except (OSError, UnicodeDecodeError):
            return None
    tree = parse_python(text)
    return Module(path, text, tree) if tree is not None else None


def neighbours(own: Module) -> Iterator[Module]:
    """Yield the modules that one imports, and those of the folders around it that import it."""
    if own.path.stem == _PACKAGE or not own.path.is_file():
        return
    found, seen = 0, {own.path}
    for path in (*_imported(own), *_importing(own)):
        if path in seen or found == _MOST:
            continue
        seen.add(path)
        other = read_module(path)
        if other is not None and (links(own, other) or links(other, own)):
            found += 1
            yield other


def links(module: Module, other: Module) -> list[Link]:
    """Return the names by which a module has another, also by way of the package that holds that."""
    found = []
    for statement in module.imports:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                is_named = alias.asname is not None or "." not in alias.name
                files = _files(alias.name, 0, module) if is_named else []
                if other.path in files:
                    found.append(Link(statement, alias, is_module=True))
                elif _packages(files, other):
                    found.append(Link(statement, alias, is_module=False, is_package=True))
                continue
            source = statement.module or ""
            if other.path in _files(f"{source}.{alias.name}".lstrip("."), statement.level, module):
                found.append(Link(statement, alias, is_module=True))
            elif _holds(_files(source, statement.level, module), alias, other):
                found.append(Link(statement, alias, is_module=False))
    return found


def _holds(sources: list[Path], alias: ast.alias, other: Module) -> bool:
    """Whether one of the files from which a name comes is a module, or a package that has the name from there."""
    if other.path in sources:
        return True
    return bool(_packages(sources, other)) and alias.name in other.defined


def _packages(sources: list[Path], other: Module) -> list[Path]:
    """Return those of some files that stand for packages in which a module is."""
    return [source for source in sources if source.stem == _PACKAGE and source.parent in other.path.parents]


def _imported(own: Module) -> Iterator[Path]:
    """Yield the files that a module imports something from, and what packages among them may have it from."""
    for statement in own.imports:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                for path in _files(alias.name, 0, own):
                    yield path
                    yield from _held_by(path, own, alias) if path.stem == _PACKAGE else ()
                continue
            source = statement.module or ""
            yield from _files(f"{source}.{alias.name}".lstrip("."), statement.level, own)
            for path in _files(source, statement.level, own):
                yield path
                yield from _passed_on(path, alias.name) if path.stem == _PACKAGE else ()


def _held_by(package: Path, own: Module, alias: ast.alias) -> Iterator[Path]:
    """Yield the files from which a package has what a module reads of it: ``models.load(...)``."""
    name = alias.asname or alias.name
    nodes = (
        node for node in ast.walk(own.tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )
    for attribute in sorted(
        {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == name}
    ):
        yield from _passed_on(package, attribute)


def _passed_on(package: Path, name: str) -> Iterator[Path]:
    """Yield the files from which a package has a name that others take from it."""
    module = read_module(package)
    if module is None:
        return
    for statement in module.imports:
        if isinstance(statement, ast.ImportFrom) and any(each.name in (name, "*") for each in statement.names):
            yield from _files(statement.module or "", statement.level, module)


def _importing(own: Module) -> Iterator[Path]:
    """Yield the files around a module that may import it, or what a package has from it."""
    names = "|".join(map(re.escape, (own.path.stem, own.path.parent.name)))
    mentions = re.compile(rf"^[ \t]*(?:from|import)\b[^\n]*\b(?:{names})\b".encode(), re.MULTILINE)
    for path in files_around(own.path):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if mentions.search(text) or _OF_PACKAGE.search(text):
            yield path


def _files(name: str, level: int, module: Module) -> list[Path]:
    """Return the file that a dotted name stands for in a module, none if it is no module of the project."""
    parts = name.split(".") if name else []
    if level:
        folders = list(module.path.parents[level - 1 : level])
    elif parts:
        is_known = parts[0] in HARMLESS  # only the project that it is has it: a module of the name is another one
        folders = [f for f in module.roots if not is_known or _is_file(f / parts[0] / f"{_PACKAGE}.py")]
    else:
        return []
    places = [folder.joinpath(*parts) for folder in folders]
    candidates = [place.with_name(f"{place.name}.py") for place in places if place.name and parts]
    candidates += [place / f"{_PACKAGE}.py" for place in places]
    return [path for path in candidates if _is_file(path)][:1]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, a folder that may not be read
        return False
