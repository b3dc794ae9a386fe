"""What happens in a run only because somebody asks for it, or only after something went wrong."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS, ends_in_jump, last_statement
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.process.testing import tests
from torchlint.syntax.calls import identifier, is_none, literal
from torchlint.syntax.canonical import is_same

_SETTING = re.compile(
    r"(^|_)(is_available|cuda|cudas|gpu|gpus|ngpu|gpu_ids?|num_gpus|device_count|train|training|is_train|do_train|__name__|"
    r"distributed|distributed_launch|is_initialized|ddp|multi_?gpu|rank|world_size)$",
    re.IGNORECASE,
)
"""Names that say where a run happens or that it trains: a test of them asks for nothing in particular."""

_SETTING_VALUES = frozenset(("__main__", "train", "training", "fit", "cuda", "gpu"))
_DEBUGGING = re.compile(
    r"(^|_)(debug\w*|anomal\w*|nans?|diagnos\w*|profil\w*|trace|sanity\w*|grad_?check\w*)(_|$)", re.IGNORECASE
)
# What a name asks for, also one that says where or how a run happens: `debug_ddp`, `deterministic_distributed`.
_ASKING = re.compile(r"debug|anomal|diagnos|profil|sanity|check|determinis|repeat|repro|seed", re.IGNORECASE)
# What only tells of an error.
_TELLS = frozenset("print error exception warning warn info critical log write debug print_exc print_exception".split())
_ERRORS = re.compile(r"(Error|Exception|Exit|Interrupt)$")
# What runs code so that its errors end elsewhere, or nowhere.
_HOLDING_ERRORS = frozenset(
    (
        "contextmanager asynccontextmanager __exit__ __aexit__ assertRaises assertRaisesRegex raises gather "
        "create_task submit Thread Process Pool ThreadPool ThreadPoolExecutor ProcessPoolExecutor retry retrying "
        "tenacity backoff excepthook"
    ).split()
)
_NAN = re.compile(r"\bnan\b", re.IGNORECASE)
_CATCHING = frozenset(("Exception", "BaseException", "ArithmeticError"))


class Choices:
    """Answers whether code is run on request, as part of a test, or with its errors handled."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._functions: dict[int, bool] = {}

    def chosen(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs only if a flag, an argument or a caller asks for it, or after an error.

        Tests of where a run happens (``__name__``, ``cuda.is_available()``) or of whether it trains ask for nothing.
        """
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (cst.If, cst.IfExp)):
                is_open = self._asks_nothing(ancestor.test) or self._fills(ancestor, node)
                if child is not ancestor.test and not is_open:
                    return True
            elif isinstance(ancestor, cst.BooleanOperation):
                if child is ancestor.right and not self._asks_nothing(ancestor.left):
                    return True
            elif isinstance(ancestor, (cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase)):
                return True
            elif isinstance(ancestor, cst.IndentedBlock):
                if self._left_before(ancestor, child):
                    return True
            elif self._defines_aid(ancestor, child):
                return True
            child = ancestor
        return False

    def _asks_nothing(self, test: cst.BaseExpression) -> bool:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._asks_nothing(test.expression)
        if isinstance(test, cst.BooleanOperation):
            return self._asks_nothing(test.left) and self._asks_nothing(test.right)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            other = test.comparisons[0].comparator
            if literal(other) in _SETTING_VALUES:
                return True
            return literal(other) is not None and self._asks_nothing(test.left)
        if isinstance(test, (cst.Integer, cst.Name)) and literal(test) is not None:
            return True
        name = identifier(test.func if isinstance(test, cst.Call) else test)
        return bool(_SETTING.search(name)) and not _ASKING.search(name)

    def _fills(self, branch: cst.If | cst.IfExp, node: cst.CSTNode) -> bool:
        """Whether a node makes what a branch finds missing, as the first run does: ``if net is None: net = make()``."""
        tested, statement = _absent(branch.test), self._tree.enclosing(node, cst.Assign)
        if tested is None or statement is None or not self._tree.within(statement, branch.body):
            return False
        return any(is_same(target.target, tested) for target in statement.targets)

    def _left_before(self, block: cst.IndentedBlock, child: cst.CSTNode) -> bool:
        """Whether an earlier ``if not flag: return`` of the block keeps runs without the flag from coming this far."""
        for statement in block.body:
            if statement is child:
                return False
            if self._leaves_without_flag(statement):
                return True
        return False

    def _leaves_without_flag(self, statement: cst.CSTNode) -> bool:
        if not isinstance(statement, cst.If) or statement.orelse is not None or not ends_in_jump(statement.body):
            return False
        test = statement.test
        if not isinstance(test, cst.UnaryOperation) or not isinstance(test.operator, cst.Not):
            return False
        return isinstance(test.expression, (cst.Name, cst.Attribute)) and not self._asks_nothing(test)

    def _defines_aid(self, definition: cst.CSTNode, child: cst.CSTNode) -> bool:
        if isinstance(definition, cst.FunctionDef):
            return child is definition.body and self._on_request(definition)
        return isinstance(definition, cst.ClassDef) and self._is_aid(definition)

    def _on_request(self, function: cst.FunctionDef) -> bool:
        """Whether every call of a function in the file is chosen; one never called is, if its name says debugging."""
        key = id(function)
        if key not in self._functions:
            self._functions[key] = False  # recursion decides nothing
            definitions = self._evaluator.definitions
            callers = [
                c for c in self._evaluator.callers(function) if definitions.enclosing_function(c) is not function
            ]
            by_name = bool(_DEBUGGING.search(function.name.value))
            self._functions[key] = all(map(self.chosen, callers)) if callers else by_name
        return self._functions[key]

    def is_called_anyway(self, node: cst.CSTNode) -> bool:
        """Return whether the file calls the function around a node where nobody asks for it."""
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or tests(self._evaluator.scopes):
            return False
        calls = [call for call in self._evaluator.callers(function) if not self.chosen(call)]
        if _may_leave(function):  # `if seed is None: return`: only a number certainly asks for what follows
            calls = [call for call in calls if call.args and literal(call.args[0].value) is not None]
        return bool(calls)

    def _is_aid(self, class_def: cst.ClassDef) -> bool:
        """Whether a class is named for debugging, a hook or callback, and the file makes no instance of it."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_def.name.value)
        if not _DEBUGGING.search(words):
            return False
        calls = self._tree.nodes(cst.Call)
        return not any(self._evaluator.definitions.definition(call.func) is class_def for call in calls)

    def in_test(self, node: cst.CSTNode) -> bool:
        """Return whether a node belongs to a test: ``test_*`` functions that nothing calls, methods of test cases."""
        return any(self._is_test(ancestor) for ancestor in self._tree.ancestors(node))

    def _is_test(self, definition: cst.CSTNode) -> bool:
        if isinstance(definition, cst.ClassDef):
            ancestry = self._evaluator.definitions.ancestry(definition)
            return any(name.rpartition(".")[2].endswith("TestCase") for name in ancestry)
        if isinstance(definition, cst.FunctionDef):
            return definition.name.value.startswith("test_") and not self._evaluator.callers(definition)
        return False

    def survives_error(self, node: cst.CSTNode, error: str = "RuntimeError") -> bool:
        """Return whether a ``try`` around a node catches an error and goes on: the error is control flow.

        A ``try`` around a whole run of steps ends the run, and only tells of the error.
        """
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, cst.Try) and child is ancestor.body:
                caught = [handler for handler in ancestor.handlers if self._swallows(handler, error)]
                if caught and not self._ends_the_run(ancestor, caught):
                    return True
            elif isinstance(ancestor, cst.With) and child is ancestor.body:
                if any(self._suppresses(item.item, error) for item in ancestor.items):
                    return True
            elif isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def may_be_skipped(self, node: cst.CSTNode) -> bool:
        """Return whether the function of one step, which holds a node outside loops, is called by what goes on."""
        step = self._tree.enclosing(node, *FUNCTIONS, *LOOPS)
        callers = self._evaluator.callers(step) if isinstance(step, cst.FunctionDef) else []
        return any(map(self.survives_error, callers))

    def _ends_the_run(self, block: cst.Try, caught: list[cst.ExceptHandler]) -> bool:
        """Whether a ``try`` holds the loop over steps, nothing repeats it, and its handlers only tell of the error."""
        if not any(isinstance(n, LOOPS) for n in self._tree.descendants(block.body)):
            return False
        if self._tree.enclosing(block, *LOOPS, *FUNCTIONS).__class__ in LOOPS:
            return False
        return block.orelse is None and all(_only_tells(handler) for handler in caught)

    def may_survive_errors(self, error: str = "RuntimeError") -> bool:
        """Return whether anything in the file may catch an error and go on, wherever the error comes from."""
        handlers: list[cst.ExceptHandler | cst.ExceptStarHandler] = [*self._tree.nodes(cst.ExceptHandler)]
        handlers += self._tree.nodes(cst.ExceptStarHandler)
        if any(self._catches(h.type, error) and not self._raises_at_its_end(h.body) for h in handlers):
            return True
        if any(self._jumps(last.body) for last in self._tree.nodes(cst.Finally)):
            return True
        if any(self._suppresses(call, error) for call in self._tree.nodes(cst.Call)):
            return True
        names = (*self._tree.nodes(cst.Name), *self._tree.nodes(cst.Attribute))
        return any(identifier(name) in _HOLDING_ERRORS for name in names)

    def _raises_at_its_end(self, body: cst.BaseSuite) -> bool:
        return isinstance(last_statement(body), cst.Raise) and not self._jumps(body)

    def _jumps(self, body: cst.BaseSuite) -> bool:
        """Whether something in a block leaves it, or a loop in it, without an error."""
        return any(isinstance(n, (cst.Return, cst.Break, cst.Continue)) for n in self._tree.descendants(body))

    def _swallows(self, handler: cst.ExceptHandler, error: str) -> bool:
        if not self._catches(handler.type, error):
            return False
        if any(map(self._lets_nan_pass, self._tree.below(handler.body, cst.If))):
            return True
        return not any(_raises(node) or self._exits(node) for node in self._tree.descendants(handler.body))

    def _lets_nan_pass(self, fork: cst.If) -> bool:
        """Whether a handler goes on after the error of a NaN: ``if "nan" not in str(error): raise``."""
        test = fork.test if isinstance(fork.test, cst.Comparison) else None
        if test is None or not isinstance(test.left, cst.SimpleString) or not _NAN.search(test.left.value):
            return False
        ends = [_raises(node) or self._exits(node) for node in self._tree.descendants(fork.body)]
        if isinstance(test.comparisons[0].operator, cst.NotIn):
            return any(ends) and fork.orelse is None
        return isinstance(test.comparisons[0].operator, cst.In) and not any(ends)

    def _catches(self, caught: cst.BaseExpression | None, error: str) -> bool:
        if caught is None:
            return True
        if isinstance(caught, cst.Tuple):
            return any(self._catches(element.value, error) for element in caught.elements)
        return identifier(caught) == error or identifier(caught) in _CATCHING

    def _exits(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and self._evaluator.names.qualified(node.func) in (
            "sys.exit",
            "os._exit",
            "builtins.exit",
            "builtins.quit",
        )

    def _suppresses(self, context: cst.BaseExpression, error: str) -> bool:
        if not isinstance(context, cst.Call):
            return False
        name = self._evaluator.names.qualified(context.func)
        return name == "contextlib.suppress" and any(self._catches(argument.value, error) for argument in context.args)


def _may_leave(function: cst.FunctionDef) -> bool:
    """Whether a function returns at once for some values of its arguments."""
    return any(isinstance(line, cst.If) and ends_in_jump(line.body) for line in function.body.body)


def _raises(node: cst.CSTNode) -> bool:
    """Whether a statement raises an error again; what is no error, such as `TrialPruned`, is a result."""
    if not isinstance(node, cst.Raise):
        return False
    raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
    name = identifier(raised) if raised is not None else ""
    return not name[:1].isupper() or _ERRORS.search(name) is not None


def _only_tells(handler: cst.ExceptHandler) -> bool:
    """Whether each statement of a handler logs the error, or hands it to a function."""
    name = handler.name.name if handler.name is not None else None
    for line in handler.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Pass):
            continue
        call = small.value if isinstance(small, cst.Expr) else None
        if not isinstance(call, cst.Call):
            return False
        takes = isinstance(name, cst.Name) and any(is_same(argument.value, name) for argument in call.args)
        if identifier(call.func) not in _TELLS and not takes:
            return False
    return True


def _absent(test: cst.BaseExpression) -> cst.Name | cst.Attribute | None:
    """Return the variable of which a test asks whether there is none yet."""
    found: cst.BaseExpression | None = None
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        found = test.expression
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        comparison = test.comparisons[0]
        found = test.left if isinstance(comparison.operator, cst.Is) and is_none(comparison.comparator) else None
    return found if isinstance(found, (cst.Name, cst.Attribute)) else None
