"""The variable set in every spelling, and everything that a program can read from its environment."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.observe import Difference
from tests.refute.search import Program, Search

_NAME = "CUDA_LAUNCH_BLOCKING"
_SET = (
    f'os.environ["{_NAME}"] = "1"',
    f'environ["{_NAME}"] = "1"',
    f'os.environ["{_NAME}"] = str(1)',
    f"os.environ['{_NAME}'] = '1'  # slow",
    f'os.environ.setdefault("{_NAME}", "1")',
    f'os.environ.update({_NAME}="1")',
    f'os.environ.update({{"{_NAME}": "1"}})',
    f'os.environ.update({{"{_NAME}": "1", "OTHER": "2"}})',
    f'os.environ["{_NAME}"], n = "1", 4',
    f'os.environ["{_NAME}"] = os.environ["OTHER"] = "1"',
    f'os.environ["{_NAME}"] = "1"; n = 5',
    f'os.putenv("{_NAME}", "1")',
    f'os.environ.__setitem__("{_NAME}", "1")',
    f'text = os.environ["{_NAME}"] = "1"',
)
_AFTER = (
    "x = torch.arange(4, device=device) * 2",
    "y = torch.rand(3)",
    "print(n)",
    'os.environ["OTHER"] = "1"',
    'seen.append(os.environ.get("HOME"))',
    'seen.append(os.getenv("OTHER", "none"))',
    f'seen.append(os.environ.get("{_NAME}"))',
    f'seen.append("{_NAME}" in os.environ)',
    f'del os.environ["{_NAME}"]',
    f'seen.append(os.environ.pop("{_NAME}", None))',
    'seen.append(sorted(name for name in os.environ if name.startswith("CUDA")))',
    "seen.append(dict(os.environ))",
    "seen.append(len(os.environ))",
    "seen.append(os.environ.copy())",
    "saved = {**os.environ}",
    "for name, value in os.environ.items(): seen.append(name)",
    'print(os.popen("echo $CUDA_LAUNCH_BLOCKING").read())',
    'print(subprocess.run("env | grep ^CUDA_L", shell=True, capture_output=True, text=True).stdout)',
    'seen.append(os.environ["CUDA_" + "LAUNCH_BLOCKING"])',
    'seen.append(os.environ[f"CUDA_{what}"])',
    "seen.append(child())",
    "os.environ.clear()",
    'seen.append(os.path.expandvars("$CUDA_LAUNCH_BLOCKING"))',
    'seen.append(list(map(os.getenv, ["CUDA_LAUNCH" + "_BLOCKING"])))',
)
_PLAIN = (
    *_AFTER[:6],
    'os.environ["OMP_NUM_THREADS"] = "2"',
    'home = os.environ["HOME"] if "HOME" in seen else None',
    "with torch.no_grad(): z = torch.ones(n)",
    "seen.append(os.getcwd())",
    "n += 1",
    "class Late: value = n",
    "assert n",
)
_SETUP = (
    ["n = 3"],
    ["what = 'LAUNCH_BLOCKING'"],
    ["device = 'cuda'"],
    [
        "def child():",
        *indented(["return subprocess.run(['env'], env=os.environ, capture_output=True, text=True).stdout"]),
    ],
)


def _lines(choices: Choices) -> Lines:
    return [*choices.some(_PLAIN, 1), choices.of(*_SET), *choices.some(_AFTER if choices.chance(3) else _PLAIN, 2)]


def program(choices: Choices) -> Program:
    """Return a program that sets the variable."""
    head = ["import os", "import subprocess", "from os import environ", "import torch"]
    site = placed(choices, _lines(choices))
    if choices.chance(4):
        site = [f'os.environ["{_NAME}"] = {choices.of(repr("0"), repr("1"))}', *site]
    after = choices.some(_AFTER if choices.chance(4) else _PLAIN, 2)
    return Program(text(head, needed(_SETUP, [*site, *after]), site, after))


def is_the_fix(difference: Difference) -> bool:
    """Whether only the variable itself is another one in the end."""
    return difference.what.startswith(f"environment {_NAME} is")


search = Search("TL606", program, is_the_fix=is_the_fix)
