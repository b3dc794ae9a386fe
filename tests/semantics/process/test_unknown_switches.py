"""Names that torch does not know are told by what they are like, and by where they stand."""

from __future__ import annotations

import pytest

from torchlint.semantics.process.unknown_switches import Meant, meant

CUDNN, MATMUL = "torch.backends.cudnn", "torch.backends.cuda.matmul"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"{CUDNN}.benckmark", Meant((f"{CUDNN}.benchmark",))),
        (f"{CUDNN}.BENCHMARK", Meant((f"{CUDNN}.benchmark",))),
        ("torch.backends.cuda.allow_tf32", Meant((f"{MATMUL}.allow_tf32",))),
        ("torch.backends.allow_tf32", Meant((f"{CUDNN}.allow_tf32", f"{MATMUL}.allow_tf32"))),
        (f"{MATMUL}.allow_tf32_", Meant((f"{MATMUL}.allow_tf32",), raises=True)),
        ("torch.manual_seed", Meant(("torch.manual_seed",), is_called=True)),
        ("os.environ[CUDA_VISIBLE_DEVICE]", Meant(("os.environ[CUDA_VISIBLE_DEVICES]",))),
    ],
)
def test_what_is_meant(name: str, found: Meant) -> None:
    assert meant(name) == found


@pytest.mark.parametrize(
    "name",
    [
        f"{CUDNN}.benchmark",
        f"{CUDNN}.flags",
        f"{CUDNN}.search_depth",
        f"{MATMUL}.allow_fp8_accumulation",
        f"{MATMUL}.allow_bf16_accumulation",
        "torch.backends.xpu.matmul.alow_tf32",
        "torch.cuda.enabled",
        "os.environ[HOME]",
        "os.environ[PYTORCH_HIP_ALLOC_CONF]",
    ],
)
def test_nobody_knows(name: str) -> None:
    assert meant(name) is None
