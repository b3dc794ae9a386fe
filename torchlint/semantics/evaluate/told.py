"""What a call tells the function that it runs, and what that leaves out then: ``step(batch, train=False)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import JUMPS, LOOPS, last_statement
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.told_modes import trains
from torchlint.syntax.calls import is_none, literal

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_DEPENDING = (cst.If, cst.IfExp, cst.BooleanOperation, cst.With)
_EQUAL = (cst.Equal, cst.Is)
_DIFFERENT = (cst.NotEqual, cst.IsNot)


class Told:
    """Answers what the tests in a function come to for one call of it: by its arguments, defaults and modules."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._visible: dict[tuple[int, int], tuple[cst.CSTNode, bool]] = {}
        self._ends: dict[tuple[int, int], tuple[cst.CSTNode, cst.CSTNode, cst.CSTNode | None]] = {}
        self._left_out: dict[tuple[int, int], tuple[cst.CSTNode, cst.CSTNode, bool]] = {}

    def leaves_out(self, node: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Return whether a node in a function does not run for a call of it."""
        key = id(node), id(call)
        if key not in self._left_out:
            found = self.may_tell(function, call) and self._finds_left_out(node, function, call)
            self._left_out[key] = node, call, found
        return self._left_out[key][2]

    def truth(self, test: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> bool | None:
        """Return whether a test in a function holds for a call of it, None where that is not visible."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            asked = self.truth(test.expression, function, call)
            return None if asked is None else not asked
        if isinstance(test, cst.BooleanOperation):
            decides = isinstance(test.operator, cst.Or)
            sides = [self.truth(side, function, call) for side in (test.left, test.right)]
            if decides in sides:
                return decides
            return None if None in sides else not decides
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            return self._compared(test.left, test.comparisons[0], function, call)
        if isinstance(test, cst.Attribute) and test.attr.value == "training":
            is_visible = self._is_visible(function, call)
            return trains(test.value, function, call, self._evaluator) if is_visible else None
        known = literal(test)
        if known is not None:
            return bool(known)
        given = self._given(test, function, call)
        value = literal(given)
        return False if is_none(given) else None if value is None else bool(value)

    def bindings(self, name: cst.Name, function: cst.FunctionDef, call: cst.Call) -> list[Binding]:
        """Return what may bind a variable of a function where it is read, for a call of it."""
        found = self._evaluator.flow.definitions(name)
        if len(found) < 2 or not self.may_tell(function, call):
            return list(found)
        left = [binding for binding in found if not self.leaves_out(binding.node, function, call)]
        certain = [b for b in left if self._always_runs(b.node, name, function, call)]
        last = max((b.order for b in certain), default=-1)
        return [binding for binding in left if binding.order >= last]

    def chosen(self, value: cst.BaseExpression, function: cst.FunctionDef, call: cst.Call) -> cst.BaseExpression:
        """Return the branch of a conditional expression that is taken for a call, or else the expression as it is."""
        while isinstance(value, cst.IfExp):
            holds = self.truth(value.test, function, call) if self.may_tell(function, call) else None
            if holds is None:
                return value
            value = value.body if holds else value.orelse
        return value

    def _given(self, name: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> cst.BaseExpression | None:
        """What a call gives for the parameter of a function that a name stands for, by default perhaps."""
        if not isinstance(name, cst.Name) or not self._is_visible(function, call):
            return None
        bindings = self._evaluator.flow.definitions(name)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return None
        parameter = next((each for each in parameters(function) if each.name is bindings[0].node), None)
        if parameter is None:
            return None
        given = argument_for(function, parameter, call, self._evaluator.definitions) or parameter.default
        held = self._evaluator.held_by(given) if isinstance(given, cst.Name) and not is_none(given) else []
        return held[0] if len(held) == 1 and held[0] is not None and literal(given) is None else given

    def _compared(
        self, left: cst.BaseExpression, target: cst.ComparisonTarget, function: cst.FunctionDef, call: cst.Call
    ) -> bool | None:
        """What ``mode == "train"``, ``x is not None`` and ``mode in ("val", "test")`` come to for a call."""
        given, operator, asked = self._given(left, function, call), target.operator, target.comparator
        value = literal(given)
        if given is None or (value is None and not is_none(given)):
            return None
        if isinstance(operator, (cst.In, cst.NotIn)):
            elements = asked.elements if isinstance(asked, (cst.Tuple, cst.List, cst.Set)) else ()
            known = [literal(element.value) for element in elements]
            return (value in known) is isinstance(operator, cst.In) if known and None not in known else None
        if literal(asked) is None and not is_none(asked):
            return None
        is_same = value == literal(asked)
        return is_same if isinstance(operator, _EQUAL) else not is_same if isinstance(operator, _DIFFERENT) else None

    def may_tell(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Return whether it is visible what a call gives a function, and that may depend on it by a test or context."""
        depends = any(self._tree.below(function.body, kind) for kind in _DEPENDING)
        return depends and self._is_visible(function, call)

    def _is_visible(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        key = id(function), id(call)
        if key not in self._visible:
            hidden = any(argument.star for argument in call.args) or self._is_given_more(function)
            self._visible[key] = call, not hidden
        return self._visible[key][1]

    def _is_given_more(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator may give a function what its call does not: options of the command line."""
        made = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators)
        named = (self._evaluator.names.qualified(each) or "" for each in made)
        return not all(name.startswith(("torch.", "builtins.")) for name in named)

    def _finds_left_out(self, node: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> bool:
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
                holds = self.truth(ancestor.test, function, call)
                if holds is not None and holds is not (child is ancestor.body):
                    return True
            elif isinstance(ancestor, cst.BooleanOperation) and child is ancestor.right:
                if self.truth(ancestor.left, function, call) is isinstance(ancestor.operator, cst.Or):
                    return True
            elif isinstance(ancestor, cst.IndentedBlock):
                end = self._end(ancestor, function, call)
                if end is not None and self._tree.order(end) < self._tree.order(child):
                    return True
            elif ancestor is function:
                return False
            child = ancestor
        return False

    def _end(self, block: cst.IndentedBlock, function: cst.FunctionDef, call: cst.Call) -> cst.CSTNode | None:
        """The first statement of a block that leaves it, for a call."""
        key = id(block), id(call)
        if key not in self._ends:
            ends = (line for line in block.body if self._leaves(line, function, call))
            self._ends[key] = block, call, next(ends, None)
        return self._ends[key][2]

    def _leaves(self, line: cst.CSTNode | None, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether a statement leaves the block in which it stands: ``if not train: return loss``."""
        if isinstance(line, cst.With):
            return self._leaves(last_statement(line.body), function, call)
        if not isinstance(line, cst.If):
            return isinstance(line, JUMPS)
        holds = self.truth(line.test, function, call)
        taken = [line.body, line.orelse] if holds is None else [line.body if holds else line.orelse]
        blocks = [each.body if isinstance(each, cst.Else) else each for each in taken]
        ends = (last_statement(each) if isinstance(each, cst.IndentedBlock) else each for each in blocks)
        return all(self._leaves(end, function, call) for end in ends)

    def _always_runs(self, node: cst.CSTNode, use: cst.CSTNode, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether a statement before a use runs whenever that does: under no test but such as hold for the call."""
        if self._tree.order(node) > self._tree.order(use):
            return False
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor is function or self._tree.within(use, ancestor):
                return True
            if isinstance(ancestor, (cst.If, cst.IfExp)):
                if self.truth(ancestor.test, function, call) is not (child is ancestor.body):
                    return False
            elif isinstance(ancestor, (*LOOPS, cst.Try, cst.ExceptHandler, cst.Match, cst.BooleanOperation)):
                return False
            child = ancestor
        return False
