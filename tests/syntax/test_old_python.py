"""`async` as a name, as it was one before Python 3.7."""

from __future__ import annotations

import pytest

from torchlint.syntax.old_python import as_written, without_old_names


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("x.cuda(async=True)\n", "x.cuda(Async=True)\n"),
        ("def f(async):\n    return async\n", "def f(Async):\n    return Async\n"),
        ("async def f():\n    async with a:\n        async for b in c:\n            pass\n", None),
        ("async  def f(async_, is_async):\n    pass\n", None),
    ],
)
def test_only_the_name_is_replaced(text: str, renamed: str | None) -> None:
    assert without_old_names(text) == renamed
    assert renamed is None or (len(renamed) == len(text) and as_written(renamed) == text)
