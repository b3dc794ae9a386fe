"""Loops that evaluate inside a routine that trains: after ``eval()``, or over a loader that is named so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.flow import LOOPS, last_statement
from torchlint.semantics.binding.scopes import COMPREHENSIONS, FUNCTIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_modes import mode_set
from torchlint.semantics.evaluation.fates import Fate, Fates
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered
from torchlint.syntax.statements import is_main_guard
from torchlint.syntax.walk import children

_EVALUATION_LOADER = re.compile(
    r"(^|_)(test|testing|val|valid|validation|eval|evaluation|dev)_?(data_?)?(loader|dl|iter|iterator|batches)s?$",
    re.IGNORECASE,
)
# What goes over a loader for somebody who watches.
_BAR = re.compile(r"tqdm|trange|[Pp]rogress|^(enumerate|iter|track)$|(^|_)p?bar$")
_NUMBERS = ("builtins.float", "builtins.int")
_NAMED = (cst.Name, cst.Attribute, cst.Subscript)


class EvaluationLoops:
    """Tells the parts of a routine apart that train and that evaluate by turns."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._fates = Fates(evaluator)
        self._only_evaluating: dict[int, bool] = {}
        self._over_evaluation_data: dict[int, bool] = {}

    @cached_property
    def _mode_calls(self) -> list[cst.Call]:
        """The calls that put modules into a mode, in document order."""
        return [call for call in self._tree.nodes(cst.Call) if mode_set(call)]

    @property
    def over_evaluation_data(self) -> bool:
        """Whether a loop of the file runs over a loader that is named for evaluation."""
        return any(map(self._is_over_evaluation_data, self._tree.nodes(cst.For)))

    def evaluates(self, call: cst.Call, model: cst.BaseExpression, frame: cst.CSTNode) -> bool:
        """Return whether a call that runs a model stands in a loop that evaluates it."""
        loop = self._loop(call)
        if loop is None:
            return False
        if self._block_after_eval(loop, model) is None and not self._takes_evaluation_data(loop):
            return False
        if id(loop) not in self._only_evaluating:
            self._only_evaluating[id(loop)] = self._only_evaluates(loop, frame)
        return self._only_evaluating[id(loop)]

    def _takes_evaluation_data(self, loop: cst.For) -> bool:
        return self._is_over_evaluation_data(loop) and holds_batch(self._evaluator, loop)

    def _only_evaluates(self, loop: cst.For, frame: cst.CSTNode) -> bool:
        """Whether a loop runs more than once, and nothing of what it computes is differentiated in its routine."""
        if isinstance(last_statement(loop.body), cst.Break):
            return False
        return not self._trains(loop) and not self._is_backpropagated(loop.body, frame)

    def is_set_apart(self, call: cst.Call, model: cst.BaseExpression, frame: cst.CSTNode) -> bool:
        """Return whether a routine that trains evaluates for the moment: ``if step % 100 == 0: model.eval(); ...``.

        Either a condition stands around it, or the training step is over where the model is set to evaluate.
        """
        block = self._block_after_eval(call, model)
        statement = self._evaluator.flow.statement(call)
        if block is None or not (isinstance(statement, cst.Assign) or self._is_read_in_turn(call)):
            return False
        passes = self._backward.passes(block)
        around = self._tree.parent(block)
        if not isinstance(around, cst.If) or is_main_guard(around):
            if not passes or any(self._tree.order(one) > self._tree.order(call) for one in passes):
                return False
        elif passes:
            return False
        if not isinstance(statement, cst.Assign):
            return True
        names = [name for target in statement.targets for name in self._names(target.target)]
        return bool(names) and not any(self._leaves(name, statement, frame) for name in names)

    def _is_read_in_turn(self, call: cst.Call) -> bool:
        """Whether a comprehension makes a call for each of its items, and only reads values of what that gives."""
        around = self._tree.enclosing(call, *COMPREHENSIONS, cst.SimpleStatementLine)
        return isinstance(around, COMPREHENSIONS) and self._fates.of(call) is Fate.VALUES

    def hands_over_evaluated(self, call: cst.Call) -> bool:
        """Return whether a call is given a model that was just set to evaluate: ``net.eval(); score(net, x)``."""
        given = (argument.value for argument in call.args if isinstance(argument.value, (cst.Name, cst.Attribute)))
        return any(self._block_after_eval(call, value) is not None for value in given)

    def _block_after_eval(self, node: cst.CSTNode, model: cst.BaseExpression) -> cst.CSTNode | None:
        """The innermost block that sets a model to evaluate before a call or loop, and not to train again."""
        child = node
        for ancestor in self._tree.ancestors(node) if self._mode_calls else ():
            if isinstance(ancestor, FUNCTIONS) or (isinstance(ancestor, LOOPS) and not self._repeats(ancestor)):
                return None
            if isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
                mode = next(self._modes(ancestor, child, model), None)
                if mode is not None:
                    return ancestor if mode == "eval" else None
            child = ancestor
        return None

    def _repeats(self, loop: cst.CSTNode) -> bool:
        """Whether a loop only evaluates again and again, on another set of data each time."""
        if not isinstance(loop, cst.For) or self._trains(loop):
            return False
        named = (node for part in (loop.iter, loop.target) for node in (part, *self._tree.descendants(part)))
        return any(_EVALUATION_LOADER.search(_name(node)) for node in named if isinstance(node, _NAMED))

    def _leaves(self, name: cst.Name, statement: cst.Assign, frame: cst.CSTNode) -> bool:
        """Whether a variable that a statement binds is returned, or flows into a backward pass."""
        returns = self._tree.below(frame, cst.Return) if isinstance(frame, cst.FunctionDef) else []
        if any(self._hands_out(node.value, name.value) for node in returns if node.value is not None):
            return True
        if self._is_backpropagated(statement, frame):
            return True
        others = (b.node for b in self._evaluator.scopes.bindings(name) if not self._tree.within(b.node, statement))
        return next(others, None) is None and self._backward.reaches(name, frame)

    def _hands_out(self, value: cst.CSTNode, name: str) -> bool:
        """Whether an expression holds a variable as it is, and not a number that is read from it."""
        if isinstance(value, cst.Call) and self._evaluator.names.qualified(value.func) in _NUMBERS:
            return False
        if method_call(value, "item", "tolist", "detach") is not None:
            return False
        if isinstance(value, cst.Name):
            return value.value == name
        return any(self._hands_out(child, name) for child in children(value))

    def _loop(self, call: cst.Call) -> cst.For | None:
        """The innermost loop around a call in its function."""
        found = self._tree.enclosing(call, cst.For, *FUNCTIONS)
        return found if isinstance(found, cst.For) else None

    @remembered
    def _trains(self, loop: cst.For) -> bool:
        """Whether a loop computes gradients or takes steps, itself or in a function of the file."""
        if self._backward.passes(loop):
            return True
        below = [node for node in self._tree.descendants(loop) if isinstance(node, cst.Call)]
        if any(self._prepares_step(call) or self._is_left_to_other(call) for call in below):
            return True
        inside = {id(call) for call in below}
        trainers = (self._evaluator.definitions.enclosing_function(p) for p in self._backward.passes())
        calls = ((call, f) for f in trainers if f is not None for call in self._evaluator.callers(f))
        return any(id(call) in inside and not self._backward.leaves_passes_out(call, f) for call, f in calls)

    def _prepares_step(self, call: cst.Call) -> bool:
        method = method_call(call, "zero_grad", "step", "train")
        if method is None or method.attr.value != "step":
            return method is not None
        return self._evaluator.value(method.value).kind in (Kind.OPTIMIZER, Kind.SCALER)

    def leaves_step_to_other(self, call: cst.Call) -> bool:
        """Return whether the loop around a call hands a loss and the optimizer to a function of another file."""
        loop = self._loop(call)
        return loop is not None and self._hands_step_over(loop)

    @remembered
    def _hands_step_over(self, loop: cst.For) -> bool:
        return any(map(self._is_left_to_other, self._tree.below(loop.body, cst.Call)))

    def _is_left_to_other(self, call: cst.Call) -> bool:
        """Whether a function of another file is given a tensor and the optimizer: ``update(optimizer, loss)``."""
        if self._evaluator.definitions.definition(call.func) is not None:
            return False
        given = [self._evaluator.value(argument.value) for argument in call.args]
        return any(v.kind is Kind.OPTIMIZER for v in given) and any(v.is_tensor for v in given)

    def _is_backpropagated(self, part: cst.CSTNode, frame: cst.CSTNode) -> bool:
        """Whether a backward pass of the routine starts from something that a part of it binds."""
        inside = {id(node) for node in self._tree.descendants(part)}
        waiting = [name for call in self._backward.passes(frame) for name in self._names(call)]
        seen: set[int] = set()
        while waiting:
            for binding in self._evaluator.flow.definitions(waiting.pop()):
                if id(binding.node) in inside:
                    return True
                if id(binding.node) in seen:
                    continue
                seen.add(id(binding.node))
                waiting += self._names(binding.value) if binding.value is not None else []
                if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.Name):
                    waiting.append(binding.node)
        return False

    def _names(self, expression: cst.CSTNode) -> list[cst.Name]:
        return [node for node in (expression, *self._tree.descendants(expression)) if isinstance(node, cst.Name)]

    def _is_over_evaluation_data(self, loop: cst.For) -> bool:
        if id(loop) not in self._over_evaluation_data:
            nodes = [node for node in (loop.iter, *self._tree.descendants(loop.iter)) if isinstance(node, _NAMED)]
            names = (node for node in nodes if isinstance(node, cst.Name))
            bars = [binding.value for name in names for binding in self._evaluator.flow.definitions(name)]
            shown = [
                b.args[0].value for b in bars if isinstance(b, cst.Call) and b.args and _BAR.search(identifier(b.func))
            ]
            nodes += [name for each in shown for name in self._names(each)]
            self._over_evaluation_data[id(loop)] = any(_EVALUATION_LOADER.search(_name(node)) for node in nodes)
        return self._over_evaluation_data[id(loop)]

    def _modes(self, block: cst.CSTNode, before: cst.CSTNode, model: cst.BaseExpression) -> Iterator[str]:
        """The modes into which a block puts a model before a statement of it, the last first."""
        place, enclosing = self._tree.order(before), self._evaluator.definitions.enclosing_function
        for call in reversed(self._mode_calls):
            if self._tree.order(call) < place and isinstance(call.func, cst.Attribute):
                is_here = self._tree.within(call, block) and enclosing(call) is enclosing(before)
                if is_here and self._is_set(model, call.func.value):
                    yield mode_set(call)

    def _is_set(self, model: cst.BaseExpression, module: cst.BaseExpression) -> bool:
        """Whether the mode of a module is that of a model: of itself, a part of it, or what a method of it runs."""
        if is_same(module, model):
            return True
        while isinstance(model, cst.Attribute) and self._evaluator.value(module).kind is Kind.MODULE:
            model = model.value
            if is_same(module, model):
                return True
        return False


def holds_batch(evaluator: Evaluator, loop: cst.For) -> bool:
    """Return whether each pass of a loop is given a batch."""
    found = evaluator.iterated(loop)
    return any(value.kind is Kind.BATCH for value in (found, *(found.elements or ())))


def _name(node: cst.Name | cst.Attribute | cst.Subscript) -> str:
    """Return what a variable or attribute is called, ``val_loaders`` for ``loaders["val"]``."""
    if not isinstance(node, cst.Subscript):
        return identifier(node)
    index = node.slice[0].slice if len(node.slice) == 1 else None
    key = literal(index.value) if isinstance(index, cst.Index) else None
    return f"{key}_{identifier(node)}" if isinstance(key, str) else ""
