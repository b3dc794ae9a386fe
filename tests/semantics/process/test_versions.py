"""What a file proves about the torch version that it needs."""

from __future__ import annotations

import pytest

from tests.semantics.support import model_of

PROVEN = {
    "compile": ("model = torch.compile(model)", (2, 0)),
    "the newest counts": ("torch.compile(m)\ntorch.amp.GradScaler('cuda')\ntorch.compile(n)", (2, 3)),
    "decorator": ("@torch.inference_mode()\ndef f(): ...", (1, 9)),
    "alias": ("import torch.nn.functional as F\nF.scaled_dot_product_attention(q, k, v)", (2, 0)),
    "main guard": ("if __name__ == '__main__':\n    torch.compile(m)", (2, 0)),
    "nothing": ("torch.zeros(1)", (1, 8)),
    "under if": ("if hasattr(torch, 'compile'):\n    torch.compile(m)", (1, 8)),
    "under try": ("try:\n    torch.compile(m)\nexcept AttributeError:\n    pass", (1, 8)),
    "conditional expression": ("m = torch.compile(m) if args.compile else m", (1, 8)),
    "short circuit": ("new and torch.compile(m)", (1, 8)),
    "accelerator": ("if args.accel and torch.accelerator.is_available():\n    f()", (2, 6)),
    "accelerator behind a flag": ("if args.accel:\n    torch.accelerator.current_accelerator()", (2, 6)),
    "accelerator if there is one": ("hasattr(torch, 'accelerator') and torch.accelerator.is_available()", (1, 8)),
    "accelerator under try": ("try:\n    torch.accelerator.is_available()\nexcept AttributeError:\n    pass", (1, 8)),
    "accelerator of a version": ("if version >= (2, 6):\n    torch.accelerator.is_available()", (1, 8)),
    "somebody else's": ("def compile(m): ...\ncompile(m)", (1, 8)),
}


@pytest.mark.parametrize("case", PROVEN)
def test_target(case: str) -> None:
    program, version = PROVEN[case]
    model = model_of("import torch\n" + program)
    assert model.target.version == version
    assert not model.target.known


def test_what_a_file_needs_is_not_what_a_project_supports() -> None:
    model = model_of("import torch\ntorch.autocast('cpu')")
    assert model.target.version == (1, 10)
    assert not model.target.lacks((2, 4))
