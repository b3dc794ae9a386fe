"""Layers whose output goes straight into a normalisation that takes the mean of each channel away."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.layers.successors import Consumer, Layers, Use
from torchlint.semantics.tables.layers import LINEAR, NORMS, NORMS_OF_MATRICES, dimensions
from torchlint.syntax.calls import literal
from torchlint.syntax.canonical import canonical, is_same

_OF_AXIS_1 = frozenset(("torch.nn.BatchNorm1d", "torch.nn.SyncBatchNorm"))
"""Normalisations whose features are the second axis, whatever else there is."""


class Normalised(NamedTuple):
    """What takes the output of a layer: normalisations, and what takes it where a condition leaves them out."""

    norms: tuple[Consumer, ...]
    norm_calls: tuple[cst.Call, ...]
    """The calls that create the normalisations."""

    others: tuple[Consumer, ...]

    @property
    def optional(self) -> bool:
        """Whether the normalisation can be left out."""
        return bool(self.others)


class Norms:
    """Finds them."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def find(self, call: cst.Call) -> Normalised | None:
        """Return the normalisations behind the layer that a call creates, None if a use of it can do without one."""
        uses = self._layers.successors(call)
        if not uses or not all(self._normalises(use) for use in uses):
            return None
        consumers = [consumer for use in uses for consumer in use.consumers]
        norms = tuple(consumer for consumer in consumers if self._is_norm(consumer.node))
        calls = tuple(consumer.node for consumer in norms if isinstance(consumer.node, cst.Call))
        return Normalised(norms, calls, tuple(consumer for consumer in consumers if consumer not in norms))

    def _is_norm(self, node: cst.CSTNode) -> bool:
        """Return whether a node creates a layer that takes the mean of each channel away."""
        names = self._layers.class_names(node) if isinstance(node, cst.Call) else frozenset[str]()
        return bool(names) and names <= NORMS

    def _normalises(self, use: Use) -> bool:
        """Whether a use ends in a normalisation, or does so unless a condition leaves the normalisation out."""
        if use.shared or use.chosen_at_run_time:
            return False
        rest = [consumer for consumer in use.consumers if not self._is_norm(consumer.node)]
        places = {consumer.place for consumer in use.consumers if consumer not in rest}
        if any(first in places or second in places for first, second in use.twice):
            return False
        return len(rest) < len(use.consumers) and not any(self._could_be_norm(consumer.node) for consumer in rest)

    def _could_be_norm(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Call):
            return isinstance(node, (cst.Name, cst.Attribute)) and "norm" in canonical(node).lower()
        names = (made.name for made in self._layers.constructors(node))
        return "norm" in canonical(node.func).lower() or any(
            name is not None and "norm" in name.lower() for name in names
        )

    def fits(self, call: cst.Call, norm: cst.Call) -> bool:
        """Return whether a normalisation can be meant for the output of a layer: as many channels and dimensions."""
        given, features = self._layers.arguments(call), self._layers.arguments(norm)
        outside = literal(given.get("out_channels") or given.get("out_features")) if given is not None else None
        inside = literal(features.get("num_features")) if features is not None else None
        if outside is not None and inside is not None and outside != inside:
            return False
        names, norms = self._layers.class_names(call), self._layers.class_names(norm)
        if names & LINEAR:
            return bool(norms & NORMS_OF_MATRICES)
        sizes = {dimensions(name) for name in norms}
        return None in sizes or bool(sizes & {dimensions(name) for name in names})

    def is_as_wide(self, call: cst.Call, norm: cst.Call) -> bool:
        """Return whether a normalisation is written to have as many features as a linear layer gives.

        Of anything but a matrix it would take another axis, which hardly ever happens to be as long.
        """
        given, features = self._layers.arguments(call), self._layers.arguments(norm)
        outside = given.get("out_features") if given is not None else None
        inside = features.get("num_features") if features is not None else None
        is_plain = self._layers.class_names(norm) <= _OF_AXIS_1
        return is_plain and outside is not None and inside is not None and is_same(outside, inside)
