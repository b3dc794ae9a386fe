"""Loops that end after a handful of passes, outside of everything that runs on and on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.handfuls import COUNT, is_handful, number
from torchlint.syntax.calls import bind, literal

_ENDS = (cst.Break, cst.Return)
_REACHES = (cst.Equal, cst.GreaterThan, cst.GreaterThanEqual)
_MAX_DEPTH = 3


def runs_once(node: cst.CSTNode, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether no loop of the file goes round a node, but for a handful of passes that are written out."""
    function: cst.FunctionDef | None = None
    child = node
    for ancestor in evaluator.tree.ancestors(node):
        if isinstance(ancestor, LOOPS) and child is ancestor.body and not is_handful(ancestor, evaluator):
            return False
        if isinstance(ancestor, (cst.Lambda, cst.ClassDef)):
            return True
        if isinstance(ancestor, cst.FunctionDef):
            function = ancestor
            break
        child = ancestor
    if function is None or depth == _MAX_DEPTH:
        return True
    return all(runs_once(call, evaluator, depth + 1) for call in evaluator.callers(function))


def stops_early(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop leaves after at most ten passes: ``if i == 3: break``, also by a default of a parameter."""
    for line in loop.body.body:
        if isinstance(line, cst.If) and _leaves_at(line, loop, evaluator):
            return True
        if _may_go_on(line, evaluator):
            return False
    return False


def _may_go_on(line: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a line may go on with the next pass before it is counted."""
    return bool(evaluator.tree.below(line, cst.Continue))


def _leaves_at(line: cst.If, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    last = _last(line.body)
    if not isinstance(last, _ENDS) or not isinstance(line.test, cst.Comparison) or len(line.test.comparisons) != 1:
        return False
    counter, target = line.test.left, line.test.comparisons[0]
    if not isinstance(target.operator, _REACHES):
        return False
    if (
        isinstance(counter, cst.BinaryOperation)
        and isinstance(counter.operator, cst.Add)
        and literal(counter.right) == 1
    ):
        counter = counter.left  # i + 1 == 3
    if not isinstance(counter, cst.Name) or not _counts(counter, loop, evaluator):
        return False
    return all(limit is not None and limit <= COUNT for limit in limits(target.comparator, evaluator))


def _last(block: cst.BaseSuite) -> cst.CSTNode | None:
    line = block.body[-1] if block.body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) and line.body else line


def _counts(counter: cst.Name, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Whether a name counts each pass of a loop: by ``enumerate``, or by ``n += 1`` from nought."""
    bindings = evaluator.flow.definitions(counter)
    return bool(bindings) and all(
        _is_of_enumerate(binding, loop, evaluator)
        if binding.kind is BindingKind.ITERATION
        else _is_counted_up(binding, loop, evaluator)
        for binding in bindings
    )


def _is_of_enumerate(binding: Binding, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    if not isinstance(loop, cst.For) or not evaluator.tree.within(binding.node, loop.target) or binding.path != (0,):
        return False
    names = (evaluator.names.qualified(call.func) for call in _calls(loop.iter))
    return "builtins.enumerate" in names


def _calls(expression: cst.BaseExpression) -> Iterator[cst.Call]:
    """The call itself, and what it wraps: ``tqdm(enumerate(loader))``."""
    while isinstance(expression, cst.Call):
        yield expression
        if not expression.args:
            return
        expression = expression.args[0].value


def _is_counted_up(binding: Binding, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    if binding.kind is BindingKind.ASSIGNMENT:
        return literal(binding.value) in (0, 1) and not evaluator.tree.within(binding.node, loop)
    if binding.kind is not BindingKind.AUGMENTED:
        return False
    added = evaluator.tree.enclosing(binding.node, cst.AugAssign)
    line = evaluator.tree.enclosing(binding.node, cst.SimpleStatementLine)
    if added is None or line is None or not isinstance(added.operator, cst.AddAssign) or literal(added.value) != 1:
        return False
    return any(line is each for each in loop.body.body)


def limits(limit: cst.BaseExpression, evaluator: Evaluator) -> list[int | None]:
    """Return what a limit may be: a number, or the default of a parameter and what the file gives for it."""
    if not isinstance(limit, cst.Name):
        return [number(limit, evaluator)]
    bindings = evaluator.flow.definitions(limit)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
        return [number(limit, evaluator)]
    parameter = evaluator.tree.parent(bindings[0].node)
    function = evaluator.tree.enclosing(bindings[0].node, cst.FunctionDef)
    if not isinstance(parameter, cst.Param) or parameter.default is None or function is None:
        return [None]
    return [number(parameter.default, evaluator), *_given(limit.value, function, evaluator)]


def _given(name: str, function: cst.FunctionDef, evaluator: Evaluator) -> Iterator[int | None]:
    names = [parameter.name.value for parameter in parameters(function)]
    if evaluator.definitions.owner(function) is not None and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    for call in evaluator.callers(function):
        given = bind(call.args, names)
        value = given.get(name)
        if value is not None:
            yield number(value, evaluator)
        elif given.open:
            yield None
