"""Which of our rules finds what a rule of another linter finds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torchlint.suppress import TORCHFIX_CODES

MAPS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "torchfix": MappingProxyType(
            {**TORCHFIX_CODES, "TOR106": "", "TOR107": "", "TOR108": "", "TOR901": ""},
        ),
        "bandit": MappingProxyType({"B614": "TL805"}),
    }
)
"""By linter and code of theirs the code of ours, empty where there is none."""
