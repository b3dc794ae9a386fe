"""Measurements of what fixes are worth, one file per device, read without torch; pages and messages quote them.

A file is what ``torchlint bench --all --json FILE`` writes. ``schema.json`` says what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

SCHEMA_VERSION = 1
_SCHEMA_FILE = "schema.json"


class EvidenceError(ValueError):
    """A document is not evidence; the message says where it departs from the schema."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was found for one rule on one device."""

    code: str
    name: str
    verdict: str
    """confirmed, no effect, slower, different, not measurable."""

    reason: str
    quantity: str
    """time or memory."""

    ratio: float | None
    """Original over fixed: more than 1 is a gain. None where the device cannot show it."""

    low: float | None
    high: float | None
    origin: str
    """Who fixed the program: torchlint, or a hand."""

    equality: str
    """How the outputs compare, in words."""

    device: str
    torch: str
    date: str
    kind: str
    """torch's device type: cpu, cuda, mps, xpu."""

    @property
    def figure(self) -> str:
        """The ratio as pages write it: ``1.46x``; empty without one."""
        return f"{self.ratio:.2f}x" if self.ratio is not None else ""

    @property
    def sentence(self) -> str:
        """One sentence for pages and messages, with the device that it holds for."""
        where = f"{self.device}, torch {self.torch}"
        if self.ratio is None:
            return f"{self.verdict.capitalize()} on {where}: {self.reason}."
        what = {"time": "a step takes {} as long", "memory": "peak memory is {} as large"}[self.quantity]
        bounds = f"95 % interval {self.low:.2f} to {self.high:.2f}"
        return f"{self.verdict.capitalize()} on {where}: without the fix {what.format(self.figure)} ({bounds})."


@dataclass(frozen=True, slots=True)
class Evidence:
    """One device's file."""

    device: str
    torchlint: str
    environment: Mapping[str, Any]
    measurements: tuple[Measurement, ...]

    @property
    def dates(self) -> tuple[str, ...]:
        """The days on which it was measured, from the first to the last."""
        return tuple(sorted({measurement.date for measurement in self.measurements}))


@cache
def load() -> tuple[Evidence, ...]:
    """Return the evidence that is shipped, sorted by device, and by the name of its file where a device has several.

    Raises:
        EvidenceError: a shipped file does not follow the schema.
    """
    entries = resources.files(__name__).iterdir()
    files = [entry for entry in entries if entry.name.endswith(".json") and entry.name != _SCHEMA_FILE]
    files.sort(key=lambda file: file.name)
    found = [parse(json.loads(file.read_text(encoding="utf-8"))) for file in files]
    return tuple(sorted(found, key=lambda evidence: evidence.device))


def for_rule(code: str) -> tuple[Measurement, ...]:
    """Return what was measured for a rule, one entry per device that was tried."""
    return tuple(m for evidence in load() for m in evidence.measurements if m.code == code)


def parse(document: Mapping[str, Any]) -> Evidence:
    """Return the evidence in a document.

    Raises:
        EvidenceError: the document does not follow the schema.
    """
    problem = next(iter(problems(document, schema())), None)
    if problem:
        raise EvidenceError(problem)
    environment = document["environment"]
    return Evidence(
        device=environment["device"],
        torchlint=document["torchlint"],
        environment=environment,
        measurements=tuple(_measurement(case, environment) for case in document["cases"]),
    )


def _measurement(case: Mapping[str, Any], environment: Mapping[str, Any]) -> Measurement:
    low, high = case["interval"] or (None, None)
    return Measurement(
        code=case["code"],
        name=case["name"],
        verdict=case["verdict"],
        reason=case["reason"],
        quantity=case["quantity"],
        ratio=case["ratio"],
        low=low,
        high=high,
        origin=case["fix"],
        equality=case["equality"]["detail"] if case["equality"] else "",
        device=environment["device"],
        torch=environment["torch"],
        date=case.get("date", environment["date"]),
        kind=environment["kind"],
    )


@cache
def schema() -> Mapping[str, Any]:
    """Return the schema of evidence files: the part of JSON Schema that `problems` understands."""
    text = resources.files(__name__).joinpath(_SCHEMA_FILE).read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def problems(value: Any, rules: Mapping[str, Any], place: str = "document") -> Iterable[str]:
    """Yield where a value departs from a schema of types, enums, bounds, required and known properties, and items."""
    types = rules.get("type", [])
    allowed = [types] if isinstance(types, str) else types
    if allowed and not any(_is(value, name) for name in allowed):
        yield f"{place} is {value!r:.40}, not {' or '.join(allowed)}"
        return
    if "enum" in rules and value not in rules["enum"]:
        yield f"{place} is {value!r:.40}, not one of {', '.join(map(repr, rules['enum']))}"
    if "exclusiveMinimum" in rules and _is(value, "number") and value <= rules["exclusiveMinimum"]:
        yield f"{place} is {value}, not more than {rules['exclusiveMinimum']}"
    if isinstance(value, dict):
        known = rules.get("properties", {})
        yield from (f"{place} lacks {key!r}" for key in rules.get("required", ()) if key not in value)
        if not rules.get("additionalProperties", True):
            yield from (f"{place} has an unknown {key!r}" for key in value if key not in known)
        for key in value.keys() & known.keys():
            yield from problems(value[key], known[key], f"{place}.{key}")
    if isinstance(value, list) and "items" in rules:
        for index, item in enumerate(value):
            yield from problems(item, rules["items"], f"{place}[{index}]")


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
