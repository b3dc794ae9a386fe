"""Sequences of different lengths, as ``torch.nn.utils.rnn`` packs and pads them."""

from __future__ import annotations

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Device, Graph, Value, sequence, tensor

MODULE = "torch.nn.utils.rnn."
PACKED = "torch.nn.utils.rnn.PackedSequence"
_LENGTHS = tensor(device=Device.CPU, graph=Graph.DETACHED, dtype="torch.int64")
"""How many sequences have an item at each time, or how long each is: on the host, wherever the items are."""


def made(function: str, arguments: list[Value]) -> Value:
    """Return what a function of the module gives for positional arguments."""
    given = arguments[0] if arguments else UNKNOWN
    items = given.iterated() if function in ("pack_sequence", "pad_sequence") else given
    if function == "pad_packed_sequence":
        return sequence(_items(attribute(given, "data") if given.name == PACKED else given), _LENGTHS)
    if function in ("pack_padded_sequence", "pack_sequence"):
        indices = _items(items)._replace(graph=Graph.DETACHED, dtype="torch.int64")
        return sequence(_items(items), _LENGTHS, indices, indices)._replace(name=PACKED)
    return _items(items) if function == "pad_sequence" else UNKNOWN


def attribute(owner: Value, name: str) -> Value:
    """Return the value of an attribute of a packed sequence."""
    fields = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
    return (owner.elements or ())[fields.index(name)] if name in fields and owner.elements else UNKNOWN


def _items(given: Value) -> Value:
    return given if given.is_tensor else tensor(Evidence.INFERRED)
