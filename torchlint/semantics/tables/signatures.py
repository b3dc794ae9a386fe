"""Positional parameters of the functions whose arguments rules look at."""

from __future__ import annotations

from torchlint.semantics.tables.loaders import LOADER_KINDS, TRAINER_SETTINGS

_CONV = "in_channels out_channels kernel_size stride padding dilation groups bias padding_mode device dtype"
_CONV_TRANSPOSE = (
    "in_channels out_channels kernel_size stride padding output_padding groups bias dilation padding_mode device dtype"
)
_NORM = "num_features eps momentum affine track_running_stats device dtype"

SIGNATURES: dict[str, tuple[str, ...]] = {
    name: tuple(parameters.split())
    for names, parameters in {
        **{name: kind.parameters for name, kind in (LOADER_KINDS | TRAINER_SETTINGS).items()},
        "torch.utils.data.TensorDataset": "",
        "torch.nn.Conv1d torch.nn.Conv2d torch.nn.Conv3d": _CONV,
        "torch.nn.LazyConv1d torch.nn.LazyConv2d torch.nn.LazyConv3d": _CONV.partition(" ")[2],
        "torch.nn.ConvTranspose1d torch.nn.ConvTranspose2d torch.nn.ConvTranspose3d": _CONV_TRANSPOSE,
        "torch.nn.LazyConvTranspose1d torch.nn.LazyConvTranspose2d torch.nn.LazyConvTranspose3d": (
            _CONV_TRANSPOSE.partition(" ")[2]
        ),
        "torch.nn.Linear": "in_features out_features bias device dtype",
        "torch.nn.LazyLinear": "out_features bias device dtype",
        "torch.nn.BatchNorm1d torch.nn.BatchNorm2d torch.nn.BatchNorm3d": _NORM,
        "torch.nn.InstanceNorm1d torch.nn.InstanceNorm2d torch.nn.InstanceNorm3d": _NORM,
        "torch.nn.SyncBatchNorm apex.parallel.SyncBatchNorm": (
            "num_features eps momentum affine track_running_stats process_group device dtype"
        ),
        "torch.tensor": "data",
        "torch.as_tensor": "data dtype device",
        "torch.full": "size fill_value",
        "torch.normal": "mean std size",
        "torch.device": "type index",
        "torch.autocast torch.amp.autocast": "device_type dtype enabled cache_enabled",
        "torch.cuda.amp.autocast torch.cpu.amp.autocast": "enabled dtype cache_enabled",
        "torch.autograd.Variable": "data requires_grad volatile",
        "torch.autograd.set_detect_anomaly": "mode check_nan",
        "torch.autograd.detect_anomaly": "check_nan",
        "torch.set_grad_enabled": "mode",
        "torch.use_deterministic_algorithms": "mode",
        "torch.nn.DataParallel": "module device_ids output_device dim",
        "torch.autograd.profiler.profile": "enabled use_cuda record_shapes with_flops profile_memory with_stack",
        "torch.autograd.profiler.emit_nvtx": "enabled record_shapes",
        "lightning.pytorch.Trainer": "",
    }.items()
    for name in names.split()
}
METHOD_SIGNATURES: dict[str, tuple[str, ...]] = {
    "zero_grad": ("set_to_none",),
    "cuda": ("device", "non_blocking", "memory_format"),
    "backward": ("gradient", "retain_graph", "create_graph", "inputs"),
}
