"""The patterns of torch's profiler are all in the table of other linters."""

from __future__ import annotations

import pytest

from torchlint.maps import LINTERS

matcher = pytest.importorskip("torch.profiler._pattern_matcher", reason="torch 2.14 has no matcher of patterns")


def test_each_pattern_is_listed() -> None:
    classes = (value for value in vars(matcher).values() if isinstance(value, type))
    patterns = {found.__name__ for found in classes if issubclass(found, matcher.Pattern)} - {"Pattern"}
    assert patterns == set(LINTERS["profiler"].codes)
