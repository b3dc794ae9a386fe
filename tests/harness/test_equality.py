from __future__ import annotations

import hashlib
import math
import random
from array import array
from collections.abc import Sequence

import pytest

from torchlint.harness.case import Criterion
from torchlint.harness.equality import LEAST_SAMPLES, allow_for_noise, compare, kolmogorov_smirnov, mean_p_value
from torchlint.harness.outputs import Leaf


def leaf(values: Sequence[float], path: str = "loss", dtype: str = "float32") -> Leaf:
    data = array("d", values)
    return Leaf(path, dtype, (len(values),), hashlib.sha256(data.tobytes()).hexdigest(), data)


def normal(count: int, seed: int, shift: float = 0.0, scale: float = 1.0) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(shift, scale) for _ in range(count)]


def test_bitwise() -> None:
    same = compare([[leaf([1.0, 2.0])]], [[leaf([1.0, 2.0])]], Criterion.BITWISE, 0)
    assert same.holds
    assert same.detail == "bitwise equal over 1 step"
    other = compare([[leaf([1.0, 2.0])]], [[leaf([1.0, math.nextafter(2.0, 3)])]], Criterion.BITWISE, 0)
    assert not other.holds
    assert "loss differs from step 1 on" in other.detail


def test_tolerance_is_relative_to_the_largest_value_of_the_output() -> None:
    original, near, far = [[leaf([100.0, 0.0])]], [[leaf([100.0, 0.05])]], [[leaf([100.0, 0.2])]]
    assert compare(original, near, Criterion.TOLERANCE, 1e-3).holds
    assert not compare(original, far, Criterion.TOLERANCE, 1e-3).holds


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_no_numbers_are_never_within_a_tolerance(bad: float) -> None:
    assert not compare([[leaf([1.0, 2.0])]], [[leaf([1.0, bad])]], Criterion.TOLERANCE, 10.0).holds


def test_nan_on_both_sides_is_equal() -> None:
    original, fixed = [[leaf([math.nan, 1.0])]], [[leaf([math.nan, 1.0 + 1e-9])]]
    assert compare(original, fixed, Criterion.TOLERANCE, 1e-6).holds


@pytest.mark.parametrize(
    ("fixed", "detail"),
    [
        ([[leaf([1.0])], [leaf([1.0])]], "1 step against 2 steps"),
        ([[leaf([1.0], "score")]], "other outputs in step 1: loss against score"),
        ([[leaf([1.0, 2.0])]], "loss has shape (1,) against (2,)"),
        ([[leaf([1.0], dtype="float64")]], "loss is float32 against float64"),
        ([[]], "other outputs in step 1: loss against "),
    ],
)
def test_other_forms_are_different(fixed: list[list[Leaf]], detail: str) -> None:
    found = compare([[leaf([1.0])]], fixed, Criterion.BITWISE, 0)
    assert not found.holds
    assert found.detail == detail


def test_a_program_without_outputs_is_not_equal() -> None:
    assert not compare([[]], [[]], Criterion.BITWISE, 0).holds


def test_a_planted_shift_of_a_tenth_of_a_standard_deviation_is_detected() -> None:
    detected = sum(
        not compare(
            [[leaf(normal(LEAST_SAMPLES, seed))]],
            [[leaf(normal(LEAST_SAMPLES, seed + 1000, shift=0.1))]],
            Criterion.DISTRIBUTION,
            0,
        ).holds
        for seed in range(30)
    )
    assert detected >= 28


def test_equal_distributions_pass() -> None:
    alarms = sum(
        not compare(
            [[leaf(normal(LEAST_SAMPLES, seed))]],
            [[leaf(normal(LEAST_SAMPLES, seed + 1000))]],
            Criterion.DISTRIBUTION,
            0,
        ).holds
        for seed in range(30)
    )
    assert alarms == 0


def test_another_shape_of_the_distribution_is_detected() -> None:
    original, fixed = normal(LEAST_SAMPLES, 1), normal(LEAST_SAMPLES, 2, scale=1.2)
    found = compare([[leaf(original)]], [[leaf(fixed)]], Criterion.DISTRIBUTION, 0)
    assert not found.holds
    assert "shape" in found.detail


def test_too_few_samples_prove_nothing() -> None:
    found = compare([[leaf(normal(100, 1))]], [[leaf(normal(100, 2))]], Criterion.DISTRIBUTION, 0)
    assert not found.holds
    assert "has 100 samples" in found.detail


def test_p_values_agree_with_scipy() -> None:
    from scipy import stats

    a, b = normal(2000, 5), normal(1500, 6, shift=0.07)
    assert kolmogorov_smirnov(a, b) == pytest.approx(stats.ks_2samp(a, b, method="asymp").pvalue, rel=0.2)
    assert mean_p_value(a, b) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue, rel=0.02)


def test_an_original_that_does_not_repeat_itself_allows_as_much() -> None:
    original, again, near, far = ([[leaf([1.0, value])]] for value in (2.0, 2.0 + 1e-6, 2.0 - 2e-6, 2.1))
    bitwise = compare(original, near, Criterion.BITWISE, 0)
    assert not bitwise.holds
    assert allow_for_noise(bitwise, original, again, near).holds
    assert not allow_for_noise(compare(original, far, Criterion.BITWISE, 0), original, again, far).holds
    assert not allow_for_noise(bitwise, original, original, near).holds
