"""Modules of torchvision imported under their own names in every place and company, and what can tell how."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.refute.choices import Choices, Lines, placed, text
from tests.refute.search import Program, Search
from tests.refute.vision import load_torchvision
from tests.torch.stand_in import VALUES

_MODULES = ("datasets", "io", "models", "ops", "transforms", "utils")
_COMPANY = (
    "import json, {imports}",
    "import {imports}, json as j",
    "import {imports}, torchvision",
    "import {imports}, torchvision.models.resnet",
    "import {imports}, torchvision.transforms.functional as functional",
    "import {imports}, torchvision.{module} as other",
    "import {imports}, torchvision.{module} as {module}",
)
_LINES = (
    "{line}",
    "{line}  # what sees",
    "{line}; n = 1",
    "n = 1; {line}",
    "{line}; {line}",
    "if True: {line}",
    "for {module} in (1, 2): {line}",
    "try: {line}\nexcept ImportError: {module} = None",
    "try: {line}\nexcept ModuleNotFoundError: seen.append('missing')",
    "try: {line}\nexcept Exception as error: seen.append(type(error).__name__)",
    "try:\n    import absent_package\nexcept ImportError:\n    {line}",
    "with suppress(ImportError): {line}",
    "with suppress(ModuleNotFoundError): {line}",
    "def load():\n    {line}\n    return {module}\n{module} = load()",
    "def load():\n    global {module}\n    {line}\nload()",
    "class Holder:\n    {line}\n{module} = Holder.{module}",
    (
        "def outer():\n    {module} = 0\n    def inner():\n        nonlocal {module}\n        {line}\n    inner()\n"
        "    return {module}\n{module} = outer()"
    ),
    "def load():\n    {line}\n    return sorted(locals())\nseen.append(load())\n{line}",
)
_BEFORE = (
    "import torchvision",
    "import torchvision.{module}",
    "{module} = 1",
    "from torchvision import {module} as kept",
    "import torchvision; torchvision.{module} = types.SimpleNamespace(__name__='another')",
    "import torchvision; del torchvision.{module}",
    "import torchvision; setattr(torchvision, 'models', types.SimpleNamespace(__name__='another'))",
    "sys.modules['torchvision.{module}'] = types.SimpleNamespace(__name__='another')",
    "sys.modules['torchvision.{module}'] = None",
    "sys.modules.pop('torchvision.{module}', None)",
    "sys.modules['torchvision'] = types.SimpleNamespace({module}=types.SimpleNamespace(__name__='another'))",
    "sys.modules['torchvision'] = None",
    "sys.meta_path.insert(0, Finder())",
)
_AFTER = (
    "seen.append({module}.__name__)",
    "seen.append({module} is sys.modules['torchvision.{module}'])",
    "seen.append('torchvision' in globals())",
    "seen.append(sorted(name for name in globals() if name in ('{module}', 'torchvision', 'json', 'other')))",
    "seen.append(sorted(name for name in dir({module}) if not name.startswith('_'))[:3])",
    "import torchvision; seen.append({module} is torchvision.{module})",
    "seen.append(vars()['{module}'].__name__)",
    "del {module}; seen.append('{module}' in globals())",
    "seen.append(torchvision.__name__)",
    "seen.append(other is {module})",
    "seen.append(type({module}).__name__)",
    "{module} = None",
    "seen.append([{module} for {module} in (1,)])",
)
_FINDER = (
    "class Finder:",
    "    def find_spec(self, name, path=None, target=None):",
    "        seen.append(name) if name.startswith('torchvision') else None",
)


def program(choices: Choices) -> Program:
    """Return a program that imports a module of torchvision under its own name."""
    module = choices.of(*_MODULES)
    imports = f"torchvision.{module} as {module}"
    if choices.chance(6):
        second = choices.of(*_MODULES)
        imports += f", torchvision.{second} as {second}"
    plain = f"import {imports}"
    line = choices.of(*_COMPANY).format(imports=imports, module=module) if choices.chance(3) else plain
    whole = choices.of(*_LINES).format(line=line, module=module) if choices.chance() else line
    lines = whole.split("\n")
    after = [each.format(module=module) for each in choices.some(_AFTER, 3)]
    before = [choices.of(*_BEFORE).format(module=module)] if choices.chance(4) else []
    site = placed(choices, [*lines, *after])
    head = ["import sys, types", "from contextlib import suppress", "import torch", "n = 2"]
    finder: Lines = [*_FINDER] if "Finder()" in " ".join(before) else []
    return Program(text(head, finder, before, site))


@contextmanager
def modules_as_found(program: str) -> Iterator[None]:
    """Put the modules of torchvision, and what finds modules, back when a program has run."""
    torchvision = load_torchvision()
    names = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torchvision"}
    attributes, finders = dict(vars(torchvision)), list(sys.meta_path)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules.update(names)
        sys.meta_path[:] = finders
        for name in vars(torchvision).keys() - attributes.keys():
            delattr(torchvision, name)
        vars(torchvision).update(attributes)


search = Search("TL809", program, places=(VALUES,), played=modules_as_found, needs="torchvision")
