"""Tensors into which others are written: ``outputs[step] = output`` gives them the graph of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Graph, Origin, Value

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def with_graph(found: Value, name: cst.Name, evaluator: Evaluator) -> Value:
    """Return what a name holds that a factory made, with the graph of what the file writes to its places."""
    if not found.is_tensor or found.graph is not Graph.DETACHED or found.origin is not Origin.FACTORY:
        return found
    written = [put for put in evaluator.usage.stored(name) if not evaluator.gradients.disabled(put)]
    values = [value for value in map(evaluator.value, written) if value.is_tensor or not value.known]
    graphs = {value.graph if value.is_tensor else Graph.UNKNOWN for value in values}
    if graphs <= {Graph.DETACHED}:
        return found
    graph = Graph.ATTACHED if Graph.ATTACHED in graphs else Graph.UNKNOWN
    return found._replace(graph=graph)
