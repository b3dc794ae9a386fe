"""Parsing: no input raises, and none takes the process down."""

from __future__ import annotations

import sys
import threading

import libcst as cst
import pytest

from torchlint.source import source_from_text
from torchlint.syntax.depth import find_too_deep
from torchlint.syntax.parse import Parsed, SyntaxFailure, TimeLimitError, parse, run_with_large_stack

DEEP = {
    "sum": "x = " + "+".join(["1"] * 30_000),
    "product over rows": "x = (" + "\n * ".join(["a"] * 5_000) + ")",
    "parentheses": "x = " + "(" * 2_000 + "1" + ")" * 2_000,
    "unclosed brackets": "x = " + "[" * 100_000,
    "mixed brackets": "x = " + "f({[" * 100 + "]})" * 100,
    "chain": "x = a" + ".f()" * 10_000,
    "chain over rows": "x = (a\n" + "  .f(1, 2)\n" * 10_000 + ")",
    "subscripts": "x = a" + "[0]" * 10_000,
    "negations": "x = " + "-" * 100_000 + "1",
    "not": "x = " + "not " * 20_000 + "a",
    "or": "x = " + " or ".join(["a"] * 20_000),
    "conditional": "x = " + "a if b else " * 20_000 + "c",
    "lambda": "x = " + "lambda: " * 20_000 + "1",
    "strings": "x = " + "'a' " * 20_000,
    "comprehension": "x = [a " + "for a in b " * 20_000 + "]",
    "f-string": "x = f'{" + "+".join(["1"] * 20_000) + "}'",
    "ladder": "if a:\n    pass\n" + "elif a:\n    pass\n" * 30_000,
    "indentation": "".join(" " * level + "if a:\n" for level in range(1_500)) + " " * 1_500 + "pass\n",
    "pattern of a list": "match x:\n    case " + "[" * 25 + "a" + "]" * 25 + ": pass\n",
    "pattern of tuples over rows": "match x:\n    case " + "(\n" * 25 + "a" + ",)" * 25 + ": pass\n",
    "many deep patterns": "match x:\n" + "    case {1: {2: ({3: [a]},)}} if a: pass\n" * 5_000,
    "inner arguments": "x = " + "f(1, 2 + " * 201 + "3" + ")" * 201,
}

SHALLOWER = 4 if (3, 12) <= sys.version_info < (3, 12, 2) else 1
"""Python 3.12.0 and 3.12.1 let C code recurse 1,500 times, whatever the recursion limit."""

LONG_BUT_FLAT = {
    "list": "x = [" + "-1.0, " * 3_000 + "]\n",
    "table": "x = {\n" + "    'a.b-c': f(-1.5, g.h + 2),\n" * 500 + "}\n",
    "statements": "x = a.b(c)[0] + 1\n" * 1_000,
    "one row": "a.b(c)[0] + 1; " * 1_000 + "\n",
    "patterns": "match x:\n"
    + "    case A(b=[(c, 'd[[[:'), *_]) if f(g[(1, 2)]): f([[[[[[[[[[[[[1]]]]]]]]]]]]])\n" * 500,
    "string": "x = '" + "(" * 50_000 + "'\n",
    "long string": 'x = """\n' + "((--..\n" * 5_000 + '"""\n',
    "comment": "# " + "-(" * 50_000 + "\nx = 1\n",
    "arguments": "f(\n" + "    a.b,\n" * 2_500 + ")\n",
    "separate ladders": ("if a:\n    pass\n" + "elif a:\n    pass\n" * 20 + "x = 1\n") * 105,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_too_deep_is_a_syntax_failure(text: str) -> None:
    failure = parse(source_from_text(text))
    assert isinstance(failure, SyntaxFailure)
    assert "\n" not in failure.message
    assert failure.row >= 1
    assert failure.column >= 1


@pytest.mark.parametrize("text", LONG_BUT_FLAT.values(), ids=LONG_BUT_FLAT)
def test_what_is_long_but_flat_is_parsed(text: str) -> None:
    parsed = parse(source_from_text(text))
    assert isinstance(parsed, Parsed)
    assert parsed.module.code == text


@pytest.mark.parametrize(
    "text",
    [
        "x = a" + ".f()" * (500 // SHALLOWER) + "\n",
        "if a:\n    pass\n" + "elif a:\n    pass\n" * (1_000 // SHALLOWER),
        "x = " + "(" * 199 + "1" + ")" * 199 + "\n",
        "x = " + " + ".join(["1"] * (800 // SHALLOWER)) + "\n",
    ],
    ids=["chain", "ladder", "parentheses", "sum"],
)
def test_what_is_deep_is_parsed_and_generated(text: str) -> None:
    def generate() -> str:
        parsed = parse(source_from_text(text))
        assert isinstance(parsed, Parsed)
        return parsed.module.code

    assert run_with_large_stack(generate) == text


@pytest.mark.parametrize(
    ("text", "row", "column", "words"),
    [
        ("x = 1\nprint 'hello'\n", 2, 1, "Missing parentheses in call to 'print' (this is Python 2)"),
        ("if a:\n    raise A, 'why'\n", 2, 12, "invalid syntax"),
        ("def f(:\n    pass\n", 1, 7, "invalid syntax"),
        ("x = (1\ny = 2\n", 1, 5, "never closed"),
        ("x = 'é' + $\n", 1, 11, "invalid syntax"),
        ("if a:\n        b\n    c\n", 3, 6, "unindent"),
        ("x = 1\ny = \0\n", 2, 5, "null byte"),
        ("x = 1 +", 1, 8, "invalid syntax"),
        ("a\n\tif b:\n", 2, 1, "unexpected indent"),
    ],
)
def test_a_mistake_is_told_in_pythons_words_at_its_place(text: str, row: int, column: int, words: str) -> None:
    failure = parse(source_from_text(text))
    assert isinstance(failure, SyntaxFailure)
    assert words in failure.message
    assert failure.row == row
    assert abs(failure.column - column) <= 1, "Python versions differ by one"


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment", "x = 1", "\r\n", "x = 1\r\ny = 2\r\n", "\x0c\nx = 1\n", "x\n\n\n"]
)
def test_what_python_accepts_comes_back_unchanged(text: str) -> None:
    parsed = parse(source_from_text(text))
    assert isinstance(parsed, Parsed)
    assert parsed.module.code == text


def test_a_call_from_within_runs_in_place() -> None:
    def outer() -> bool:
        here = threading.current_thread()
        return run_with_large_stack(lambda: threading.current_thread() is here)

    assert run_with_large_stack(outer)


def test_what_is_raised_is_raised_here_and_the_limits_are_restored() -> None:
    limits = sys.getrecursionlimit(), threading.stack_size()
    with pytest.raises(ZeroDivisionError):
        run_with_large_stack(lambda: 1 // 0)
    assert (sys.getrecursionlimit(), threading.stack_size()) == limits


def test_recursion_goes_deep() -> None:
    def down(levels: int) -> int:
        return levels and 1 + down(levels - 1)

    assert run_with_large_stack(lambda: down(50_000)) == 50_000


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    run_with_large_stack(lambda: None)
    assert threading.active_count() == before


def test_calls_from_several_threads_do_not_disturb_each_other() -> None:
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(run_with_large_stack(lambda: n * 2))) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [n * 2 for n in range(20)]


def test_a_call_that_takes_too_long_is_stopped_wherever_it_is() -> None:
    stopped = []

    def endless() -> None:
        try:
            while True:
                try:
                    sum(range(1_000))
                except Exception:
                    stopped.append("within")
        finally:
            stopped.append("cleaned up")

    before = threading.active_count()
    with pytest.raises(TimeLimitError):
        run_with_large_stack(lambda: run_with_large_stack(endless), 0.05)
    assert stopped == ["cleaned up"]
    assert threading.active_count() == before
    assert run_with_large_stack(lambda: 3, 5) == 3


def test_a_call_that_nobody_wants_any_more_is_stopped() -> None:
    def endless() -> None:
        while True:
            sum(range(1_000))

    asked = iter([True, True, False])
    with pytest.raises(TimeLimitError):
        run_with_large_stack(endless, is_wanted=lambda: next(asked))
    assert list(asked) == []
    assert run_with_large_stack(lambda: 3, is_wanted=lambda: True) == 3
    with pytest.raises(TimeLimitError):
        run_with_large_stack(endless, 0.05, is_wanted=lambda: True)


def test_a_libcst_that_cannot_be_loaded_is_no_syntax_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(cst, "native", raising=False)
    monkeypatch.setitem(sys.modules, "libcst.native", None)
    with pytest.raises(ImportError):
        parse(source_from_text("x = 1\n"))


def test_a_parse_that_is_stopped_is_no_syntax_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(text: str) -> None:
        while True:
            sum(range(1_000))

    monkeypatch.setattr(cst, "parse_module", endless)
    with pytest.raises(TimeLimitError):
        run_with_large_stack(lambda: parse(source_from_text("x = 1\n")), 0.05)


@pytest.mark.parametrize("quotes", ["'''", '"""'])
def test_a_string_without_an_end_takes_no_longer_than_another(quotes: str) -> None:
    text = "x = a" + ".f()" * 3_000 + f"\ny = {quotes}" + "a" * 5_000
    assert isinstance(parse(source_from_text(text)), SyntaxFailure)
    assert find_too_deep(f"y = {quotes}" + "a" * 5_000 + "\nx = a" + ".f()" * 3_000) is not None
