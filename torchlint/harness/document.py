"""Results as the JSON document that ``--json`` writes and that evidence files are."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchlint.atomic import replace_file
from torchlint.evidence import SCHEMA_VERSION, EvidenceError, parse
from torchlint.harness.bench import CaseResult
from torchlint.harness.devices import Environment
from torchlint.harness.errors import HarnessError
from torchlint.harness.intervals import CONFIDENCE, Interval
from torchlint.harness.measure import Cost, Plan
from torchlint.harness.verdict import LEAST_EFFECT
from torchlint.version import __version__

CaseDocument = Mapping[str, Any]


def document(
    environment: Environment, plan: Plan, cases: Sequence[CaseDocument], control: CaseDocument | None
) -> dict[str, Any]:
    """Return the document of a run, complete or not."""
    return {
        "schema": SCHEMA_VERSION,
        "torchlint": __version__,
        "environment": dataclasses.asdict(environment),
        "method": {
            "rounds": plan.rounds,
            "budget_s": plan.budget,
            "block_s": plan.block,
            "confidence": CONFIDENCE,
            "least_effect": LEAST_EFFECT,
        },
        "cases": sorted(cases, key=lambda case: str(case["code"])),
        "control": control,
    }


def case_document(result: CaseResult) -> CaseDocument:
    """Return one result as plain data."""
    equality = result.equality
    return {
        "code": result.code,
        "name": result.name,
        "program": result.title,
        "digest": result.digest,
        "fix": result.origin,
        "verdict": result.verdict.value,
        "reason": result.reason,
        "equality": None
        if equality is None
        else {"criterion": equality.criterion.value, "holds": equality.holds, "detail": equality.detail},
        "quantity": result.quantity.value,
        "ratio": _rounded(result.interval.ratio) if result.interval else None,
        "interval": _bounds(result.interval),
        "time_ratio": _rounded(result.time_interval.ratio) if result.time_interval else None,
        "time_interval": _bounds(result.time_interval),
        "rounds": [_rounded(ratio) for ratio in result.rounds],
        "original": _cost(result.original),
        "fixed": _cost(result.fixed),
        "seconds": round(result.seconds, 1),
    }


def _rounded(ratio: float) -> float:
    return round(ratio, 4)


def _bounds(interval: Interval | None) -> list[float] | None:
    return [_rounded(interval.low), _rounded(interval.high)] if interval else None


def _cost(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    counters = dataclasses.asdict(cost.counters)
    return {
        "step_ms": round(cost.step_ms, 4),
        "device_ms": None if cost.device_ms is None else round(cost.device_ms, 4),
        "blocks": cost.blocks,
        "outliers": cost.outliers,
        **counters,
        "synchronising_lines": list(cost.counters.synchronising_lines),
    }


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write the document so that a reader sees either the last one or this one.

    Raises:
        HarnessError: the file cannot be written.
    """
    try:
        replace_file(os.path.realpath(path), (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror or error}") from error


def resumable(path: Path, environment: Environment) -> dict[str, CaseDocument]:
    """Return the results in an earlier document that hold here, by the digest of their programs.

    What was measured on another day says so.

    Raises:
        HarnessError: the document cannot be read, or is from another device, torch or torchlint.
    """
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        parse(earlier)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, EvidenceError) as error:
        raise HarnessError(f"cannot resume from {path}: {error}") from error
    now = dataclasses.asdict(environment)
    for key in ("device", "kind", "torch", "threads"):
        if earlier["environment"][key] != now[key]:
            was, here = earlier["environment"][key], now[key]
            raise HarnessError(f"cannot resume from {path}: its {key} is {was}, here it is {here}")
    if earlier["torchlint"] != __version__:
        wrote = earlier["torchlint"]
        raise HarnessError(f"cannot resume from {path}: torchlint {wrote} wrote it, this is {__version__}")
    found = [*earlier["cases"], *([earlier["control"]] if earlier["control"] else [])]
    return {str(case["digest"]): _dated(case, earlier["environment"]["date"], environment.date) for case in found}


def _dated(case: CaseDocument, written: str, today: str) -> CaseDocument:
    """Return a case with the day on which it was measured, where that is not today."""
    return case if case.get("date", written) == today else {"date": written, **case}
