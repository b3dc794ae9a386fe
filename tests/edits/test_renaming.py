"""What a file looks like after one name of torch gave way to another."""

from __future__ import annotations

import pytest

from torchlint import fix_source

FIXED = {
    "binds what it writes": (
        "TL806",
        "from torch import optim\n\nclass A(optim.lr_scheduler._LRScheduler): pass\n",
        "from torch import optim\n\nclass A(optim.lr_scheduler.LRScheduler): pass\n",
    ),
    "imports torch where nothing brings it in": (
        "TL802",
        "import functorch as ft\n\nf = ft.vmap(g)\nh = ft.make_functional(g)\n",
        "import functorch as ft\nimport torch\n\nf = torch.func.vmap(g)\nh = ft.make_functional(g)\n",
    ),
    "one name of several": (
        "TL802",
        "from functorch import vmap, make_functional\n\nvmap(make_functional)\n",
        "from functorch import make_functional\nfrom torch.func import vmap\n\nvmap(make_functional)\n",
    ),
    "in a function": (
        "TL802",
        "def f(x):\n    from functorch import (\n        vmap,\n        grad,\n    )\n    return vmap(grad(x))\n",
        "def f(x):\n    from torch.func import (\n        vmap,\n        grad,\n    )\n    return vmap(grad(x))\n",
    ),
    "all places of a name": (
        "TL802",
        "from torch import ger\n\ndef f(a):\n    return ger(a, ger(a, a)), map(ger, a)\n",
        "from torch import outer\n\ndef f(a):\n    return outer(a, outer(a, a)), map(outer, a)\n",
    ),
    "a taken name keeps the old one": (
        "TL802",
        "from torch import ger\n\ndef f(a, outer):\n    return ger(a, outer)\n",
        "from torch import outer as ger\n\ndef f(a, outer):\n    return ger(a, outer)\n",
    ),
    "a name that is spoken of keeps the old one": (
        "TL802",
        "from torch import ger\n\n__all__ = ['ger']\nx = ger(a, b)\n",
        "from torch import outer as ger\n\n__all__ = ['ger']\nx = ger(a, b)\n",
    ),
    "so does one that others bind": (
        "TL802",
        "from torch import ger\n\nclass A:\n    ger = ger\n",
        "from torch import outer as ger\n\nclass A:\n    ger = ger\n",
    ),
    "and one that is global": (
        "TL802",
        "def f():\n    global ger\n    from torch import ger\n    return ger(a, b)\n",
        "def f():\n    global ger\n    from torch import outer as ger\n    return ger(a, b)\n",
    ),
    "on a line with others": (
        "TL802",
        "import torch; from torch import ger; x = ger(a, b); y = torch.ger(a, b)\n",
        "import torch; from torch import outer; x = outer(a, b); y = torch.outer(a, b)\n",
    ),
    "nothing that is bound too late": (
        "TL802",
        "import functorch\n\nf = functorch.vmap(g)\nimport torch\n",
        "import functorch\n\nf = functorch.vmap(g)\nimport torch\n",
    ),
    "nothing where torch is something else": (
        "TL802",
        "import functorch\n\ntorch = 1\nf = functorch.vmap(g)\n",
        "import functorch\n\ntorch = 1\nf = functorch.vmap(g)\n",
    ),
    "nested calls to the end": (
        "TL802",
        "import torch\n\nx = torch.qr(torch.cholesky(torch.chain_matmul(torch.ger(a, b), c)), False)\n",
        """import torch

x = torch.linalg.qr(torch.linalg.cholesky(torch.linalg.multi_dot([torch.outer(a, b), c])), mode="complete")
""",
    ),
    "an import from where the name is not torch's": (
        "TL802",
        "from torch import range\n\nx = range(0, 3)\n",
        "import torch\n\nx = torch.arange(0, 4, dtype=torch.get_default_dtype())\n",
    ),
}


@pytest.mark.parametrize("case", FIXED)
def test_fix(case: str) -> None:
    rule, before, after = FIXED[case]
    assert fix_source(before, unsafe_fixes=True, select=[rule], target_torch="2.6").text == after
