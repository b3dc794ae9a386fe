"""Names of the torch API that have a better one: since when, and which; a new name is one more line."""

from __future__ import annotations

from dataclasses import dataclass, field

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Symbol:
    """What there is to know about one name."""

    replacement: str = ""
    """The name that takes the same arguments, empty where more than the name changes."""

    since: Version = (1, 8)
    """Since when what is to be written instead exists; the oldest version that is supported means always."""

    deprecated: Version | None = None
    removed: Version | None = None
    same: bool = False
    """Whether both names are of one object, or of functions that certainly do the same."""

    instead: str = ""
    """What to write, in words, where there is no replacement."""


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """Symbols by their canonical names."""

    symbols: dict[str, Symbol]
    last_names: frozenset[str] = field(init=False)
    """What stands last in one of the names: without such a word there is nothing to find."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_names", frozenset(name.rpartition(".")[2] for name in self.symbols))


def _moved(old: str, new: str, names: str, since: Version) -> dict[str, Symbol]:
    """Return one symbol for each of the names, which stands in another module now."""
    return {f"{old}.{name}": Symbol(f"{new}.{name}", since, same=True) for name in names.split()}


NONPUBLIC = SymbolTable(
    {
        **_moved("torch.utils.data._utils.collate", "torch.utils.data", "default_collate default_convert", (1, 11)),
        **_moved("torch.utils.data._utils.worker", "torch.utils.data", "get_worker_info", (1, 8)),
        "torch.optim.lr_scheduler._LRScheduler": Symbol("torch.optim.lr_scheduler.LRScheduler", (2, 0)),
        **{
            f"torch._dynamo.{name}": Symbol(f"torch.compiler.{name}", (2, 1))
            for name in ("reset", "disable", "allow_in_graph", "list_backends", "is_compiling")
        },
        **_moved(
            "torch.distributed._tensor",
            "torch.distributed.tensor",
            "DTensor Shard Replicate Partial Placement distribute_tensor distribute_module",
            (2, 5),
        ),
        **_moved(
            "torch.distributed._composable.fsdp",
            "torch.distributed.fsdp",
            "fully_shard FSDPModule MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy",
            (2, 6),
        ),
    }
)
"""Names below a module, or with a first letter, that says that they can change at any time."""
