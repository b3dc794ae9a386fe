"""Who may read a variable of the environment."""

from __future__ import annotations

import pytest

from tests.semantics.support import model_of

PROGRAMS = {
    "set": ("os.environ['A'] = '1'", False),
    "set by a call": ("os.environ.setdefault('A', '1')", False),
    "set with others": ("os.environ.update({'A': '1', 'B': '2'})", False),
    "asked for": ("os.environ['A'] = '1'\nprint(os.environ['A'])", True),
    "asked for by a call": ("print(os.environ.get('A'))", True),
    "spoken of": ("names = ['A']", True),
    "another one": ("print(os.environ['B'], os.getenv('C'))", False),
    "one that is named elsewhere": ("print(os.getenv(name))", True),
    "all of them": ("print(dict(os.environ))", True),
    "handed to another program": ("import subprocess\nsubprocess.run(['ls'])", True),
    "somebody else's environ": ("def f(os): print(os.environ)", False),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_who_may_read(case: str) -> None:
    program, expected = PROGRAMS[case]
    assert model_of(f"import os\n{program}").environment.may_be_read("A") is expected
