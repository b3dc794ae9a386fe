"""Names of the torch API that have a better one: since when, and which; a new name is one more line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

Version = tuple[int, int]


class Symbol(NamedTuple):
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

    lost: frozenset[str] = frozenset()
    """Parameters that the replacement does not have under these names."""

    positions: int | None = None
    """How many positional arguments the replacement takes, None where it is as many."""


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
            for name in ("reset", "disable", "allow_in_graph", "list_backends")
        },
        "torch._dynamo.is_compiling": Symbol("torch.compiler.is_compiling", (2, 3)),
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

_INIT = (
    "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse"
)
_AMP: Version = (2, 4)

DEPRECATED = SymbolTable(
    {
        "torch.ger": Symbol("torch.outer", same=True),
        **{
            f"functorch.{name}": Symbol(f"torch.func.{name}", (2, 0), deprecated=(2, 0), same=True)
            for name in "vmap grad vjp jvp jacrev jacfwd hessian functionalize".split()
        },
        **{f"torch.nn.init.{name}": Symbol(f"torch.nn.init.{name}_", same=True) for name in _INIT.split()},
        "torch.nn.utils.clip_grad_norm": Symbol("torch.nn.utils.clip_grad_norm_", same=True),
        "torch.nn.utils.stateless.functional_call": Symbol(
            "torch.func.functional_call", (2, 0), deprecated=(2, 0), lost=frozenset(("parameters_and_buffers",))
        ),
        "torch.nn.functional.upsample": Symbol("torch.nn.functional.interpolate", same=True),
        "torch.nn.NLLLoss2d": Symbol("torch.nn.NLLLoss"),
        "torch.cuda.memory_cached": Symbol("torch.cuda.memory_reserved", same=True),
        "torch.cuda.max_memory_cached": Symbol("torch.cuda.max_memory_reserved", same=True),
        "torch.cuda.reset_max_memory_allocated": Symbol("torch.cuda.reset_peak_memory_stats", same=True),
        "torch.cuda.reset_max_memory_cached": Symbol("torch.cuda.reset_peak_memory_stats", same=True),
        "torch.utils._pytree._register_pytree_node": Symbol(
            "torch.utils._pytree.register_pytree_node",
            (2, 2),
            deprecated=(2, 2),
            lost=frozenset(("to_str_fn", "maybe_from_str_fn")),
            positions=3,
        ),
        "torch.cholesky": Symbol(
            deprecated=(1, 9), removed=(2, 14), instead="`torch.linalg.cholesky(A)`, with `upper=` by name"
        ),
        "torch.qr": Symbol(
            deprecated=(1, 9),
            removed=(2, 14),
            instead='`torch.linalg.qr(A)`, with `mode="complete"` for `some=False`',
        ),
        "torch.chain_matmul": Symbol(
            since=(1, 9), deprecated=(1, 9), instead="`torch.linalg.multi_dot([A, B])`, with the matrices in a list"
        ),
        "torch.range": Symbol(instead="`torch.arange(start, end + 1)`, whose end is not included, with a dtype"),
        "torch.norm": Symbol(instead="`torch.linalg.vector_norm` or `torch.linalg.matrix_norm`"),
        "torch.svd": Symbol(instead="`torch.linalg.svd`, which returns the third matrix conjugated and transposed"),
        "torch.lu": Symbol(since=(1, 11), instead="`torch.linalg.lu_factor`"),
        "torch.lu_solve": Symbol(since=(1, 13), instead="`torch.linalg.lu_solve(LU, pivots, B)`, with `B` last"),
        "torch.triangular_solve": Symbol(
            since=(1, 11),
            deprecated=(1, 11),
            instead="`torch.linalg.solve_triangular(A, B, upper=...)`, with `A` first",
        ),
        "torch.nn.UpsamplingNearest2d": Symbol(instead='`torch.nn.Upsample(..., mode="nearest")`'),
        "torch.nn.UpsamplingBilinear2d": Symbol(
            instead='`torch.nn.Upsample(..., mode="bilinear", align_corners=True)`'
        ),
        "torch.testing.assert_allclose": Symbol(
            since=(1, 9),
            deprecated=(1, 12),
            instead="`torch.testing.assert_close`, with `check_dtype=False` and tolerances for what may differ",
        ),
        "torch.nn.utils.weight_norm": Symbol(
            since=(2, 0),
            deprecated=(2, 1),
            instead="`torch.nn.utils.parametrizations.weight_norm`, whose keys in a state dict have other names",
        ),
        "torch.backends.cuda.sdp_kernel": Symbol(
            since=(2, 3), deprecated=(2, 3), instead="`torch.nn.attention.sdpa_kernel`, which takes a list of backends"
        ),
        "torch.cuda.amp.autocast": Symbol(since=(1, 12), deprecated=_AMP, instead='`torch.amp.autocast("cuda", ...)`'),
        "torch.cpu.amp.autocast": Symbol(since=(1, 12), deprecated=_AMP, instead='`torch.amp.autocast("cpu", ...)`'),
        "torch.cuda.amp.GradScaler": Symbol(
            since=(2, 3), deprecated=_AMP, instead='`torch.amp.GradScaler("cuda", ...)`'
        ),
        "torch.cpu.amp.GradScaler": Symbol(since=(2, 3), deprecated=_AMP, instead='`torch.amp.GradScaler("cpu", ...)`'),
        "torch.cuda.amp.custom_fwd": Symbol(
            since=_AMP, deprecated=_AMP, instead='`torch.amp.custom_fwd(device_type="cuda")`'
        ),
        "torch.cuda.amp.custom_bwd": Symbol(
            since=_AMP, deprecated=_AMP, instead='`torch.amp.custom_bwd(device_type="cuda")`'
        ),
    }
)
"""Names that torch has, or had for years until lately, and says that it will not have for ever."""

REMOVED = SymbolTable(
    {
        "torch.solve": Symbol(deprecated=(1, 9), instead="`torch.linalg.solve(A, B)`, with `A` first"),
        "torch.symeig": Symbol(
            deprecated=(1, 9),
            removed=(2, 0),
            instead='`torch.linalg.eigh(A, UPLO="U")`, or `torch.linalg.eigvalsh` for the eigenvalues alone',
        ),
        "torch.eig": Symbol(
            since=(1, 9), deprecated=(1, 9), removed=(1, 13), instead="`torch.linalg.eig`, whose results are complex"
        ),
        "torch.matrix_rank": Symbol(deprecated=(1, 9), removed=(1, 13), instead="`torch.linalg.matrix_rank`"),
        "torch.lstsq": Symbol(
            since=(1, 9), deprecated=(1, 9), removed=(1, 13), instead="`torch.linalg.lstsq(A, B)`, with `A` first"
        ),
        "torch.rfft": Symbol(removed=(1, 8), instead="`torch.fft.rfft`, whose result is complex"),
        "torch.irfft": Symbol(removed=(1, 8), instead="`torch.fft.irfft`, whose argument is complex"),
        "torch.ifft": Symbol(removed=(1, 8), instead="`torch.fft.ifft`, whose argument is complex"),
        "torch._six.inf": Symbol("torch.inf", removed=(2, 0), same=True),
        "torch._six.string_classes": Symbol(removed=(2, 0), instead="`str`"),
        "torch._six.int_classes": Symbol(removed=(2, 0), instead="`int`"),
        "torch._six.container_abcs": Symbol(removed=(2, 0), instead="`import collections.abc`"),
    }
)
"""Names that torch does not have any more, or only to raise an error."""

TO_TENSOR = SymbolTable({"torchvision.transforms.v2.ToTensor": Symbol(since=(2, 1))})
"""The transform of torchvision's second generation that is there only for those who come from the first."""
