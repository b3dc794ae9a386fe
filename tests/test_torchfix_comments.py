"""Comments with TorchFix's codes silence the rules that stand for them."""

from __future__ import annotations

import pytest

from torchlint import check_source

SILENCED = {
    "TOR001": ("TL801", "x = torch.symeig(a)"),
    "TOR002": ("TL803", "x.require_grad = True"),
    "TOR003": ("TL804", "x = torch.utils.checkpoint.checkpoint(f, x)"),
    "TOR004": ("TL801", "from torch import symeig"),
    "TOR101": ("TL802", "x = torch.qr(a)"),
    "TOR102": ("TL805", "x = torch.load(a)"),
    "TOR103": ("TL802", "from torch import qr"),
    "TOR104": ("TL806", "x = torch._dynamo.reset()"),
    "TOR105": ("TL806", "from torch._dynamo import reset"),
    "TOR106": ("TL412", "x = torch.log(1 + a)"),
    "TOR107": ("TL412", "x = torch.exp(a) - 1"),
    "TOR108": ("TL412", "x = torch.log(torch.sum(torch.exp(a), 1))"),
    "TOR201": ("TL807", "x = torchvision.models.resnet50(pretrained=True)"),
    "TOR202": ("TL808", "from torchvision.transforms.v2 import ToTensor"),
    "TOR203": ("TL809", "import torchvision.models as models"),
    "TOR401": ("TL101", "x = torch.utils.data.DataLoader(images)"),
    "TOR402": ("TL301", "torch.optim.SGD(p).zero_grad(set_to_none=False)"),
}


@pytest.mark.parametrize("theirs", SILENCED)
def test_a_comment_of_torchfix_silences_our_rule(theirs: str) -> None:
    ours, line = SILENCED[theirs]
    program = f"import torch\nimport torchvision\n\n{line}"
    assert [found.code for found in check_source(f"{program}\n", select=[ours])] == [ours]
    assert not list(check_source(f"{program}  # noqa: {theirs}\n", select=[ours]))
    assert check_source(f"{program}  # noqa: TOR999\n", select=[ours])
