"""Classes of layers by what they do to the mean of a channel."""

from __future__ import annotations

CONVOLUTIONS = frozenset(
    f"torch.nn.{lazy}Conv{transpose}{size}d"
    for lazy in ("", "Lazy")
    for transpose in ("", "Transpose")
    for size in "123"
)
NORMS = frozenset(
    (
        *(
            f"torch.nn.{lazy}{kind}Norm{size}d"
            for lazy in ("", "Lazy")
            for kind in ("Batch", "Instance")
            for size in "123"
        ),
        "torch.nn.SyncBatchNorm",
        "apex.parallel.SyncBatchNorm",
    )
)
"""Normalisations that subtract the mean of each channel, whatever it is."""

LINEAR = frozenset(("torch.nn.Linear", "torch.nn.LazyLinear"))
NORMS_OF_MATRICES = frozenset(
    ("torch.nn.BatchNorm1d", "torch.nn.LazyBatchNorm1d", "torch.nn.SyncBatchNorm", "apex.parallel.SyncBatchNorm")
)
"""Those that subtract the mean of each column of a matrix."""

STATES = {"torch.nn.LSTM": 2, "torch.nn.GRU": 1, "torch.nn.RNN": 1, "torch.nn.MultiheadAttention": 1}
"""How many tensors the second of two results is: the hidden states of a recurrent layer, the weights of attention."""

PAIRS = frozenset(("torch.nn.LSTMCell",))
"""Layers that give two tensors."""


def dimensions(name: str) -> int | None:
    """Return the number of spatial dimensions that the name of a class tells."""
    return int(name[-2]) if name.endswith(("1d", "2d", "3d")) else None
