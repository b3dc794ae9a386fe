"""Loops that change the parameters of a module, or their gradients, one tensor after the other."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal, method_call

_LISTS = ("parameters", "named_parameters")
_CLAMPS = frozenset(("clamp_", "clip_", "clamp_min_", "clamp_max_"))
_WRITES = frozenset(("copy_", "add_", "sub_", "mul_", "div_", "lerp_", "addcmul_", "addcdiv_"))


class Work(Enum):
    """What a loop over parameters does."""

    AVERAGE = "average"
    CLIP_GRADIENTS = "clip gradients"
    CLAMP = "clamp"
    UPDATE = "update"


class ParameterLoop(NamedTuple):
    """A loop over the parameters of one or two modules."""

    work: Work
    target: cst.BaseExpression
    """What is changed: an expression that gives the parameters."""

    source: cst.BaseExpression | None = None
    """What is averaged in."""

    arguments: tuple[cst.Arg, ...] = ()
    """The bounds of a clamp."""


class ParameterLoops:
    """Recognises the loops."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def find(self, loop: cst.For) -> ParameterLoop | None:
        """Return what a loop does to parameters, if it does nothing else."""
        statement = self._only_statement(loop.body)
        if statement is None or loop.orelse is not None:
            return None
        if isinstance(loop.iter, cst.Call) and self._evaluator.names.qualified(loop.iter.func) == "builtins.zip":
            return self._pair(loop, loop.iter, statement)
        if method_call(loop.iter, *_LISTS) is None:
            return None
        name = _variables(loop.target, 1)[-1:]
        return self._single(loop.iter, name[0], statement) if name else None

    def _only_statement(self, block: cst.BaseSuite) -> cst.BaseSmallStatement | None:
        """The one statement of a body, which may be behind a test that there is a gradient."""
        if not isinstance(block, cst.IndentedBlock) or len(block.body) != 1:
            return None
        line = block.body[0]
        if isinstance(line, cst.If) and line.orelse is None and _asks_for_gradient(line.test):
            return self._only_statement(line.body)
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            return line.body[0]
        return None

    def _pair(self, loop: cst.For, pairs: cst.Call, statement: cst.BaseSmallStatement) -> ParameterLoop | None:
        lists = [argument.value for argument in pairs.args if argument.keyword is None and not argument.star]
        names = _variables(loop.target, 2)
        if len(lists) != 2 or len(names) != 2 or any(method_call(one, *_LISTS) is None for one in lists):
            return None
        written = _written(statement)
        if written not in names or not self._mentions(statement, set(names)):
            return None
        place = names.index(written)
        return ParameterLoop(Work.AVERAGE, lists[place], lists[1 - place])

    def _single(
        self, parameters: cst.BaseExpression, name: str, statement: cst.BaseSmallStatement
    ) -> ParameterLoop | None:
        call = statement.value if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call) else None
        clamp = method_call(call, *_CLAMPS)
        if (
            call is not None
            and clamp is not None
            and all(literal(a.value) is not None or _is_bound(a.value) for a in call.args)
        ):
            owner = _without_data(clamp.value)
            if isinstance(owner, cst.Attribute) and owner.attr.value == "grad" and identifier(owner.value) == name:
                return ParameterLoop(Work.CLIP_GRADIENTS, parameters, arguments=tuple(call.args))
            if isinstance(owner, cst.Name) and owner.value == name:
                return ParameterLoop(Work.CLAMP, parameters, arguments=tuple(call.args))
        if _written(statement) == name and self._mentions_gradient(statement, name):
            return ParameterLoop(Work.UPDATE, parameters)
        return None

    def _mentions(self, statement: cst.CSTNode, names: set[str]) -> bool:
        """Whether a statement reads all of these variables, and calls nothing but methods of tensors."""
        nodes = list(self._tree.descendants(statement))
        called = [node for node in nodes if isinstance(node, cst.Call) and method_call(node) is None]
        return not called and names <= {node.value for node in nodes if isinstance(node, cst.Name)}

    def _mentions_gradient(self, statement: cst.CSTNode, name: str) -> bool:
        found = (node for node in self._tree.descendants(statement) if isinstance(node, cst.Attribute))
        return any(node.attr.value == "grad" and identifier(node.value) == name for node in found)


def _variables(target: cst.BaseExpression, count: int) -> list[str]:
    """Return the names of the tensors that a loop binds: ``p``, ``name, p``, ``p, q``, ``(name, p), (other, q)``."""
    if isinstance(target, cst.Name):
        return [target.value]
    if not isinstance(target, cst.Tuple):
        return []
    elements = [element.value for element in target.elements]
    if count == 1:
        return [e.value for e in elements[-1:] if isinstance(e, cst.Name)]
    return [name for element in elements for name in _variables(element, 1)]


def _written(statement: cst.BaseSmallStatement) -> str | None:
    """Return the variable whose tensor a statement changes in place, or gives other ``data``."""
    if isinstance(statement, cst.AugAssign):
        return _owner(statement.target)
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        is_data = isinstance(target, cst.Attribute) and target.attr.value == "data"
        return _owner(target) if is_data else None
    if not isinstance(statement, cst.Expr):
        return None
    method = method_call(statement.value, *_WRITES)
    while method is not None:
        inner = method_call(method.value, *_WRITES)
        if inner is None:
            return _owner(method.value)
        method = inner
    return None


def _owner(expression: cst.BaseExpression) -> str | None:
    owner = _without_data(expression)
    return owner.value if isinstance(owner, cst.Name) else None


def _without_data(expression: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(expression, cst.Attribute) and expression.attr.value == "data":
        expression = expression.value
    return expression


def _is_bound(expression: cst.BaseExpression) -> bool:
    return isinstance(expression, (cst.Name, cst.Attribute, cst.UnaryOperation))


def _asks_for_gradient(test: cst.BaseExpression) -> bool:
    """Return whether a test asks whether a parameter is trained, or has a gradient."""
    asked = test.left if isinstance(test, cst.Comparison) else test
    return identifier(asked) in ("grad", "requires_grad")
