"""A document of a run as `torchlint bench --json` writes it."""

from __future__ import annotations

from typing import Any


def sample_cost() -> dict[str, Any]:
    return {
        "step_ms": 2.5,
        "device_ms": None,
        "blocks": 40,
        "outliers": 1,
        "parameters": 1000,
        "peak_bytes": 4096,
        "operators": 100,
        "value_reads": 0,
        "kernels": None,
        "synchronisations": None,
        "host_to_device_bytes": None,
        "synchronising_lines": [],
    }


def sample_case(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "code": "TL601",
        "name": "anomaly-detection-left-on",
        "program": "A small transformer.",
        "digest": "0123",
        "fix": "torchlint",
        "verdict": "confirmed",
        "reason": "",
        "equality": {"criterion": "bitwise", "holds": True, "detail": "bitwise equal over 3 steps"},
        "quantity": "time",
        "ratio": 3.1,
        "interval": [3.0, 3.2],
        "time_ratio": 3.1,
        "time_interval": [3.0, 3.2],
        "rounds": [3.1] * 8,
        "original": sample_cost(),
        "fixed": sample_cost(),
        "seconds": 12.0,
    }
    return {**found, **changes}


def unmeasurable_case(**changes: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("ratio", "interval", "time_ratio", "time_interval", "original", "fixed"))
    told = {"code": "TL605", "name": "cudnn-benchmark-off", "verdict": "not measurable", "reason": "there is no GPU"}
    return sample_case(**nothing, **told, rounds=[], digest="4567", **changes)


def sample_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "schema": 1,
        "torchlint": "0.1.0",
        "environment": {
            "device": "Some <GPU>",
            "kind": "cpu",
            "devices": 1,
            "driver": "",
            "torch": "2.4.0",
            "python": "3.11.7",
            "cpu": "Some CPU",
            "threads": 1,
            "system": "Linux x86_64",
            "date": "2026-01-01",
        },
        "method": {"rounds": 8, "budget_s": 45.0, "block_s": 0.06, "confidence": 0.95, "least_effect": 0.02},
        "cases": list(cases) or [sample_case(), unmeasurable_case()],
        "control": sample_case(code="A/A", name="self-check", verdict="no effect", ratio=1.0, interval=[0.99, 1.01]),
    }
    return {**found, **changes}
