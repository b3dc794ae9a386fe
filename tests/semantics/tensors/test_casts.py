"""Numbers that no float holds, in tensors that are cast at once."""

from __future__ import annotations

import pytest

from torchlint.api import check_source


@pytest.mark.parametrize("method", ["half", "double", "bool"])
@pytest.mark.parametrize("data", [f"[1.0, {10**400}]", f"[1.0, -{10**400}]", f"[{10**400}, True]", "[1.0, 1e400]"])
def test_numbers_beyond_all_floats_make_no_safe_fix(data: str, method: str) -> None:
    (found,) = check_source(f"import torch\nx = torch.tensor({data}).{method}()\n", select=["TL219"])
    assert found.fix is None or found.fix.safety.value == "unsafe"
