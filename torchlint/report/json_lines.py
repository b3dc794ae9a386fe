"""One JSON object per line and finding."""

from __future__ import annotations

import json

from torchlint.report.data import Report
from torchlint.report.json import entry


def render(report: Report) -> str:
    """Return the entries of the JSON format, one per line."""
    entries = (entry(report, result, diagnostic) for result, diagnostic in report.diagnostics())
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in entries)
