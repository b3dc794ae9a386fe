"""Text to tree, where no input takes the process down and every failure is a result."""

from __future__ import annotations

import ast
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

import libcst as cst

from torchlint.diagnostic import Position
from torchlint.source import Source
from torchlint.syntax.depth import TooDeep, find_too_deep

Result = TypeVar("Result")

_STACK, _SMALLER_STACK = 512 << 20, 64 << 20
"""Bytes; the second where the first is refused. Pages are only taken once they are used."""

_RECURSION_LIMIT = 100_000
_STOPS = 20
_PATIENCE = 0.5
"""Seconds between two attempts to stop a call: one that falls into a destructor is lost."""

_LOOK = 0.02
"""Seconds between two questions whether a call is still wanted."""

_one_at_a_time = threading.Lock()


class TimeLimitError(Exception):
    """A call took longer than it may, or than anybody waited."""


class _Stop(BaseException):
    """Raised within a call that takes too long; no part of it may take this for an error of its own."""


class Parsed(NamedTuple):
    """A source and its tree."""

    source: Source
    module: cst.Module


class SyntaxFailure(NamedTuple):
    """Why a source has no tree, and where (1-based, within the text)."""

    message: str
    row: int
    column: int


def parse(source: Source) -> Parsed | SyntaxFailure:
    """Return the tree of a source, or why there is none.

    Raises:
        ImportError: the native part of libcst cannot be loaded, which says nothing about the source.
    """
    too_deep = find_too_deep(source.text)
    if too_deep is not None:
        return _too_deep(source, too_deep)
    if "\0" in source.text:
        return _failure(source, "source code cannot contain null bytes", source.position(source.text.index("\0")))
    return run_with_large_stack(lambda: _parse(source))


def _too_deep(source: Source, too_deep: TooDeep) -> SyntaxFailure:
    return _failure(source, too_deep.message, source.position(too_deep.offset))


def _failure(source: Source, message: str, position: Position) -> SyntaxFailure:
    existing = source.position(source.offset(position))
    return SyntaxFailure(message, existing.row, existing.column)


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Spare libcst the check of each node that it makes: what its own parser made is valid, and it costs 12 %."""
    validate = cst.CSTNode.__post_init__
    cst.CSTNode.__post_init__ = _accept  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        cst.CSTNode.__post_init__ = validate  # type: ignore[method-assign]


def _accept(node: cst.CSTNode) -> None:
    """Take a node as it is."""


def _parse(source: Source) -> Parsed | SyntaxFailure:
    try:
        with _unvalidated():
            return Parsed(source, cst.parse_module(source.text))
    except (KeyboardInterrupt, SystemExit, ImportError, _Stop):
        raise
    except BaseException as error:  # a panic of the native parser is no Exception
        return _explain(source, error)


def _explain(source: Source, error: BaseException) -> SyntaxFailure:
    """Return what Python itself says about the text, which is clearer; else where libcst stopped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source.text)
    except SyntaxError as mistake:
        message = (mistake.msg or "invalid syntax").partition(". ")[0].rstrip(".?")
        if message.startswith("Missing parentheses in call to"):
            message += " (this is Python 2)"
        return _failure(source, message, Position(mistake.lineno or 1, mistake.offset or 1))
    except (ValueError, MemoryError, RecursionError) as mistake:
        return _failure(source, f"cannot parse: {mistake}", Position(1, 1))
    row, column = 1, 0
    if isinstance(error, cst.ParserSyntaxError):
        row, column = error.raw_line, error.raw_column
    return _failure(source, "syntax that libcst cannot parse", Position(row, column + 1))


def run_with_large_stack(
    function: Callable[[], Result], seconds: float = 0, is_wanted: Callable[[], bool] | None = None
) -> Result:
    """Return what the function returns, called where it may recurse a hundred thousand calls deep.

    A call from within such a call runs in place, within the limit of the outer one. Calls from several threads run one
    after the other, since the limit of recursion and the size of new stacks are settings of the whole process.

    Args:
        function: what to call.
        seconds: after which it is stopped where it is; 0 is no limit.
        is_wanted: asked while it runs, which is stopped where it is once nobody waits for it; None is always.

    Raises:
        TimeLimitError: it took longer, or was no longer wanted.
    """
    if isinstance(threading.current_thread(), _Call):
        return function()
    with _one_at_a_time:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
        try:
            call = _started(function)
            _wait(call, seconds, is_wanted)
            if call.is_alive():
                call.stop()
        finally:
            sys.setrecursionlimit(limit)
    return call.result()


def _wait(call: threading.Thread, seconds: float, is_wanted: Callable[[], bool] | None) -> None:
    """Return once the call has ended, its time is up, or nobody wants it any more."""
    if is_wanted is None:
        return call.join(seconds or None)
    end = time.monotonic() + seconds if seconds else math.inf
    while call.is_alive() and time.monotonic() < end and is_wanted():
        call.join(_LOOK)
    return None


class _Call(threading.Thread, Generic[Result]):
    """A thread for one call: starting it costs a tenth of a millisecond, and none is left behind to hinder a fork."""

    def __init__(self, function: Callable[[], Result]) -> None:
        super().__init__(name="torchlint", daemon=True)
        self._function = function
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._ending = threading.Lock()
        self._may_be_stopped = True

    def run(self) -> None:
        try:
            try:
                self._results.append(self._function())
            except BaseException as error:
                self._error = error
            with self._ending:
                self._may_be_stopped = False
        except _Stop as error:  # it came at the last moment
            self._error = error

    def stop(self) -> None:
        """Raise within the call until it ends; native code that does not return to Python is left to itself."""
        for _ in range(_STOPS):
            with self._ending:
                if self._may_be_stopped:
                    _raise_in(self, _Stop)
            self.join(_PATIENCE)
            if not self.is_alive():
                return
        self._error = _Stop()

    def result(self) -> Result:
        if isinstance(self._error, _Stop):
            raise TimeLimitError
        if self._error is not None:
            raise self._error
        return self._results[0]


def _raise_in(thread: threading.Thread, error: type[BaseException]) -> None:
    """Raise in another thread what it did not do itself, as soon as it runs Python code."""
    import ctypes  # only now: it takes longer to import than a small file to check

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error))


def _started(function: Callable[[], Result]) -> _Call[Result]:
    """Return a call that has begun, with the largest stack that the system grants."""
    before = threading.stack_size()
    try:
        try:
            return _started_with(_STACK, function)
        except (ValueError, RuntimeError):
            return _started_with(_SMALLER_STACK, function)
    finally:
        threading.stack_size(before)


def _started_with(size: int, function: Callable[[], Result]) -> _Call[Result]:
    threading.stack_size(size)
    call = _Call(function)  # a new one each time: since Python 3.13 one that could not start never will
    call.start()
    return call
