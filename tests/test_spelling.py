"""What a word was probably meant to be."""

from __future__ import annotations

import pytest

from torchlint.spelling import misspelt, nearest

CHOICES = ("TL301", "TL310", "TL311", "item-in-loop", "create-then-move")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("TL3O1", "TL301"),
        ("TL30l", "TL301"),
        ("TL3I0", "TL310"),
        ("tl311", "TL311"),
        ("item-in-lop", "item-in-loop"),
        ("Create-Then-Move", "create-then-move"),
    ],
)
def test_the_nearest(word: str, meant: str) -> None:
    assert nearest(word, CHOICES) == meant


def test_nothing_is_near() -> None:
    assert nearest("E501x", CHOICES) == ""
    assert nearest("", CHOICES) == ""


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("deterministc", "deterministic"),
        ("determinsitic", "deterministic"),
        ("determinismic", "deterministic"),
        ("enable", "enabled"),
        ("Enabled", "enabled"),
        ("allow_tf_32", "allow_tf32"),
        ("allow_tf16", ""),
        ("deterministic", ""),
        ("determined", ""),
        ("enables", ""),
        ("abled", ""),
        ("fats", ""),
    ],
)
def test_slips_of_the_pen(word: str, meant: str) -> None:
    assert misspelt(word, ("deterministic", "enabled", "allow_tf32", "fast"), ("enables",)) == meant


def test_two_words_are_as_near() -> None:
    assert misspelt("allow_fp_math", ("allow_fpa_math", "allow_fpb_math")) == ""


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("CDUA_VISIBLE_DEVICS", "CUDA_VISIBLE_DEVICES"),
        ("CUDAVISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("ROCM_VISIBLE_DEVICES", ""),
        ("MUSA_VISIBLE_DEVICES", ""),
        ("ACL_NUM_THREADS", ""),
        ("MLK_NUM_THREADS", "MKL_NUM_THREADS"),
    ],
)
def test_another_short_word_between_underscores_is_no_slip(word: str, meant: str) -> None:
    assert misspelt(word, ("CUDA_VISIBLE_DEVICES", "MKL_NUM_THREADS")) == meant
