"""What tells whether this is the first of several processes, which alone prints and saves: ``rank == 0``."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.syntax.calls import identifier, literal

_FIRST_PROCESS = re.compile(
    r"(^|_)(local_?)?rank$|get_rank$|is_(global_zero|(local_)?main_process|master|primary|chief)", re.IGNORECASE
)


def tells_process(value: cst.BaseExpression) -> bool:
    """Return whether a value says whether this is the first process: ``rank == 0``, ``accelerator.is_main_process``."""
    if isinstance(value, cst.Comparison) and len(value.comparisons) == 1:
        asked = value.comparisons[0]
        is_first = isinstance(asked.operator, cst.Equal) and literal(asked.comparator) == 0
        return is_first and _tells(value.left)
    return _tells(value)


def _tells(value: cst.BaseExpression) -> bool:
    named = value.func if isinstance(value, cst.Call) else value
    return _FIRST_PROCESS.search(identifier(named)) is not None
