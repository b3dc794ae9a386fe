"""Replacing a file whole: whoever looks sees the old content or the new one, also after a kill at any moment.

The new content stands in a temporary file beside the old one first. Its name is the same in every run, so that what a
killed run left behind is taken away by the next one that writes the same file; a lock tells it from one in use.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

if sys.platform != "win32":  # there a file that is open cannot be removed, which serves as a lock
    import fcntl

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_LONGEST_NAME = 100
_IRREPLACEABLE = (errno.EACCES, errno.EPERM, errno.EBUSY)
"""How a system says that a file can be written but not replaced: its folder is closed, or it is a mount of its own."""


def write_output(path: str, data: bytes) -> None:
    """Write the data to a file, a pipe or a device; a file that was there stays as it was unless all could be written.

    Raises:
        OSError: it cannot be written.
    """
    path = os.path.realpath(path)
    try:
        existing = os.stat(path)
    except FileNotFoundError:
        _write_new(path, data)
        return
    if stat.S_ISREG(existing.st_mode):
        try:
            replace_file(path, data, like=existing)
        except OSError as error:
            if error.errno not in _IRREPLACEABLE:
                raise
        else:
            return
    with open(path, "wb") as file:
        file.write(data)


def replace_file(
    path: str, data: bytes, *, like: os.stat_result | None = None, ready: Callable[[], None] | None = None
) -> None:
    """Put the data in place of the content of a file, all of it or nothing.

    Args:
        path: the file itself, which is no link.
        data: its new content.
        like: whose owner and mode it gets; by default it can be read by everybody.
        ready: called when nothing but the replacement is left to do; what it raises leaves the file as it was.

    Raises:
        OSError: the file cannot be written, or another process writes it.
    """
    temporary = temporary_name(path)
    with _created(temporary) as file, _removed_on_failure(file, temporary):
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if like is not None:
            with suppress(OSError, AttributeError):  # only the super-user can, and only POSIX has owners
                os.chown(temporary, like.st_uid, like.st_gid)
        os.chmod(temporary, 0o644 if like is None else stat.S_IMODE(like.st_mode))
        if sys.platform == "win32":  # what is open cannot be moved there
            file.close()
        if ready is not None:
            ready()
        os.replace(temporary, path)


def _write_new(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        try:
            file.write(data)
            file.flush()
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            raise


def temporary_name(path: str) -> str:
    """Return where the new content of a file stands until it is complete."""
    folder, name = os.path.split(path)
    if len(name) > _LONGEST_NAME:
        name = name[:_LONGEST_NAME] + hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.path.join(folder, f".{name}.torchlint")


@contextmanager
def _removed_on_failure(file: BinaryIO, temporary: str) -> Iterator[None]:
    """Take the temporary file away on any error, while it is still locked."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if sys.platform == "win32":  # what is open cannot be removed there
                file.close()
            os.unlink(temporary)
        raise


def _created(temporary: str) -> BinaryIO:
    """Return the temporary file, made anew and locked.

    Raises:
        OSError: it cannot be made, or another process is at work on it.
    """
    try:
        descriptor = os.open(temporary, _FLAGS, 0o600)
    except FileExistsError:
        _remove_leftover(temporary)
        descriptor = os.open(temporary, _FLAGS, 0o600)
    file = open(descriptor, "wb")  # noqa: SIM115 (the caller closes it)
    try:
        _lock(descriptor)
        if not os.path.samestat(os.fstat(descriptor), os.lstat(temporary)):
            raise _in_use()
    except BaseException:  # it is somebody else's now
        file.close()
        raise
    return file


def _remove_leftover(temporary: str) -> None:
    """Remove what a killed run left.

    Raises:
        OSError: another process is at work on it.
    """
    if sys.platform == "win32":
        os.unlink(temporary)
        return
    descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _lock(descriptor)
        os.unlink(temporary)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use() from None
    except OSError:
        return  # a file system without locks


def _in_use() -> OSError:
    return OSError(errno.EBUSY, "another run of torchlint is writing it; run again")
