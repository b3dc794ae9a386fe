"""The modules of a project around one of them: those that it imports, and those that import it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchlint.edits.importers import files_around, top_of_project
from torchlint.edits.verify import parse_python

_MOST = 16
"""Modules that are looked at, the nearest first."""
_LARGEST = 200_000
_PACKAGE = "__init__"


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
    seen = {own.path}
    for path in [*_imported(own), *_importing(own)]:
        if path in seen or len(seen) > _MOST:
            continue
        seen.add(path)
        other = read_module(path)
        if other is not None and (links(own, other) or links(other, own)):
            yield other


def links(module: Module, other: Module) -> list[Link]:
    """Return the names by which a module has another, also by way of the package that holds that."""
    found = []
    for statement in module.imports:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                is_named = alias.asname is not None or "." not in alias.name
                if is_named and other.path in _files(alias.name, 0, module.path):
                    found.append(Link(statement, alias, is_module=True))
                continue
            source = statement.module or ""
            if other.path in _files(f"{source}.{alias.name}".lstrip("."), statement.level, module.path):
                found.append(Link(statement, alias, is_module=True))
            elif _holds(_files(source, statement.level, module.path), alias, other):
                found.append(Link(statement, alias, is_module=False))
    return found


def _holds(sources: list[Path], alias: ast.alias, other: Module) -> bool:
    """Whether one of the files from which a name comes is a module, or a package that has the name from there."""
    if other.path in sources:
        return True
    packages = [source for source in sources if source.stem == _PACKAGE and source.parent in other.path.parents]
    return bool(packages) and alias.name in other.defined


def _imported(own: Module) -> Iterator[Path]:
    """Yield the files that a module imports something from, and what packages among them may have it from."""
    for statement in own.imports:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                yield from _files(alias.name, 0, own.path)
                continue
            source = statement.module or ""
            yield from _files(f"{source}.{alias.name}".lstrip("."), statement.level, own.path)
            for path in _files(source, statement.level, own.path):
                yield path
                yield from _passed_on(path, alias.name) if path.stem == _PACKAGE else ()


def _passed_on(package: Path, name: str) -> Iterator[Path]:
    """Yield the files from which a package has a name that others take from it."""
    module = read_module(package)
    for statement in module.imports if module is not None else ():
        if isinstance(statement, ast.ImportFrom) and any(each.name in (name, "*") for each in statement.names):
            yield from _files(statement.module or "", statement.level, package)


def _importing(own: Module) -> Iterator[Path]:
    """Yield the files around a module that may import it, or what a package has from it."""
    names = {own.path.stem, own.path.parent.name}
    for path in files_around(own.path):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if any(name.encode() in text for name in names) and b"import" in text:
            yield path


def _files(name: str, level: int, importing: Path) -> list[Path]:
    """Return the files that a dotted name may stand for in a module, if there are any."""
    above = importing.parents
    if level:
        folders = [above[level - 1]] if level <= len(above) else []
    else:
        top = top_of_project(importing)
        folders = [folder for folder in above if folder == top or top in folder.parents]
    parts = name.split(".") if name else []
    places = [folder.joinpath(*parts) for folder in folders]
    candidates = [path for place in places for path in (place.with_name(f"{place.name}.py"), place / f"{_PACKAGE}.py")]
    return [path for path in candidates if path.is_file()][:1]
