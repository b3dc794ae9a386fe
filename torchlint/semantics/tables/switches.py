"""The switches of torch that are assigned, the functions that are called instead, the variables that it reads.

From torch 2.13; a test compares them with the torch that is installed.
"""

from __future__ import annotations

MATMUL = "torch.backends.cuda.matmul"

ASSIGNED: dict[str, frozenset[str]] = {
    "torch.backends": frozenset(("fp32_precision",)),
    MATMUL: frozenset(
        (
            "allow_tf32",
            "allow_fp16_reduced_precision_reduction",
            "allow_bf16_reduced_precision_reduction",
            "allow_fp16_accumulation",
            "fp32_precision",
        )
    ),
    "torch.backends.cuda.cufft_plan_cache": frozenset(("max_size",)),
    "torch.backends.cudnn": frozenset(
        "allow_tf32 benchmark benchmark_limit depthwise_kernel deterministic enabled fp32_precision".split()
    ),
    "torch.backends.miopen": frozenset(("immediate",)),
    "torch.backends.mkldnn": frozenset("allow_tf32 deterministic enabled fp32_precision".split()),
    "torch.backends.opt_einsum": frozenset(("enabled", "strategy")),
    "torch.backends.quantized": frozenset(("engine",)),
}
"""Objects that take any attribute, and those of their attributes that are switches."""

REFUSING = frozenset((MATMUL,))
"""Those of them that raise where the attribute is not known."""

OTHER_NAMES = frozenset(
    "allow_bf16_accumulation cache conv flags lib matmul rnn set_flags size supported_engines verbose version".split()
)
"""What else these objects have, now, in older versions of torch or perhaps in later ones."""

TELLING = frozenset(
    "allow_tf32 allow_fp16_reduced_precision_reduction allow_bf16_reduced_precision_reduction "
    "allow_fp16_accumulation benchmark benchmark_limit deterministic".split()
)
"""Switches that are meant wherever somebody assigns them to a module of torch that has none of that name."""

HOMES = ("torch.backends.cudnn", MATMUL)
"""Where such a switch is looked for."""

WITHOUT_SWITCHES = frozenset(("torch", "torch.cuda", "torch.backends", "torch.backends.cuda", "torch.backends.cudnn"))
"""The modules to which it is assigned by mistake."""

CALLED = frozenset(
    (
        "torch.autograd.set_detect_anomaly",
        "torch.backends.cuda.enable_cudnn_sdp",
        "torch.backends.cuda.enable_flash_sdp",
        "torch.backends.cuda.enable_math_sdp",
        "torch.backends.cuda.enable_mem_efficient_sdp",
        "torch.backends.cuda.preferred_blas_library",
        "torch.backends.cuda.preferred_linalg_library",
        "torch.backends.mha.set_fastpath_enabled",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.cuda.set_device",
        "torch.cuda.set_per_process_memory_fraction",
        "torch.manual_seed",
        "torch.set_default_device",
        "torch.set_float32_matmul_precision",
        "torch.set_grad_enabled",
        "torch.set_num_interop_threads",
        "torch.set_num_threads",
        "torch.use_deterministic_algorithms",
        "numpy.random.seed",
        "random.seed",
    )
)
"""Functions that set something with their first argument; a value in their place sets nothing."""

VARIABLES = frozenset(
    (
        "CUBLAS_WORKSPACE_CONFIG",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ENABLE_MPS_FALLBACK",
    )
)
"""Environment variables that are read where they are set, and passed over without a word where they are not."""

OTHER_VARIABLES = frozenset(
    ("PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUDA_VISIBLE_DEVICES_ORDER", "KMP_NUM_THREADS")
)
"""Variables that look like one of them and exist."""
