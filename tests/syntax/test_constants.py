"""A constant has the value that Python gives it."""

from __future__ import annotations

import ast
import gc

import libcst as cst
import pytest

from torchlint.syntax.constants import value_of

CONSTANTS = [
    "1_000",
    "0x_ff",
    "1e-5",
    ".5",
    "2j",
    "'a'",
    'b"\\x00"',
    "r'\\d'",
    '"""a\nb"""',
    "'\\N{BULLET}'",
    "'a' 'b'",
]


@pytest.mark.parametrize("text", CONSTANTS)
def test_a_constant_means_what_python_says(text: str) -> None:
    node = cst.parse_expression(text)
    value = value_of(node)  # type: ignore[arg-type]
    assert value == ast.literal_eval(text)
    assert type(value) is type(ast.literal_eval(text))


def test_what_is_filled_in_later_has_no_value() -> None:
    assert value_of(cst.parse_expression("'a' f'{b}'")) is None  # type: ignore[arg-type]


def test_asking_again_leaves_no_cycles() -> None:
    node = cst.ensure_type(cst.parse_expression("'cuda'"), cst.SimpleString)
    value_of(node)
    gc.collect()
    gc.disable()
    try:
        assert all(value_of(node) == "cuda" for _ in range(100))
        assert gc.collect() < 100
    finally:
        gc.enable()
