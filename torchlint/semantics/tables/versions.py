"""Since which torch version a name exists: code that calls it unguarded needs at least that version."""

from __future__ import annotations

SINCE: dict[str, tuple[int, int]] = {
    "torch.inference_mode": (1, 9),
    "torch.autocast": (1, 10),
    "torch.asarray": (1, 11),
    "torch.nn.utils.parametrizations.weight_norm": (2, 0),
    "torch.compile": (2, 0),
    "torch.set_float32_matmul_precision": (1, 12),
    "torch.set_default_device": (2, 0),
    "torch.nn.functional.scaled_dot_product_attention": (2, 0),
    "torch.vmap": (2, 0),
    "torch.func.vmap": (2, 0),
    "torch.func.functional_call": (2, 0),
    "torch.func.grad": (2, 0),
    "torch.utils.data.StackDataset": (2, 1),
    "torch.nn.attention.sdpa_kernel": (2, 3),
    "torch.nn.Buffer": (2, 5),
    "torch.amp.GradScaler": (2, 3),
    "torch.nn.RMSNorm": (2, 4),
    "torch.distributed.device_mesh.init_device_mesh": (2, 2),
    "torch.distributed.fsdp.fully_shard": (2, 6),
    "torch.nn.attention.flex_attention.flex_attention": (2, 5),
    "torch.accelerator.current_accelerator": (2, 6),
    "torch.accelerator.device_count": (2, 6),
    "torch.accelerator.is_available": (2, 6),
    "torch.accelerator.synchronize": (2, 6),
}
LAST_NAMES = frozenset(name.rpartition(".")[2] for name in SINCE)
