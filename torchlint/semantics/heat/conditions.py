"""What tests test, and whether a clock runs around a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

_CLOCKS = ("time.", "timeit.", "datetime.", "cProfile.", "torch.profiler.", "torch.utils.benchmark.")
_TELL_NO_TIME = frozenset(f"time.{name}" for name in "strftime localtime gmtime ctime asctime sleep mktime".split())
_READS = frozenset(("elapsed_time", "record", "time", "perf_counter", "monotonic", "time_ns", "tic", "toc", "timeit"))
_MEASURES = re.compile(
    r"(^|_)(timer?s?|timing|timed|timeit|clock|stopwatch|bench\w*|profil\w*|prof|latency|throughput|speed|warm_?up|elapsed|"
    r"measure\w*|fps)(_|$)|Timer|Profiler|Stopwatch|Benchmark|^profile$|^Event$"
)
_CLASS = re.compile(r"Timer|Profiler|Stopwatch|Benchmark")
_ORDERING = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_COUNTED = (Kind.TENSOR, Kind.NUMBER)
_MAX_DEPTH = 3


class Conditions:
    """Takes conditions and their surroundings apart."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._measuring: dict[int, bool] = {}

    def operands(self, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield the expressions whose truth a test asks for, through ``and``, ``or`` and ``not``."""
        if isinstance(test, cst.BooleanOperation):
            yield from self.operands(test.left)
            yield from self.operands(test.right)
        elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            yield from self.operands(test.expression)
        else:
            yield test

    def tested(self, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield the operands of what a statement tests, ``x`` for ``bool(x)``, which adds nothing there."""
        for operand in self.operands(test):
            inner = self._truth_of(operand)
            if inner is None:
                yield operand
            else:
                yield from self.tested(inner)

    def _truth_of(self, operand: cst.BaseExpression) -> cst.BaseExpression | None:
        if not isinstance(operand, cst.Call) or len(operand.args) != 1 or operand.args[0].star:
            return None
        is_bool = self._evaluator.names.qualified(operand.func) == "builtins.bool"
        return operand.args[0].value if is_bool else None

    def is_tested(self, call: cst.Call) -> bool:
        """Return whether a statement tests ``bool(x)``: what it asks for is the truth of ``x``."""
        if self._truth_of(call) is None:
            return False
        for ancestor in self._tree.ancestors(call):
            test = getattr(ancestor, "test", None)
            if test is not None:
                return any(operand is call for operand in self.operands(test))
            if not isinstance(ancestor, (cst.BooleanOperation, cst.UnaryOperation)):
                return False
        return False

    def asked(self, node: cst.BooleanOperation | cst.UnaryOperation) -> list[cst.BaseExpression]:
        """Return the expressions whose truth ``and``, ``or`` and ``not`` ask for where no statement tests the result.

        What ``a and b`` gives is ``b`` itself, whose truth nobody asks for.
        """
        if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
            return []
        parent = self._tree.parent(node)
        if isinstance(parent, cst.BooleanOperation) or getattr(parent, "test", None) is node:
            return []
        if isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not):
            return []
        return list(self.operands(node))[: -1 if isinstance(node, cst.BooleanOperation) else None]

    def may_be_tensor(self, test: cst.Comparison) -> bool:
        """Return whether a test compares a variable that is a tensor on one way there, and a number on others."""
        bindings = self._evaluator.flow.definitions(test.left) if isinstance(test.left, cst.Name) else []
        values = [self._evaluator.value(b.value) for b in bindings if b.value is not None and not b.path]
        compares = all(isinstance(target.operator, _ORDERING) for target in test.comparisons)
        if not compares or len(values) < len(bindings) or not all(v.kind in _COUNTED for v in values):
            return False
        return any(v.is_tensor and v.evidence >= Evidence.INFERRED and v.device is not Device.CPU for v in values)

    def may_be_absent(self, operand: cst.BaseExpression) -> bool:
        """Return whether a term of a loss is tested that an unknown function gives: it may be 0 or None there."""
        if not isinstance(operand, cst.Name) or not self._evaluator.usage.is_loss_term(operand):
            return False
        made = [b.value for b in self._evaluator.flow.definitions(operand) if b.value is not None]
        return any(not self._evaluator.value(value).known for value in made)

    def is_asked_for(self, node: cst.CSTNode, root: cst.CSTNode, words: re.Pattern[str]) -> bool:
        """Return whether an ``if`` around a node, up to ``root``, tests a variable with such a word in its name."""
        for ancestor in self._tree.ancestors(node):
            if ancestor is root:
                return False
            if isinstance(ancestor, cst.If) and not self._tree.within(node, ancestor.test):
                below = self._tree.descendants(ancestor.test)
                names = (identifier(n) for n in below if isinstance(n, (cst.Name, cst.Attribute)))
                if any(words.search(name) for name in names):
                    return True
        return False

    def is_timed(self, node: cst.CSTNode) -> bool:
        """Return whether the function around a node measures time or profiles, or is called where that is done."""
        return self._is_timed(node, 0)

    def _is_timed(self, node: cst.CSTNode, depth: int) -> bool:
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or depth > _MAX_DEPTH:
            return self._measures(self._tree.module)
        if _MEASURES.search(function.name.value):
            return True
        steps = self._steps_around(node, function)
        if steps is not None:  # a clock that runs around all steps needs no synchronisation in each
            reading = filter(self.reads_clock, self._tree.below(steps, cst.Call))
            return not all(map(self._throttles, reading))
        if self._measures(function):
            return True
        callers = self._evaluator.callers(function)
        return any(self._is_timed(call, depth + 1) for call in callers if not self._tree.within(call, function))

    def _steps_around(self, node: cst.CSTNode, function: cst.FunctionDef) -> cst.CSTNode | None:
        """The innermost loop around a node in a function, if it takes training steps."""
        loop = self._tree.enclosing(node, *LOOPS)
        if loop is None or not self._tree.within(loop, function):
            return None
        return loop if any(method_call(c, "backward") for c in self._tree.below(loop, cst.Call)) else None

    def _throttles(self, call: cst.Call) -> bool:
        """Whether a clock only says when something is due again: ``if time() - last > 2: last = time()``."""
        fork = self._tree.enclosing(call, cst.If)
        test = fork.test if isinstance(fork, cst.If) else None
        if fork is None or not isinstance(test, cst.Comparison) or not self._tree.below(test, cst.BinaryOperation):
            return False
        asked = self._tree.below(test, cst.Name)
        bound = (each.target for each in self._tree.below(fork.body, cst.AssignTarget))
        last = [each for each in bound if any(is_same(each, name) for name in asked)]
        frame = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        reads = (name for name in self._tree.below(frame, cst.Name) if any(is_same(name, each) for each in last))
        others = (name for name in reads if not isinstance(self._tree.parent(name), cst.AssignTarget))
        return bool(last) and all(self._tree.within(name, test) for name in others)

    def _measures(self, frame: cst.FunctionDef | cst.Module) -> bool:
        """Whether a function (or the top level of the module) reads a clock, records an event, or runs a profiler."""
        if id(frame) not in self._measuring:
            own = frame if isinstance(frame, cst.FunctionDef) else None
            enclosing = self._evaluator.definitions.enclosing_function
            self._measuring[id(frame)] = any(
                self.reads_clock(call)
                for call in self._tree.nodes(cst.Call)
                if (enclosing(call) is own if own is None else self._tree.within(call, own))
            )
        return self._measuring[id(frame)]

    def reads_clock(self, call: cst.Call) -> bool:
        """Return whether a call reads a clock, records an event, or drives a timer or a profiler."""
        name = self._evaluator.names.qualified(call.func)
        if name in _TELL_NO_TIME:
            return False
        if name is not None:
            return name.startswith(_CLOCKS) or bool(_MEASURES.search(name.rpartition(".")[2]))
        last = identifier(call.func)
        if isinstance(call.func, cst.Attribute):
            of_timer = bool(_MEASURES.search(identifier(call.func.value)))
            return (
                last in _READS
                or bool(_CLASS.search(last))
                or (of_timer and last in ("start", "stop", "step", "begin", "end", "update", "reset"))
            )
        return bool(_MEASURES.search(last))
