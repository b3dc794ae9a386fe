"""Calls that may bring something to a device, by what they are named."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.walk import Tree

# What functions are called that bring what they are given to a device: `to_device(batch)`, `move_to_cuda(sample)`.
_MOVES = re.compile(
    r"^_*((move|send|put|transfer|convert|recursive(ly)?|nested|all|batch(es)?|data|samples?|tensors?|inputs?|dict|list|items?|"
    r"examples?|features|targets|images?|obj(ect)?)_)*(to|on|onto)_(device|cuda|gpu)s?$"
)


def names_move(name: str) -> bool:
    """Return whether a function is named for bringing what it is given to a device."""
    return _MOVES.search(name.lower()) is not None


def moving_calls(tree: Tree) -> list[cst.Call]:
    """Return the calls of a file that may bring something to a device: few loops hold one, and all are asked."""
    calls = (call for call in tree.nodes(cst.Call) if call.args or method_call(call, "cuda") is not None)
    return [c for c in calls if method_call(c, "to", "cuda") is not None or names_move(identifier(c.func))]
