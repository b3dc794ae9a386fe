"""Results as JSON and back: what is read is checked against the types it must have, and nothing of it is run."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any

from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult, Status

_MOST = 2**40
_PLACE_OF_PATH = Diagnostic._fields.index("path")
_LEFT_OUT = ("path", "status", "errors", "timings", "digest")
_KEPT = tuple(field.name for field in fields(FileResult) if field.name not in _LEFT_OUT)
_PLAIN = {status.value: status for status in Status if status is not Status.FAILED}


class ForeignResultError(ValueError):
    """What was read is not the result of a file."""


def encode(result: FileResult) -> Any:
    """Return the result as JSON has it, without its path: the status alone where there is nothing else to say."""
    if result == FileResult(result.path, result.status, digest=result.digest, timings=result.timings):
        return result.status.value
    bare = replace(
        result,
        diagnostics=tuple(diagnostic._replace(path="") for diagnostic in result.diagnostics),
        warnings=tuple(warning.removeprefix(result.path) for warning in result.warnings),
    )
    return [result.status.value, *(plain(getattr(bare, name)) for name in _KEPT)]


def plain(value: object) -> Any:
    """Return the value in lists, strings and numbers."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [[plain(key), plain(item)] for key, item in value.items()]
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def decode(data: object, path: str, known: Mapping[str, str]) -> FileResult:
    """Return the result of a file with this path from JSON; ``known`` are the names of rules by code.

    Raises:
        ForeignResultError: it could not have been written by `encode`.
    """
    if isinstance(data, str):
        if data not in _PLAIN:
            raise ForeignResultError("no status")
        return FileResult(path, _PLAIN[data])
    if not isinstance(data, list) or len(data) != len(_KEPT) + 1 or data[0] not in _PLAIN:
        raise ForeignResultError("no result")
    items = dict(zip(_KEPT, data[1:], strict=True))
    items["diagnostics"] = _with_path(items["diagnostics"], path)
    kept = {name: _reader_of_field(name)(item) for name, item in items.items()}
    result = FileResult(path, _PLAIN[data[0]], **kept)
    if not _is_sound(result, known):
        raise ForeignResultError("a result that contradicts itself")
    return replace(result, warnings=tuple(path + warning for warning in result.warnings))


def _with_path(diagnostics: object, path: str) -> object:
    if not isinstance(diagnostics, list) or not all(isinstance(each, list) for each in diagnostics):
        raise ForeignResultError("no findings")
    return [[*each[:_PLACE_OF_PATH], path, *each[_PLACE_OF_PATH + 1 :]] for each in diagnostics]


def _is_sound(result: FileResult, known: Mapping[str, str]) -> bool:
    """Return whether reports can show the result, and a terminal can."""
    for diagnostic in result.diagnostics:
        edits = diagnostic.fix.edits if diagnostic.fix else ()
        offsets = {offset for edit in edits for offset in (edit.range.start, edit.range.end)}
        if known.get(diagnostic.code) != diagnostic.name or not offsets <= result.excerpts.positions.keys():
            return False
        places = (diagnostic.start, diagnostic.end, *(result.excerpts.positions[offset] for offset in offsets))
        if not all(place.row >= 1 and place.column >= 1 for place in places):
            return False
        words = (diagnostic.message, diagnostic.fix.message, diagnostic.fix.why) if diagnostic.fix else ()
        if not all(map(_is_printable, (diagnostic.message, *words))):
            return False
    return all(map(_is_printable, (result.note, *result.warnings)))


def _is_printable(text: str) -> bool:
    """Return whether a terminal shows the text and does not obey it."""
    return text.isprintable() or all(character.isprintable() or character in "\n\t" for character in text)


@cache
def _hints(owner: Any) -> dict[str, Any]:
    return typing.get_type_hints(owner)


@cache
def _reader_of_field(name: str) -> Callable[[Any], Any]:
    return _reader(_hints(FileResult)[name])


@cache
def _reader(wanted: Any) -> Callable[[Any], Any]:
    """Return the function that reads a type, and raises ForeignResultError for anything that is not of it."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _optional(_reader(next(each for each in arguments if each is not types.NoneType)))
    if origin is tuple:
        return _sequence(_reader(arguments[0]))
    if origin is Mapping:
        return _mapping(_reader(arguments[0]), _reader(arguments[1]))
    if isinstance(wanted, type) and (is_dataclass(wanted) or issubclass(wanted, tuple)):
        return _record(wanted, [_reader(hint) for hint in _hints(wanted).values()])
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return _member(wanted)
    return {int: _number, str: _text, bool: _flag}[wanted]


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ForeignResultError("no number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ForeignResultError("no text")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ForeignResultError("neither true nor false")
    return value


def _optional(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else inner(value)


def _sequence(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise ForeignResultError("no list")
        return tuple([inner(item) for item in value])

    return read


def _mapping(key: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> dict[Any, Any]:
        if type(value) is not list or not all(type(pair) is list and len(pair) == 2 for pair in value):
            raise ForeignResultError("no pairs")
        return {key(pair[0]): inner(pair[1]) for pair in value}

    return read


def _record(owner: Any, readers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(readers):
            raise ForeignResultError(f"no {owner.__name__}")
        return owner(*[reader(item) for reader, item in zip(readers, value, strict=True)])

    return read


def _member(owner: type[Enum]) -> Callable[[Any], Any]:
    members = {member.value: member for member in owner}

    def read(value: Any) -> Enum:
        if type(value) is not str or value not in members:
            raise ForeignResultError(f"no {owner.__name__}")
        return members[value]

    return read
