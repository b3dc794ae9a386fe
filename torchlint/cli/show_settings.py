"""What ``--show-settings`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from torchlint.report.data import plural
from torchlint.report.styled import Line

if TYPE_CHECKING:
    from torchlint.engine.plan import Plan, Planned

_NOT_SETTINGS = ("root", "origin")


def settings_lines(planned: Planned) -> Iterator[Line]:
    """Yield, for each group of files with the same settings, what holds for them and where it comes from."""
    for index, plan in enumerate(planned.plans):
        count = sum(task.plan == index for task in planned.tasks)
        first = next((task.path for task in planned.tasks if task.plan == index), "")
        yield [(f"# {plural(count, 'file')}, the first is {first}", "dim")]
        yield from _plan_lines(plan)
        yield []


def _plan_lines(plan: Plan) -> Iterator[Line]:
    yield [(f"# settings from {plan.settings.origin or 'the command line and the defaults'}", "dim")]
    yield [(f"# target torch {plan.target}: {plan.target.origin}", "dim")]
    yield [(f"# enabled rules: {', '.join(sorted(plan.codes)) or 'none'}", "dim")]
    for setting in fields(plan.settings):
        if setting.name not in _NOT_SETTINGS:
            value = getattr(plan.settings, setting.name)
            name = setting.name.replace("_", "-")
            unset = value is None
            yield [
                ("# " if unset else "", "dim"),
                (name, "strong"),
                (" = ", ""),
                ("default" if unset else _toml(value), ""),
            ]


def _toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Enum):
        return json.dumps(value.value)
    return json.dumps(value)
