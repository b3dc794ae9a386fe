"""What an edited text is held against."""

from __future__ import annotations

import pytest

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.text import comments
from torchlint.edits.verify import Original, undefined_names, uses_of_names


def edit(text: str, old: str, new: str) -> tuple[TextEdit, ...]:
    start = text.index(old)
    return (TextEdit(Range(start, start + len(old)), new),)


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        ("x = 1\n", "1", "2", ""),
        ("x = 1\r\nä = 'ü'; y = x\r\n", "1", "2", ""),
        ("def f():\n    return 1\n", "", "import a\n", ""),
        ("def f():\n    import a\n\n    return 1\n", "    import a\n", "", ""),
        ("def f():\n    import a\n    # b\n    return 1\n", "    import a\n", "", ""),
        ("x = 1\n", "1", "(", "the result does not parse"),
        ("x = 1\n", "1", "y", "'y' would be used without being bound"),
        ("import a\nx = a\n", "import a\n", "", "'a' would be used without being bound"),
        ("def f():\n    a = 1\n    return a\n", "    a = 1\n", "", "'a' would be used without being bound"),
        ("def f():\n    return 1\n", "def f():", "if 1:", "the result does not compile: 'return' outside function"),
        ("x = 1\ny = 2\nz = 3\n", "x = 1", "x = '''", "the result does not parse"),
        ("x = 0\ny = 1\nz = 2  # '''\n", "0", "'''", "code outside the edits means something else"),
        ("from a import *\nx = 1\n", "1", "y", ""),
        ("x = 1\n", "1", "__file__ + len.__name__", ""),
        ("if x:\n    a = 1\nb = 2\n", "x:\n    a = 1\n", "x:\n    pass\n", ""),
        ("print 'old'\n", "old", "new", "the result does not parse"),
        ("def f():\n    g = 1\n    'h'\n", "    g = 1\n", "", "a string becomes documentation"),
        ('"""h"""\ng = 1\n', "g = 1\n", "", ""),
    ],
)
def test_a_text_is_sound_or_says_why_not(text: str, old: str, new: str, reason: str) -> None:
    if text.startswith(("print", "if x")):
        text = text.replace("if x", "x = 1\nif x")
    assert Original(text).broken_by(edit(text, old, new)) == reason


def test_a_statement_that_moves_into_another_block_is_seen() -> None:
    text = "a = 1\nif a:\n    a = 2\n    a = 3\n"
    broken = Original(text).broken_by(edit(text, "    a = 2\n", "    a = 2\nif a:\n"))
    assert broken == "code outside the edits means something else"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x\n", {"x"}),
        ("def f(a):\n    def g():\n        return a, b\n    return g\n", {"b"}),
        ("def f():\n    global c\n    c = 1\nc\n", set()),
        ("[y for y in z]\n", {"z"}),
        ("class A:\n    a = 1\n    def f(self):\n        return a, __class__\n", {"a"}),
        ("try:\n    pass\nexcept OSError as e:\n    print(e)\n", set()),
        ("import a.b\na\n", set()),
        ("lambda q: q + r\n", {"r"}),
        ("x: int = 1\nx\n", set()),
        ("def f():\n    x = 1\nx\n", {"x"}),
    ],
)
def test_names_that_nothing_binds(text: str, names: set[str]) -> None:
    assert undefined_names(text) == names


def test_uses_count_the_words_of_strings_but_for_prose_and_devices() -> None:
    text = "import a\n__all__ = ['b']\nx: 'c.d[e]' = 'f(1) + 2'\ng.h\n'''i'''\n'''>>> j'''\n"
    original = Original(text + "h(device='cuda')\nh('cpu')\nk += 1\n")
    assert original.tree
    assert set(uses_of_names(original.tree)) == set("bcefgjhk")


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("eval('x')\n", True),
        ("def f():\n    exec(code)\n", True),
        ("print(locals(), 1)\n", True),
        ("globals()['x'] = 1\n", True),
        ("vars()\n", True),
        ("vars(arguments), dir(module)\n", False),
        ("model.eval()\n", False),
        ("sys.modules[__name__]\n", True),
        ("net.modules()\n", False),
        ("import __main__\n", True),
    ],
)
def test_what_looks_names_up(text: str, looks: bool) -> None:
    assert Original(text).looks_up_names is looks


def test_comments_are_told_from_strings() -> None:
    text = "x = '# no'  # yes\r\n'''\r\n# no\r\n'''\n# ä\n"
    found = comments(text)
    assert found
    assert [text[place.start : place.end] for place in found] == ["# yes", "# ä"]
    assert comments("x = (\n") is None
