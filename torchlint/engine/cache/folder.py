"""The folder of the cache: documents that are whole and of this program, or are not there at all."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from dataclasses import dataclass
from typing import Any

from torchlint.engine.many import paused_collector
from torchlint.source import digest

NAME = ".torchlint_cache"
VARIABLE = "TORCHLINT_CACHE_DIR"

_TAG = "CACHEDIR.TAG"
_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
_MARKS = {
    _TAG: f"{_SIGNATURE}\n# This folder is a cache that torchlint made: see https://bford.info/cachedir/\n",
    ".gitignore": "# torchlint made this: a cache is not to be committed\n*\n",
}
_DOCUMENT = re.compile(r"(results|rules)-[0-9a-f]{32}\.json")
_TEMPORARY = re.compile(r"\.[\w.-]+\.[0-9a-f]{16}\.tmp")
_FIRST_LINE = re.compile(rb"torchlint cache ([0-9a-f]{32}) ([0-9a-f]{32})")
_MOST_BYTES = 100_000_000
_MOST_DOCUMENTS = 16
"""Of each kind; those written last are kept."""

_STRAY_SECONDS = 600
"""Age from which on a temporary file is one that a killed process left."""


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A place for documents; whatever fails in it means that there is no document, and nothing else."""

    path: str

    def read(self, kind: str, name: str) -> Any:
        """Return a document that was written under this name, None if there is none or it is not whole."""
        path = self._document(kind, name)
        try:
            data = _bytes(path)
            first, _, body = data.partition(b"\n")
            match = _FIRST_LINE.fullmatch(first)
            if match is None or match[1].decode() != name or match[2].decode() != digest(body):
                return None
            with paused_collector():
                return json.loads(body)
        except (OSError, ValueError, RecursionError, MemoryError):
            return None

    def stamp(self, kind: str, name: str) -> tuple[int, ...]:
        """Return what tells one state of a document from the next, nothing if there is none."""
        try:
            status = os.stat(self._document(kind, name))
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def write(self, kind: str, name: str, content: Any) -> bool:
        """Write a document as a whole or not at all, whoever else writes it, and return whether it was written."""
        body = json.dumps(content, separators=(",", ":"), check_circular=False).encode("ascii")
        data = f"torchlint cache {name} {digest(body)}\n".encode() + body
        if len(data) > _MOST_BYTES or not self._is_made():
            return False
        try:
            _replace(self._document(kind, name), data)
            self._tidy(kind)
        except OSError:
            return False
        return True

    def remove(self) -> tuple[str, ...]:
        """Remove what torchlint made, the folder too if nothing else is in it, and return the names that remain.

        Raises:
            OSError: something cannot be removed.
        """
        for name in os.listdir(self.path):
            if _is_ours(name) and name not in _MARKS:
                os.unlink(os.path.join(self.path, name))
        others = tuple(sorted(set(os.listdir(self.path)) - set(_MARKS)))
        if not others:
            for name in set(_MARKS) & set(os.listdir(self.path)):
                os.unlink(os.path.join(self.path, name))
            os.rmdir(self.path)
        return others

    def exists(self) -> bool:
        """Return whether the folder is there and torchlint's."""
        try:
            names = os.listdir(self.path)
        except OSError:
            return False
        return all(map(_is_ours, names)) or _is_tagged(self.path)

    def _document(self, kind: str, name: str) -> str:
        return os.path.join(self.path, f"{kind}-{name}.json")

    def _is_made(self) -> bool:
        """Return whether the folder is there, made and marked if need be; one with foreign files is left alone."""
        try:
            os.makedirs(self.path, exist_ok=True)
            if not self.exists():
                return False
            for name, text in _MARKS.items():
                path = os.path.join(self.path, name)
                if not os.path.lexists(path):
                    _replace(path, text.encode())
        except OSError:
            return False
        return True

    def _tidy(self, kind: str) -> None:
        """Remove what nobody will ask for: the documents that were not written for longest, strays of killed runs."""
        old = []
        for entry in os.scandir(self.path):
            modified = entry.stat(follow_symlinks=False).st_mtime
            if entry.name.startswith(kind) and _DOCUMENT.fullmatch(entry.name):
                old.append((modified, entry.path))
            elif _TEMPORARY.fullmatch(entry.name) and abs(time.time() - modified) > _STRAY_SECONDS:
                os.unlink(entry.path)
        for _, path in sorted(old)[:-_MOST_DOCUMENTS]:
            os.unlink(path)


def cache_folder(root: str, configured: str | None) -> CacheFolder | None:
    """Return the folder of the cache for the files below a root; the environment says where, then the settings.

    The default folder is refused if it is a link: it would lead the writing out of the tree that is linted.
    """
    elsewhere = os.environ.get(VARIABLE) or configured
    if elsewhere:
        base = os.getcwd() if os.environ.get(VARIABLE) else root
        return CacheFolder(os.path.join(base, os.path.expanduser(elsewhere)))
    path = os.path.join(root, NAME)
    return None if os.path.islink(path) else CacheFolder(path)


def _is_ours(name: str) -> bool:
    return name in _MARKS or bool(_DOCUMENT.fullmatch(name) or _TEMPORARY.fullmatch(name))


def _is_tagged(folder: str) -> bool:
    try:
        return b"torchlint" in _bytes(os.path.join(folder, _TAG))
    except (OSError, ValueError):
        return False


def _bytes(path: str) -> bytes:
    """Return the content of a regular file of bearable size; anything else could block or fill the memory.

    Raises:
        OSError: it cannot be read, or is none.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise OSError(f"{path} is no document")
        return file.read()


def _replace(path: str, data: bytes) -> None:
    """Put the data in place of a file; only the owner can read it, since it quotes the files that were checked."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name.lstrip('.')}.{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
