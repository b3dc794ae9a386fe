"""Averages that are computed with gradients on: of a model's parameters, and of what a module is given."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.frozen import Frozen
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.parameter_averages import ParameterAverages
from torchlint.semantics.retention.running_statistics import RunningStatistics
from torchlint.semantics.retention.stores import Store

_PARAMETERS = ("parameters", "named_parameters")


class Averages:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, frozen: Frozen) -> None:
        self._tree = evaluator.tree
        self._of_parameters = ParameterAverages(evaluator, frozen)
        self._of_inputs = RunningStatistics(evaluator)

    @cached_property
    def occur(self) -> bool:
        """Whether the file can hold any."""
        return self._asks_for_parameters or self._of_inputs.occur

    @cached_property
    def _asks_for_parameters(self) -> bool:
        if not self._of_parameters.occur:
            return False
        return any(attribute.attr.value in _PARAMETERS for attribute in self._tree.nodes(cst.Attribute))

    def kept(self, node: cst.Assign | cst.Call) -> tuple[Store, bool] | None:
        """Return what a statement keeps of the graphs of all averages before, and whether it averages an input."""
        found = self._of_parameters.kept(node) if self._asks_for_parameters else None
        if found is not None:
            return found, False
        found = self._of_inputs.kept(node) if self._of_inputs.occur else None
        return (found, True) if found is not None else None
