"""Private names of torch in every spelling, called, passed on, compared, inspected and shadowed."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search
from tests.torch.stand_in import VALUES

_COLLATE = "torch.utils.data._utils.collate"
_WORKER = "torch.utils.data._utils.worker"
_TENSOR = "torch.distributed._tensor"
_MODULES = {
    "default_collate": _COLLATE,
    "default_convert": _COLLATE,
    "get_worker_info": _WORKER,
    "DTensor": _TENSOR,
    "Shard": _TENSOR,
    "Replicate": _TENSOR,
    "Partial": _TENSOR,
}
_CALLS = {
    "default_collate": (
        "{f}([1, 2])",
        "{f}([torch.ones(2), torch.zeros(2)])",
        "{f}([{{'a': 1.5}}, {{'a': n}}])",
        "{f}([('x', 1), ('y', 2)])",
        "{f}([])",
        "list(DataLoader(items, batch_size=2, collate_fn={f}))",
        "functools.partial({f})([n])",
    ),
    "default_convert": ("{f}([1, 2.0])", "{f}({{'a': (1, 'b')}})", "list(map({f}, items))"),
    "get_worker_info": ("{f}()", "{f}() is None", "[{f}() for _ in range(2)]"),
    "DTensor": ("isinstance(torch.ones(1), {f})", "issubclass({f}, torch.Tensor)", "{f}.__mro__[1]"),
    "Shard": ("{f}(0)", "{f}(dim=1).dim", "isinstance({f}(0), {f})", "{f}(0) == {f}(0)"),
    "Replicate": ("{f}()", "[{f}(), {f}()]", "{f}() == {f}()", "hash({f}()) == hash({f}())"),
    "Partial": ("{f}()", "{f}('sum').reduce_op", "repr({f}())"),
}
_SHOWS = (
    "{f}",
    "{f}.__name__",
    "{f}.__module__",
    "{f}.__qualname__",
    "{f}.__doc__",
    "callable({f})",
    "inspect.signature({f})",
    "{{{f}: 1}}",
    "{f} is kept",
    "f'{{{f}.__name__}}'",
)
_AFTER = (
    "y = type(x)",
    "y = n + 1",
    "seen.append(n)",
    "seen.append([x])",
    "seen.append(isinstance(x, type))",
    "seen.append(type(x).__name__)",
    "seen.append(repr(type(x)))",
    "seen.append(sorted(name for name in globals() if name.startswith('default')))",
    "seen.append('{f}' in globals())",
    "seen.append('{f}' in dir())",
    "seen.append(__name__)",
    "seen.append(bool(n))",
    "with torch.no_grad(): seen.append(torch.is_grad_enabled())",
    "import torch.utils.data._utils",
    "z = torch.utils.data._utils.collate.default_collate",
    "seen.append(hasattr(torch.utils.data, '_utils'))",
)
_BINDS = ("{f} = len", "def {f}(*given): return given", "del {f}")
_SETUP = (
    ["n = 3"],
    ["items = [1, 2, 3]"],
    ["kept = torch.utils.data.default_collate"],
)


def program(choices: Choices) -> Program:
    """Return a program that uses a private name."""
    name = choices.of(*_MODULES)
    module = _MODULES[name]
    head, spelled = _imported(choices, module, name)
    calls = _CALLS[name] if choices.chance() else _SHOWS
    lines: Lines = [f"x = {choices.of(*calls).format(f=spelled)}", "seen.append(x)"]
    if choices.chance(4):
        lines = [f"def work(f={spelled}):", *indented(["return f"]), "x = work()", "seen.append(x)"]
    lines += [line.format(f=spelled) for line in choices.some(_AFTER, 3)]
    site = placed(choices, lines)
    if "." not in spelled and choices.chance(6):
        site = [*site, choices.of(*_BINDS).format(f=spelled)]
    imports = ["import functools", "import inspect", "import torch", "import torch.utils.data"]
    return Program(text(imports, "from torch.utils.data import DataLoader", head, needed(_SETUP, site), site), "2.6")


def _imported(choices: Choices, module: str, name: str) -> tuple[Lines, str]:
    """Return the import of a private name, and how the program calls it then."""
    parent, _, last = module.rpartition(".")
    kind = choices.below(6)
    if kind == 0:
        return [f"from {module} import {name}"], name
    if kind == 1:
        return [f"from {module} import {name} as private"], "private"
    if kind == 2:
        return [f"import {module}"], f"{module}.{name}"
    if kind == 3:
        return [f"import {module} as {last}"], f"{last}.{name}"
    if kind == 4:
        return [f"from {parent} import {last}"], f"{last}.{name}"
    other = next(other for other, home in _MODULES.items() if home == module)
    return [f"from {module} import {other}, {name}" if other != name else f"from {module} import {name}"], name


search = Search("TL806", program, places=(VALUES,))
