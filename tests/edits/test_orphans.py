"""Imports without use are removed with what parts them from their neighbours, and with nothing else."""

from __future__ import annotations

import pytest

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.orphans import removals
from torchlint.edits.text import apply_edits
from torchlint.edits.verify import Original


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("import a\nb\n", "b\n"),
        ("import a\n\n\nb\n", "b\n"),
        ("\nimport a\r\n \r\nb\r\n", "\nb\r\n"),
        ("b\n\nimport a\n\nc\n", "b\n\n\nc\n"),
        ("import a; b\n", "b\n"),
        ("b; import a\n", "b\n"),
        ("b; import a  # why\n", "b  # why\n"),
        ("b ;import a;\n", "b;\n"),
        ("import b; import a; c\n", "import b; c\n"),
        ("import a, b; c\n", "import b; c\n"),
        ("def f():\n    import a; b\n", "def f():\n    b\n"),
        ("for c in b:\n    import a\n    c\n", "for c in b:\n    c\n"),
        ("with b:\n    import a\n    c\n", "with b:\n    c\n"),
        ("for c in b:\n    with c:\n        import a\n        d\n", "for c in b:\n    with c:\n        d\n"),
        ("with suppress(b):\n    import a\n    c = 1\n", "with suppress(b):\n    import a\n    c = 1\n"),
        ("with d.suppress(b), c:\n    import a\n    c\n", "with d.suppress(b), c:\n    import a\n    c\n"),
        ("try:\n    with b:\n        import a\n        c = 1\nexcept E:\n    d\n",) * 2,
        (
            "try:\n    with b:\n        import a\n        c = 1\nfinally:\n    d\n",
            "try:\n    with b:\n        c = 1\nfinally:\n    d\n",
        ),
        ("class B:\n    import a\n    c\n", "class B:\n    import a\n    c\n"),
        ("def f():\n    b; import a\r\n", "def f():\n    b\r\n"),
        ("import a;\nb\n", "b\n"),
        ("import a \\\n  \nb\n", "b\n"),
        ("import a  # why\nb\n", "b\n"),
        ("import a  # noqa: F401\n", "import a  # noqa: F401\n"),
        ("from b import a, c  # noqa: E402, F401\n", "from b import a, c  # noqa: E402, F401\n"),
        ("import a  # noqa\n", "import a  # noqa\n"),
        ("from b import (\n    a,  # noqa: F401\n    c,\n)\n",) * 2,
        ("from b import (  # noqa: F401\n    a,\n    c,\n)\n",) * 2,
        ("from b import (\n    a,\n)  # noqa: F401\n",) * 2,
        ("from b import (\n    a,\n    c,  # noqa: F401\n)\n", "from b import (\n    c,  # noqa: F401\n)\n"),
        ("from b import a as a, c\n", "from b import a as a, c\n"),
        ("import a\nb = []  # type: list[a]\n", "import a\nb = []  # type: list[a]\n"),
        ("import a; \\\n    b\n", "import a; \\\n    b\n"),
        ("if b: import a; c\n", "if b: c\n"),
        ("if b:\n    import a\n    c\nelse:\n    a = None\n",) * 2,
        ("if b:\n    c\nelif d:\n    import a\n    c\n", "if b:\n    c\nelif d:\n    c\n"),
        ("if b:\n    import a\n", "if b:\n    import a\n"),
    ],
)
def test_an_import_goes_with_its_separator(text: str, after: str) -> None:
    edits = [orphan.edit for orphan in removals(Original(text), "x.py", {"a"})]
    assert apply_edits(text, edits) == after


def test_blank_lines_stay_where_another_edit_puts_something() -> None:
    text = "import a\n\nb\n"
    other = TextEdit(Range(9, 9), "import c\n")
    (orphan,) = removals(Original(text), "x.py", {"a"}, [other])
    assert apply_edits(text, [orphan.edit, other]) == "import c\n\nb\n"


def test_a_comment_that_goes_too_is_a_risk() -> None:
    (orphan,) = removals(Original("import torch as a  # why\n"), "x.py", {"a"})
    assert orphan.risk
    (orphan,) = removals(Original("import torch as a\n"), "x.py", {"a"})
    assert not orphan.risk


def test_an_import_stays_in_the_file_of_a_package() -> None:
    assert removals(Original("import a\n"), "p/__init__.py", {"a"}) == []


def test_an_import_stays_in_a_file_that_looks_names_up() -> None:
    assert removals(Original("import a\neval(input())\n"), "x.py", {"a"}) == []


def test_only_the_import_of_the_module_goes_where_that_is_asked() -> None:
    text = "import a\ndef f():\n    import a; b\n"
    orphans = removals(Original(text), "x.py", {"a"}, of_module_only=True)
    assert apply_edits(text, [orphan.edit for orphan in orphans]) == text.removeprefix("import a\n")


@pytest.mark.parametrize(
    ("rest", "is_used"),
    [
        ("def f(a):\n    return a\n", False),
        ("def f():\n    a = 1\n    return lambda: a\n", False),
        ("def f(b):\n    return [a for a in b]\n", False),
        ("def f():\n    return a\n", True),
        ("def f():\n    global a\n    a = 1\n    return a\n", True),
        ("class C:\n    a = a\n", True),
        ("class C:\n    a = 1\n    b = a\n", True),
        ("def f(a, b=a):\n    return a\n", True),
        ("def f(a):\n    return 'a'\n", True),
        ("__all__ = ['a']\n", True),
        ("__all__ = ['a']\ndef f():\n    a = 1\n    return a\n", True),
        ("[a for b in b]\n", True),
        ("def f(b: list[a]) -> None:\n    a = b\n    return a\n", True),
        ("def f(b) -> a:\n    return b\n", True),
        ("class C:\n    b: a\n", True),
        ("class C:\n    a = 1\n    b = {a for c in b}\n", True),
        ("def f(b=[a for c in d]):\n    return [a for a in b]\n", True),
    ],
)
def test_what_another_scope_binds_does_not_use_the_name_of_the_module(rest: str, is_used: bool) -> None:
    assert ("a" in Original(f"import a\n{rest}").uses_of_module) is is_used
