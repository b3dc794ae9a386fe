"""The names that a layer is registered by, and the names of its parameters that the file writes as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier
from torchlint.syntax.constants import value_of

_HOLE = "\0"
"""Stands for what a text does not show: the braces of an f-string, ``%s``."""

_NUMBER = "#"
"""Stands for the number of a layer in a list."""

_NAMES = re.compile(r"(?:[\w\0]+\.)+[\w\0]+")
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{[^{}]*\}")
_ADDERS = ("add_module", "register_module", "setattr")
_APPENDERS = ("append", "insert")
_PLACES = ("torch.nn.Sequential", "torch.nn.ModuleList")
_DEPTH = 3


class WrittenNames:
    """Names are patterns: a hole in them is whatever makes two of them the same."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._owners: dict[str, frozenset[str]] = {}

    def of(self, layer: cst.BaseExpression, depth: int = _DEPTH) -> frozenset[str]:
        """Return the names by which the module around a new layer knows it: attribute, key, or number."""
        holder = self._tree.parent(layer)
        if isinstance(holder, (cst.Assign, cst.AnnAssign)):
            targets = [t.target for t in holder.targets] if isinstance(holder, cst.Assign) else [holder.target]
            return frozenset(name for target in targets for name in self._of_target(target, layer, depth))
        if isinstance(holder, cst.Return) and depth:
            function = self._evaluator.definitions.enclosing_function(holder)
            calls = self._evaluator.callers(function) if function is not None else ()
            return frozenset(name for made in calls for name in self.of(made, depth - 1))
        if isinstance(holder, cst.DictElement):
            return self._single(text(holder.key))
        if isinstance(holder, cst.Arg):
            return self._of_argument(holder, layer)
        group = self._tree.parent(holder) if isinstance(holder, cst.Element) else None
        if isinstance(group, cst.Tuple) and group.elements[0] is not holder and len(group.elements) == 2:
            return self._single(text(group.elements[0].value))
        return frozenset((_NUMBER,)) if isinstance(group, cst.List) else frozenset()

    def _of_target(self, target: cst.BaseExpression, layer: cst.BaseExpression, depth: int) -> Iterator[str]:
        if isinstance(target, cst.Attribute):
            yield target.attr.value
        elif isinstance(target, cst.Subscript):
            yield from self._single(text(_key(target)))
        elif isinstance(target, cst.Name) and depth:
            for use in self._tree.named(target.value):
                if any(binding.value is layer for binding in self._evaluator.flow.definitions(use)):
                    yield from self.of(use, depth - 1)

    def _of_argument(self, argument: cst.Arg, layer: cst.BaseExpression) -> frozenset[str]:
        call = self._tree.parent(argument)
        if argument.keyword is not None or not isinstance(call, cst.Call):
            return frozenset((argument.keyword.value,)) if argument.keyword is not None else frozenset()
        if identifier(call.func) in _ADDERS and len(call.args) > 1:
            return self._single(text(call.args[-2].value))
        if identifier(call.func) in _APPENDERS:
            return frozenset((_NUMBER,))
        if self._evaluator.names.qualified(call.func) in _PLACES and not any(each.star for each in call.args):
            return frozenset((str(next(i for i, each in enumerate(call.args) if each.value is layer)),))
        return frozenset((_HOLE,))

    def _single(self, name: str | None) -> frozenset[str]:
        return frozenset((name if name is not None else _HOLE,))

    def may_be(self, name: str, expression: cst.BaseExpression) -> bool:
        """Return whether an expression can give the name of a layer, or a path that ends in it."""
        written = text(expression)
        return written is None or is_same_name(name, written.rpartition(".")[2])

    def writes(self, layer: cst.Call, parameter: str) -> bool:
        """Return whether the file writes the name that a parameter of a layer has in a ``state_dict``."""
        owners = self._written_owners(parameter)
        return bool(owners) and any(is_same_name(name, owner) for name in self.of(layer) for owner in owners)

    def _written_owners(self, parameter: str) -> frozenset[str]:
        if parameter not in self._owners:
            self._owners[parameter] = frozenset(self._find_owners(parameter))
        return self._owners[parameter]

    def _find_owners(self, parameter: str) -> Iterator[str]:
        """The last names of the modules whose parameter a text names: of ``"stem.conv.bias"`` it is ``conv``."""
        for node in (*self._tree.nodes(cst.SimpleString), *self._tree.nodes(cst.FormattedString)):
            written, parent = text(node), self._tree.parent(node)
            if written is None or "." not in written:
                continue
            if (
                isinstance(parent, cst.BinaryOperation)
                and isinstance(parent.operator, cst.Add)
                and parent.right is node
            ):
                written = _HOLE + written
            owner, last = written.split(".")[-2:]
            is_any = last == _HOLE and _HOLE not in owner
            if (last == parameter or is_any) and _NAMES.fullmatch(written):
                yield owner


def text(node: cst.BaseExpression | None) -> str | None:
    """Return a text with holes for what it does not show, None for anything but a string."""
    if isinstance(node, cst.SimpleString):
        value = value_of(node)
        return _PLACEHOLDER.sub(_HOLE, value) if isinstance(value, str) else None
    if isinstance(node, cst.FormattedString):
        shown = (part.value if isinstance(part, cst.FormattedStringText) else _HOLE for part in node.parts)
        return "".join(shown)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Modulo)):
        left, right = text(node.left), text(node.right)
        if isinstance(node.operator, cst.Modulo) or left is right is None:
            return left
        return (left if left is not None else _HOLE) + (right if right is not None else _HOLE)
    return None


def is_same_name(first: str, second: str) -> bool:
    """Return whether two names can be the same, whatever stands in their holes."""
    if _NUMBER in (first, second):
        other = second if first == _NUMBER else first
        return not other.strip(_HOLE + _NUMBER + "0123456789")
    if _HOLE not in first + second:
        return first == second
    starts = (first.partition(_HOLE)[0], second.partition(_HOLE)[0])
    ends = (first.rpartition(_HOLE)[2], second.rpartition(_HOLE)[2])
    if _HOLE not in first or _HOLE not in second:
        plain, pattern = (first, 1) if _HOLE not in first else (second, 0)
        return plain.startswith(starts[pattern]) and plain.endswith(ends[pattern])
    begin = starts[0].startswith(starts[1]) or starts[1].startswith(starts[0])
    return begin and (ends[0].endswith(ends[1]) or ends[1].endswith(ends[0]))


def _key(subscript: cst.Subscript) -> cst.BaseExpression | None:
    index = subscript.slice[0].slice
    return index.value if isinstance(index, cst.Index) else None
