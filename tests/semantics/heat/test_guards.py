"""Branches that are seldom taken, by the variables that they test."""

from __future__ import annotations

import libcst as cst

from tests.semantics.support import model_of

LINKS = 60


def test_a_variable_of_many_variables_is_told_once() -> None:
    """Each of them has three values, so that there are more ways to the first than anybody could go."""
    lines = ["def train(model, loader, optimizer, v0, debug):"]
    for link in range(LINKS):
        lines += [f"    v{link + 1} = v{link}"]
        lines += ["    if debug:", f"        v{link + 1} = not v{link}"]
        lines += ["    if debug > 1:", f"        v{link + 1} = v{link}"]
    lines += [
        "    for x in loader:",
        "        loss = model(x).mean()",
        "        loss.backward()",
        "        optimizer.step()",
    ]
    lines += [f"        if v{LINKS}:", "            print(loss.item())"]
    model = model_of("\n".join(lines))
    read = next(call for call in model.nodes(cst.Call) if model.code(call) == "loss.item()")
    assert model.heat(read) is not None
