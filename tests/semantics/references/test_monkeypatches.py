"""What a file puts in place of torch's own is seen, and what it does with its own things is not taken for that."""

from __future__ import annotations

import pytest

from tests.semantics.support import model_of
from torchlint.semantics.references.monkeypatches import alters_libraries


@pytest.mark.parametrize(
    "code",
    [
        "torch.Tensor.half = mine",
        "from torch import Tensor as T\nT.half = mine",
        "torch.float64 = torch.float32",
        "setattr(torch, name, mine)",
        "setattr(torch.Tensor, 'half', mine)",
        "delattr(torch, 'half')",
        "type.__setattr__(torch.Tensor, 'half', mine)",
        "with mock.patch('torch.ones', mine):\n    pass",
        "with patch.object(torch.Tensor, 'half', mine):\n    pass",
        "monkeypatch.setattr('torch.cuda.is_available', mine)",
        "import numpy as np\nsetattr(np, 'zeros', mine)",
        "mock.patch('numpy.zeros', mine)",
        "torch.__dict__['ones'] = mine",
        "vars(torch)['ones'] = mine",
        "torch.__dict__.update(ones=mine)",
        "exec('torch = 3')",
        "globals()['torch'] = mine",
        "globals()[name] = mine",
        "del globals()['torch']",
        "globals().update(mine)",
        "import sys\nsys.modules['torch'] = mine",
        "from torch.overrides import TorchFunctionMode\nclass Mode(TorchFunctionMode):\n    pass",
        "class Mode(torch.utils._python_dispatch.TorchDispatchMode):\n    pass",
    ],
)
def test_torch_is_altered(code: str) -> None:
    assert alters_libraries(model_of(f"import torch\n{code}\n"))


@pytest.mark.parametrize(
    "code",
    [
        "self.half = torch.Tensor.half",
        "torch.backends.cudnn.benchmark = True",
        "torch._dynamo.config.cache_size_limit = 64",
        "setattr(torch.backends.cudnn, 'benchmark', True)",
        "setattr(self, 'torch', 1)",
        "torchvision.ops.nms = mine",
        "import numpy as np\nnp.bool = bool",
        "mock.patch('torchvision.ops.nms', mine)",
        "mock.patch('helpers.torch.ones', mine)",
        "patch('x')",
        "exec(code, names)",
        "database.exec('select')",
        "values = globals()['torch']",
        "globals()['kind'] = 'cpu'",
        "self.__dict__['ones'] = mine",
        "self.__dict__.update(options)",
        "import sys\nsys.modules[__name__] = mine",
        "x[0] = torch.ones(3)\ndel x[0]",
        "class Mine(torch.Tensor):\n    def half(self):\n        return self",
    ],
)
def test_torch_is_not_altered(code: str) -> None:
    assert not alters_libraries(model_of(f"import torch\n{code}\n"))
