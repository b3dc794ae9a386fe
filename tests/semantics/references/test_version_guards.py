"""What runs only with some versions."""

from __future__ import annotations

import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.references.version_guards import depends_on_version

DEPENDS = {
    "nothing": ("mark(x)", False),
    "a flag": ("if fast:\n    mark(x)", False),
    "a version": ("if torch.__version__ > '2':\n    mark(x)", True),
    "the other branch": ("if hasattr(torch, 'new'):\n    pass\nelse:\n    mark(x)", True),
    "the test itself": ("if version > mark(x):\n    pass", False),
    "short circuit": ("hasattr(torch, 'new') or mark(x)", True),
    "expression": ("y = new if TORCH_GE_2 else mark(x)", True),
    "missing name": ("try:\n    f()\nexcept AttributeError:\n    mark(x)", True),
    "one of several": ("try:\n    mark(x)\nexcept (KeyError, ImportError):\n    pass", True),
    "another error": ("try:\n    mark(x)\nexcept RuntimeError:\n    pass", False),
    "in the end": ("try:\n    f()\nexcept ImportError:\n    pass\nfinally:\n    mark(x)", False),
    "a flag of one": ("NEW = version.parse(torch.__version__) >= TWO\nif not NEW:\n    mark(x)", True),
    "a part of one": ("MAJOR = int(torch.__version__[0])\ny = new if MAJOR >= 2 else mark(x)", True),
    "a flag that an import sets": (
        "try:\n    import new\n    NEW = True\nexcept ImportError:\n    NEW = False\nif not NEW:\n    mark(x)",
        True,
    ),
    "a flag of something else": ("fast = args.fast\nif fast:\n    mark(x)", False),
    "a flag that decides about itself": ("if a:\n    a = True\nif a:\n    mark(x)", False),
    "a name of a version": ("if TORCH_2_4:\n    mark(x)", True),
    "the names of a module": ("if 'new' not in dir(torch):\n    mark(x)", True),
    "the parameters of a function": ("if 'new' in inspect.signature(f).parameters:\n    mark(x)", True),
    "returned earlier": ("def f():\n    if hasattr(torch, 'new'):\n        return new\n    return mark(x)", True),
    "went on earlier": ("for x in xs:\n    if torch.__version__ > '2':\n        continue\n    mark(x)", True),
    "returned later": ("def f():\n    mark(x)\n    if hasattr(torch, 'new'):\n        return new", False),
    "returned for something else": (
        "def f(m):\n    if hasattr(m, 'weight'):\n        return m\n    return mark(x)",
        False,
    ),
    "a supported version": ("if torch.__version__ < '1.8':\n    raise RuntimeError\nmark(x)", False),
    "an argument that is unknown": ("try:\n    f(a=1)\nexcept TypeError:\n    mark(x)", True),
    "an argument that may be unknown": ("try:\n    mark(x)\nexcept TypeError:\n    pass", False),
    "any error of imports": ("try:\n    from torch import mark\nexcept Exception:\n    mark(x)", True),
    "any error of more than imports": ("try:\n    import new\n    mark(x)\nexcept Exception:\n    pass", False),
    "anything": ("try:\n    import new\nexcept Exception:\n    mark(x)", True),
    "suppressed": ("from contextlib import suppress\nwith suppress(ImportError):\n    mark(x)", True),
    "another error suppressed": ("import contextlib\nwith contextlib.suppress(OSError):\n    mark(x)", False),
    "another context": ("with torch.no_grad():\n    mark(x)", False),
    "a default": ("import torch\ngetattr(torch.amp, 'new', mark(x))", True),
    "a default of something else": ("getattr(options, 'new', mark(x))", False),
    "a match": ("match torch.__version__[0]:\n    case '1':\n        mark(x)", True),
    "a test that is skipped": ("@pytest.mark.skipif(torch.__version__ > '2')\ndef test(): mark(x)", True),
    "another decorator": ("@cache\ndef f(): mark(x)", False),
}


@pytest.mark.parametrize("case", DEPENDS)
def test_depends_on_version(case: str) -> None:
    program, expected = DEPENDS[case]
    model = model_of(program)
    assert depends_on_version(marked(model)[0], model) is expected
