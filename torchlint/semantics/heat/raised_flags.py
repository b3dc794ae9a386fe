"""What attributes that are flags are set to: ``self.collecting = step % 200 == 0``, asked for in another method."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import element_at, is_none, literal
from torchlint.syntax.canonical import is_same


class Raised(NamedTuple):
    """A test on which a flag is what is asked for."""

    test: cst.BaseExpression
    holds: bool


class _Setting(NamedTuple):
    """What an attribute is set to, None for what is counted up or comes out of a call."""

    attribute: cst.Attribute
    value: cst.BaseExpression | None


class RaisedFlags:
    """Finds what decides the value of an attribute."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def reasons(self, flag: cst.Attribute, value: bool) -> list[Raised]:
        """Return all tests that make a flag true (or false) wherever the file sets it; none if some are not known."""
        found: list[Raised] = []
        for setting in self._settings.get(flag.attr.value, ()):
            if self._is_of_other_class(flag, setting.attribute):
                continue
            if setting.value is None:
                return []
            known = literal(setting.value)
            if known is not None and bool(known) is not value:
                continue
            reason = Raised(setting.value, value) if known is None else self._chooses(setting.attribute)
            if reason is None:
                return []
            found.append(reason)
        return found

    def filled(self, flag: cst.Attribute) -> list[cst.CSTNode]:
        """Return where a collection gets what makes it true, of which all else that is assigned is empty.

        None where something else may fill it: what is appended to it, or comes from a parameter.
        """
        settings = [
            s for s in self._settings.get(flag.attr.value, ()) if not self._is_of_other_class(flag, s.attribute)
        ]
        values = [setting.value for setting in settings if not _is_empty(setting.value)]
        made = all(isinstance(value, (*COMPREHENSIONS, cst.List, cst.Dict)) for value in values)
        is_emptied = len(values) < len(settings)
        is_grown = bool(self._evaluator.usage.appended(flag) or self._evaluator.usage.stored(flag))
        return [value for value in values if value is not None] if made and is_emptied and not is_grown else []

    @cached_property
    def _settings(self) -> dict[str, list[_Setting]]:
        """All that attributes are set to, by their names."""
        found: dict[str, list[_Setting]] = {}
        for setting in self._find_settings():
            found.setdefault(setting.attribute.attr.value, []).append(setting)
        return found

    def _find_settings(self) -> Iterator[_Setting]:
        for statement in self._tree.nodes(cst.Assign):
            for target in statement.targets:
                yield from _settings_of(target.target, statement.value)
        for stated in self._tree.nodes(cst.AnnAssign):
            yield from _settings_of(stated.target, stated.value) if stated.value is not None else ()
        for counted in self._tree.nodes(cst.AugAssign):
            yield from _settings_of(counted.target, None)

    def _is_of_other_class(self, flag: cst.Attribute, other: cst.Attribute) -> bool:
        """Whether both are attributes of ``self`` in classes that have nothing to do with each other."""
        mine, its = self._owner(flag), self._owner(other)
        if mine is None or its is None or mine is its:
            return False
        family = self._evaluator.definitions.family
        return its not in family(mine) and mine not in family(its)

    def _owner(self, attribute: cst.Attribute) -> cst.ClassDef | None:
        of = attribute.value
        return self._evaluator.definitions.receiver(of) if isinstance(of, cst.Name) else None

    def _chooses(self, flag: cst.Attribute) -> Raised | None:
        """The test of ``if step % k == 0: self.on = True``, if its ``else`` sets the same to something else."""
        branch = self._tree.enclosing(flag, cst.If, cst.Else, cst.FunctionDef)
        chosen = self._tree.parent(branch) if isinstance(branch, cst.Else) else branch
        if not isinstance(chosen, cst.If) or not isinstance(chosen.orelse, cst.Else):
            return None
        other = chosen.body if isinstance(branch, cst.Else) else chosen.orelse.body
        set_there = self._tree.below(other, cst.AssignTarget)
        is_set = any(is_same(one.target, flag) for one in set_there)
        return Raised(chosen.test, chosen is branch) if is_set else None


def _is_empty(value: cst.BaseExpression | None) -> bool:
    return is_none(value) or (isinstance(value, (cst.List, cst.Tuple, cst.Dict)) and not value.elements)


def _settings_of(target: cst.BaseExpression, value: cst.BaseExpression | None) -> Iterator[_Setting]:
    if isinstance(target, cst.Attribute):
        yield _Setting(target, value)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for place, element in enumerate(target.elements):
            yield from _settings_of(element.value, element_at(value, (place,)))
