"""Tests that the first passes use up: ``if self.first: self.first = False``, ``if len(seen) < 8: seen.append(x)``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.seen_keys import EPOCH
from torchlint.semantics.heat.state_writes import (
    Effect,
    Write,
    declared_names,
    key_of,
    writes_below,
    writes_of,
)
from torchlint.syntax.calls import element_at, identifier, is_none, literal
from torchlint.syntax.canonical import canonical

_LESS = (cst.LessThan, cst.LessThanEqual)
_MORE = (cst.GreaterThan, cst.GreaterThanEqual)
_EMPTY = (cst.List, cst.Dict, cst.Tuple)
_MAKERS = frozenset("builtins.list builtins.dict builtins.set collections.deque collections.defaultdict".split())
_EXISTS = frozenset(("exists", "isfile", "is_file"))
_UNSET = frozenset((0, -1, "", False))


def is_spent(statement: cst.If, branch: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether a branch, or what follows it, sees to it that the test of an ``if`` leads there no more.

    What is tested outlives the pass: an attribute or its item, a variable that has its value before the loop only.
    """
    body = branch.body if isinstance(branch, cst.Else) else branch
    return _SpentTest(statement.test, [body], statement, evaluator).holds(branch is statement.body)


def is_spent_by_rest(statement: cst.If, rest: Sequence[cst.CSTNode], evaluator: Evaluator) -> bool:
    """Return whether lines behind an early exit see to it that it is taken from then on: ``if self.done: return``."""
    return _SpentTest(statement.test, rest, None, evaluator).holds(False)


def _behind(statement: cst.If, evaluator: Evaluator) -> Iterator[Write]:
    """What the lines behind an ``if`` do that always run after it: in its block, and around ``with`` blocks."""
    for block, line in evaluator.flow.blocks(statement):
        lines = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
        place = next((i for i, one in enumerate(lines) if one is line), len(lines))
        following = lines[place + 1 :]
        small = (each for one in following if isinstance(one, cst.SimpleStatementLine) for each in one.body)
        yield from (write for each in small for write in writes_of(each, evaluator))
        if not isinstance(evaluator.tree.parent(block), cst.With):
            return


class _SpentTest:
    """A test with what is written where it leads."""

    def __init__(
        self, test: cst.BaseExpression, body: Sequence[cst.CSTNode], statement: cst.If | None, evaluator: Evaluator
    ) -> None:
        self._test = test
        self._body = body
        self._statement = statement
        self._evaluator = evaluator

    @cached_property
    def _writes(self) -> list[Write]:
        """What the branch writes: gathered when the test is one that can be used up."""
        return [write for part in self._body for write in writes_below(part, self._evaluator)]

    @cached_property
    def _all(self) -> list[Write]:
        """What the branch writes, and the lines behind the statement."""
        behind = _behind(self._statement, self._evaluator) if self._statement is not None else ()
        return [*self._writes, *behind]

    def holds(self, enters: bool) -> bool:
        """Return whether what is written makes the test another; ``enters``: it leads there where it is true."""
        return any(self._is_spent(part, side) for part, side in _parts(self._test, enters))

    def _is_spent(self, part: cst.BaseExpression, enters: bool) -> bool:
        if isinstance(part, cst.Comparison) and len(part.comparisons) == 1:
            asked = part.comparisons[0]
            return self._is_comparison_spent(part.left, asked.operator, asked.comparator, enters)
        if isinstance(part, cst.Call):
            return not enters and (self._gets_attribute(part) or identifier(part.func) in _EXISTS)
        if not isinstance(part, (cst.Name, cst.Attribute, cst.Subscript)):
            return False
        return self._is_flag_turned(part, enters) or (enters and self._is_counted_down(part))

    def _is_comparison_spent(
        self, left: cst.BaseExpression, operator: cst.BaseCompOp, right: cst.BaseExpression, enters: bool
    ) -> bool:
        known = literal(right)
        if isinstance(operator, (cst.Is, cst.Equal, cst.IsNot, cst.NotEqual)) and isinstance(known, bool):
            is_asked = isinstance(operator, (cst.Is, cst.Equal)) is known
            return self._is_flag_turned(left, enters is is_asked)
        is_equal = isinstance(operator, (cst.Equal, cst.Is) if enters else (cst.NotEqual, cst.IsNot))
        if is_none(right):
            return is_equal and isinstance(left, cst.Attribute) and self._is_set(left)
        if self._is_used_from(left) or self._is_used_from(right):
            return True
        if is_equal and isinstance(right, cst.Attribute) and isinstance(left, cst.Attribute):
            return self._is_member_left(left, right)
        if is_equal and known is not None:
            return self._is_constant_left(left, known) or (known != 0 and self._is_emptied_when_full(left))
        if isinstance(operator, cst.NotEqual if enters else cst.Equal):
            return self._is_noted(left, right) or self._is_noted(right, left)
        if isinstance(operator, _LESS if enters else _MORE):
            return self._is_filled_up(left) or self._is_counted_up(left, known) or self._is_unset(left, known)
        if isinstance(operator, _MORE if enters else _LESS):
            return self._is_filled_up(right) or self._is_counted_down(left)
        return False

    # Flags and states

    def _is_flag_turned(self, flag: cst.BaseExpression, value: bool) -> bool:
        """Whether a flag that has led there by its value gets the other one."""
        if not isinstance(flag, (cst.Name, cst.Attribute, cst.Subscript)):
            return False
        if isinstance(flag, cst.Name) and not self._has_before(flag, value):
            return False
        key = key_of(flag, self._evaluator)
        if not value and any(write.place == key and write.effect is Effect.FILLED for write in self._writes):
            return isinstance(flag, (cst.Name, cst.Attribute))
        is_state = not value and not isinstance(flag, cst.Name)
        is_turned = any(
            write.place == key
            and write.effect is Effect.SET
            and (self._is_turned(flag, write.value, value) or (is_state and self._is_made(write.value)))
            for write in self._all
        )
        if not is_turned:
            return False
        given = self._constants_given_around(key)  # raised again, it is one by which two things take turns
        return not any(known is not None and bool(known) is value for known in given)

    def _is_made(self, made: cst.BaseExpression | None) -> bool:
        """Whether a variable gets something that is there."""
        return made is not None and not is_none(made) and not isinstance(made, _EMPTY) and literal(made) is None

    def _is_turned(self, flag: cst.BaseExpression, made: cst.BaseExpression | None, value: bool) -> bool:
        """Whether a flag gets what it was not: ``False``, ``not flag``."""
        if isinstance(made, cst.UnaryOperation) and isinstance(made.operator, cst.Not):
            return key_of(made.expression, self._evaluator) == key_of(flag, self._evaluator)
        known = literal(made)
        return (value and is_none(made)) or (known is not None and bool(known) is not value)

    def _has_before(self, name: cst.Name, value: bool) -> bool:
        """Whether a variable has a value when a loop begins, and is never given it again in the loop.

        What a function declares as a variable of another scope outlives its calls.
        """
        if self._is_declared(name):
            return True
        loop = self._evaluator.tree.enclosing(name, *LOOPS)
        if loop is None:
            return False
        definitions = self._evaluator.flow.definitions(name)
        within = self._evaluator.tree.within
        before = [self._truth(b.part) for b in definitions if not within(b.node, loop)]
        inside = [b.part for b in definitions if within(b.node, loop)]
        return (
            bool(before)
            and all(each is value for each in before)
            and all(self._is_turned(name, part, value) or (not value and self._is_made(part)) for part in inside)
        )

    def _truth(self, value: cst.BaseExpression | None) -> bool | None:
        """Whether a constant, or a collection that is made empty, is true; None if that is not known."""
        if value is None or is_none(value):
            return None if value is None else False
        if isinstance(value, _EMPTY):
            return bool(value.elements)
        if isinstance(value, cst.Call) and self._evaluator.names.qualified(value.func) in _MAKERS:
            return None if len(value.args) > 1 else False
        known = literal(value)
        return None if known is None else bool(known)

    def _is_declared(self, name: cst.Name) -> bool:
        function = self._evaluator.definitions.enclosing_function(name)
        return function is not None and name.value in declared_names(function, self._evaluator.tree)

    def _is_set(self, place: cst.BaseExpression) -> bool:
        """Whether an attribute gets a value that is not None."""
        key = key_of(place, self._evaluator)
        return any(
            write.place == key and write.effect is Effect.SET and write.value is not None and not is_none(write.value)
            for write in self._all
        )

    def _is_constant_left(self, place: cst.BaseExpression, constant: bool | int | float | str) -> bool:
        """Whether a state that must be a constant becomes another, or a number that is counted passes by it."""
        if isinstance(place, cst.Name) and not self._has_before_constant(place, constant):
            return False
        key = key_of(place, self._evaluator)
        if constant in self._constants_given_around(key):
            return False
        for write in self._all:
            if write.place == key and write.effect is Effect.SET:
                known = literal(write.value)
                is_other = known != constant if known is not None else constant in _UNSET and self._is_made(write.value)
                if is_other or is_none(write.value):
                    return True
        return isinstance(place, cst.Attribute) and self._is_counted_around(key)

    def _constants_given_around(self, key: str) -> list[bool | int | float | str | None]:
        """The constants that the loop around the test, or else its function, gives a variable."""
        tree = self._evaluator.tree
        around = tree.enclosing(self._test, *LOOPS, cst.FunctionDef)
        writes = writes_below(around.body, self._evaluator, 0) if around is not None else ()
        return [literal(w.value) for w in writes if w.place == key and w.effect is Effect.SET]

    def _has_before_constant(self, name: cst.Name, constant: bool | int | float | str) -> bool:
        loop = self._evaluator.tree.enclosing(name, *LOOPS)
        definitions = self._evaluator.flow.definitions(name)
        within = self._evaluator.tree.within
        before = [literal(b.part) for b in definitions if loop is not None and not within(b.node, loop)]
        inside = [literal(b.part) for b in definitions if loop is not None and within(b.node, loop)]
        return bool(before) and all(each == constant for each in before) and constant not in inside

    def _is_counted_around(self, key: str) -> bool:
        """Whether the function around the test counts an attribute, by what stands before it."""
        function = self._evaluator.definitions.enclosing_function(self._test)
        lines = self._evaluator.tree.below(function.body, cst.AugAssign) if function is not None else []
        found = [write for line in lines for write in writes_of(line, self._evaluator)]
        return any(write.place == key and write.effect in (Effect.LOWERED, Effect.RAISED) for write in found)

    def _is_noted(self, place: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether a variable gets what it must differ from: ``if self.last != epoch: self.last = epoch``."""
        if not isinstance(place, cst.Attribute) or not EPOCH.search(identifier(other)):
            return False  # anything else may differ in each pass
        key, text = key_of(place, self._evaluator), canonical(other)
        return any(w.place == key and w.value is not None and canonical(w.value) == text for w in self._all)

    def _is_member_left(self, place: cst.Attribute, member: cst.Attribute) -> bool:
        """Whether a state that must be a member of an enumeration becomes another: ``self.phase = Phase.TRAIN``."""
        key, owner = key_of(place, self._evaluator), canonical(member.value)
        given = (w.value for w in self._all if w.place == key and w.effect is Effect.SET)
        others = (value for value in given if isinstance(value, cst.Attribute) and canonical(value.value) == owner)
        return any(value.attr.value != member.attr.value for value in others)

    def _is_unset(self, place: cst.BaseExpression, limit: object) -> bool:
        """Whether an attribute that its class makes negative gets a value: ``if self.first < 0: self.first = loss``."""
        if limit != 0 or not isinstance(place, cst.Attribute) or not isinstance(place.value, cst.Name):
            return False
        owner = self._evaluator.definitions.receiver(place.value)
        bindings = self._evaluator.definitions.attribute(owner, place.attr.value) if owner is not None else []
        made = [literal(element_at(b.value, b.path)) for b in bindings]
        key = key_of(place, self._evaluator)
        is_given = any(w.place == key and w.effect is Effect.SET and self._is_made(w.value) for w in self._all)
        return is_given and any(isinstance(value, (int, float)) and value < 0 for value in made)

    # Counts

    def _is_used_from(self, item: cst.BaseExpression) -> bool:
        """Whether a branch takes the first item away that it asks for: ``step >= marks[0]``, ``marks.pop(0)``."""
        if not isinstance(item, cst.Subscript):
            return False
        key = key_of(item.value, self._evaluator)
        return any(write.place == key and write.effect is Effect.EMPTIED for write in self._writes)

    def _is_emptied_when_full(self, length: cst.BaseExpression) -> bool:
        """Whether a branch empties what has reached its length, or what holds that: ``if len(log["x"]) == 100``."""
        held = self._measured(length)
        key = key_of(held, self._evaluator) if held is not None else None
        emptied = [write.place for write in self._all if write.effect is Effect.EMPTIED]
        return key is not None and any(key == place or key.startswith(f"{place}[") for place in emptied)

    def _is_counted_up(self, number: cst.BaseExpression, limit: object) -> bool:
        """Whether a branch counts an item of a collection that must be small: ``if seen["x"] < 3: seen["x"] += 1``."""
        if not isinstance(number, cst.Subscript) or not isinstance(limit, int):
            return False
        key = key_of(number, self._evaluator)
        return any(write.place == key and write.effect is Effect.RAISED for write in self._all)

    def _measured(self, length: cst.BaseExpression) -> cst.BaseExpression | None:
        """What ``len`` is asked of."""
        is_length = isinstance(length, cst.Call) and self._evaluator.names.qualified(length.func) == "builtins.len"
        return length.args[0].value if is_length and isinstance(length, cst.Call) and len(length.args) == 1 else None

    def _is_filled_up(self, length: cst.BaseExpression) -> bool:
        """Whether a branch fills the collection of which it wants that it holds but a few things."""
        held = self._measured(length)
        if held is None:
            return False
        key = key_of(held, self._evaluator)
        if not any(write.place == key and write.effect is Effect.FILLED for write in self._writes):
            return False
        return not self._is_emptied(held, key)

    def _is_emptied(self, held: cst.BaseExpression, key: str) -> bool:
        """Whether the loop, or the function without one, takes things out of a collection again, or makes it anew."""
        tree = self._evaluator.tree
        around = tree.enclosing(held, *LOOPS) or tree.enclosing(held, cst.FunctionDef) or tree.module
        told = (write for write in writes_below(around, self._evaluator, 0) if write.place == key)
        return any(write.effect in (Effect.SET, Effect.EMPTIED) for write in told)

    def _is_counted_down(self, number: cst.BaseExpression) -> bool:
        """Whether a branch lowers what it wants to be positive: ``if self.left > 0: self.left -= 1``."""
        if isinstance(number, cst.Name):
            loop = self._evaluator.tree.enclosing(number, *LOOPS)
            bindings = self._evaluator.flow.definitions(number)
            before = [b for b in bindings if loop is not None and not self._evaluator.tree.within(b.node, loop)]
            others = [
                b
                for b in bindings
                if b not in before and not isinstance(self._evaluator.tree.parent(b.node), cst.AugAssign)
            ]
            if not before or others:
                return False
        elif not isinstance(number, (cst.Attribute, cst.Subscript)):
            return False
        key = key_of(number, self._evaluator)
        return any(write.place == key and write.effect is Effect.LOWERED for write in self._all)

    # Things that are missing

    def _gets_attribute(self, asked: cst.Call) -> bool:
        """Whether a branch makes the attribute that is missing: ``if not hasattr(self, "mean"): self.mean = value``."""
        if identifier(asked.func) != "hasattr" or len(asked.args) < 2:
            return False
        name = literal(asked.args[1].value)
        return any(write.place.rpartition(".")[2] == name and "." in write.place for write in self._all)


def _parts(test: cst.BaseExpression, enters: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """Yield what must all hold, or all fail, for a test to lead there."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _parts(test.expression, not enters)
    elif isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And if enters else cst.Or):
        yield from _parts(test.left, enters)
        yield from _parts(test.right, enters)
    else:
        yield test, enters
