"""torchlint finds code that wastes time in PyTorch programs, and rewrites it.

>>> import torchlint
>>> source = "import torch\\n\\ntorch.autograd.set_detect_anomaly(True)\\nprint(torch.__version__)\\n"
>>> [diagnostic.code for diagnostic in torchlint.check_source(source)]
['TL601']
>>> print(torchlint.fix_source(source).text)
import torch
<BLANKLINE>
print(torch.__version__)
<BLANKLINE>

Everything named in ``__all__`` is public and stays; it is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from torchlint.version import __version__

if TYPE_CHECKING:
    from torchlint.api import FixedSource, check_paths, check_source, fix_source
    from torchlint.diagnostic import Diagnostic, Position, Range, Severity, TextEdit, TextFix
    from torchlint.engine.result import FileResult
    from torchlint.finding import Finding, Fix
    from torchlint.rule import Default, Example, Family, Rule, Triggers
    from torchlint.safety import Safety

__all__ = [
    "Default",
    "Diagnostic",
    "Example",
    "Family",
    "FileResult",
    "Finding",
    "Fix",
    "FixedSource",
    "Position",
    "Range",
    "Rule",
    "Safety",
    "Severity",
    "TextEdit",
    "TextFix",
    "Triggers",
    "__version__",
    "check_paths",
    "check_source",
    "fix_source",
]

_HOMES = {
    "torchlint.api": ("FixedSource", "check_paths", "check_source", "fix_source"),
    "torchlint.diagnostic": ("Diagnostic", "Position", "Range", "Severity", "TextEdit", "TextFix"),
    "torchlint.engine.result": ("FileResult",),
    "torchlint.finding": ("Finding", "Fix"),
    "torchlint.rule": ("Default", "Example", "Family", "Rule", "Triggers"),
    "torchlint.safety": ("Safety",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
