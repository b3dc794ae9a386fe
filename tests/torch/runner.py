"""Runs the program of a case on a stand-in."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch

from tests.torch.compare import Outcome, observe
from tests.torch.equivalence import Case
from tests.torch.stand_in import FAKE_CUDA, META, REAL_CUDA, StandIn


def run(program: str, place: StandIn, case: Case, number: int) -> tuple[Outcome, bool]:
    """Return what a fresh run of the program gives on one set of inputs, and whether it recorded a graph."""
    names: dict[str, Any] = {"__name__": "case"}
    torch.manual_seed(0)
    with warnings.catch_warnings(), place.play() as player:
        warnings.simplefilter("ignore")
        device = torch.device(place.device, 0) if place.device == "cuda" else torch.device(place.device)
        arguments: Mapping[str, Any] = case.inputs(device)[number]
        exec(compile(program, "<case>", "exec"), names)
        result = names["run"](device, **arguments)
        outcome = observe({"result": result, "arguments": arguments}, values=place.has_values)
    return outcome, player.saw_gradients


def places(case: Case, saw_gradients: bool) -> list[StandIn]:
    """Return where a case can be run besides the CPU.

    No graph is recorded on fake tensors: autograd asks for a real device there, and modules cannot be moved.
    """
    found = [] if case.reads_values else [META]
    if not case.reads_values and not saw_gradients:
        found.append(FAKE_CUDA)
    return [*found, REAL_CUDA] if torch.cuda.is_available() else found
