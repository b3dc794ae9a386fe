"""Conditions under which code does not run on every step."""

from __future__ import annotations

import re
from enum import Enum

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS, last_statement
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.alarms import is_alarm, only_tells
from torchlint.semantics.heat.classified import Classified
from torchlint.semantics.heat.counters import counts_passes, is_counter
from torchlint.semantics.heat.device_tests import leaves_host
from torchlint.semantics.heat.early_exits import Exits, exits_of, goes_on
from torchlint.semantics.heat.early_stops import limits
from torchlint.semantics.heat.either_way import counts_either_way
from torchlint.semantics.heat.external_tests import asks_for_option, is_time, is_timed, is_told_of_error, lets_through
from torchlint.semantics.heat.interval_defaults import divides_all
from torchlint.semantics.heat.iteration_tests import is_chance, is_one_of_the_first, is_one_of_the_last, picks_pass
from torchlint.semantics.heat.known_tests import stands_for
from torchlint.semantics.heat.option_defaults import OptionDefaults
from torchlint.semantics.heat.periodic import counts_on
from torchlint.semantics.heat.raised_flags import RaisedFlags
from torchlint.semantics.heat.seen_keys import is_new_key
from torchlint.semantics.heat.sizes import is_of_batch
from torchlint.semantics.heat.spent_tests import is_spent
from torchlint.semantics.heat.switched_on import is_on
from torchlint.syntax.calls import identifier, is_none, literal
from torchlint.syntax.canonical import canonical


class Guard(Enum):
    """Why a branch is not taken on every step."""

    PERIODIC = "only every few steps"
    FLAG = "only with a flag that is off by default, for looking into a run"
    OPTION = "only with an option that is off by default"
    HOST = "only for tensors in host memory"


_OCCASIONAL = re.compile(
    r"(^|_)(debug(_[a-z]\w*)?|verbose|verbosity|(verbose|verbosity|debug|log)_level|noisy|show(_(?!progress)\w*)?|"
    r"dry_?run|profil\w*|trace|tracing|vis|visuali[sz]\w*|plot\w*|display\w*|"
    r"should_(?!(cache|mask|normali[sz]e|scale|use)(_|$))\w+|is_log\w*|do_log|log_now|"
    r"print_\w*|logging|to_log|every|is_last\w*|last_(batch|step|iter)|is_time|due|save_\w+|do_save|sanity\w*|"
    r"check_\w*|assert_\w*|paranoid|diagnos\w*|inspect\w*|monitor\w*|watch_\w*|(record|collect|dump|print)_stats|"
    r"validate_(inputs?|args)|test_mode|detect_\w*|tb_log|log_\w+|is_in_onnx_export|isEnabledFor)$",
    re.IGNORECASE,
)
# What keeps the numbers of a whole run, of each step unless the code says otherwise.
_TRACKER = re.compile(r"tensor_?board|wandb|mlflow|comet|neptune|clearml", re.IGNORECASE)
# Options that say whether there is a GPU: what runs only with one runs on every step there.
_CHOOSES_DEVICE = re.compile(r"^((use|with|has|have|is|on|enable)_?)?(cuda|gpu)$", re.IGNORECASE)
# Tests of numbers for being broken: a branch on them is an exception, or takes part in every step otherwise.
_BROKEN = frozenset(("isnan", "isinf"))
_SOUND = frozenset(("isfinite",))
_ENDS = frozenset(("sys.exit", "builtins.exit", "builtins.quit", "os._exit"))
_NUMBERS = ("math.", "numpy.", "builtins.")
_MAX_DEPTH = 6
_GUARDING: frozenset[type] = frozenset(
    (
        cst.If,
        cst.IfExp,
        cst.BooleanOperation,
        cst.IndentedBlock,
        cst.Module,
        cst.MatchCase,
        cst.ExceptHandler,
        cst.Raise,
        cst.Assert,
    )
)
NO_OPTION = frozenset((Guard.OPTION,))
NO_FLAG = frozenset((Guard.OPTION, Guard.FLAG))
_RAREST = (Guard.PERIODIC, Guard.HOST, Guard.FLAG, Guard.OPTION)


class Guards:
    """Classifies the tests of ``if`` statements."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self.defaults = OptionDefaults(evaluator)
        self.flags = RaisedFlags(evaluator)
        self._exits: dict[int, Exits] = {}
        self._raised: dict[tuple[int, bool], bool] = {}
        self._spent: dict[tuple[int, bool], bool] = {}
        self._classified: Classified[Guard] = Classified()

    def guard(
        self, node: cst.CSTNode, root: cst.CSTNode, besides: frozenset[Guard] = frozenset(), test: cst.If | None = None
    ) -> Guard | None:
        """Return the first reason for which a node does not run whenever ``root`` (a loop or function) does.

        Reasons ``besides`` do not count, nor does the test of one statement.
        """
        child = node
        leaves_root = isinstance(root, LOOPS)  # no inner loop, which `break` would leave, has been passed
        for ancestor in self._tree.ancestors(node):
            if ancestor is root:
                return None
            found = self._around(ancestor, child, root, besides, test) if ancestor is not test else None
            if found in NO_FLAG and counts_either_way(node, ancestor, child, self._tree):
                found = None
            if found is not None and found not in besides and not picks_pass(ancestor, child, root, self._evaluator):
                return found
            if type(ancestor) is cst.If and child is ancestor.body and self._is_exceptional(ancestor, leaves_root):
                return Guard.PERIODIC
            leaves_root = leaves_root and type(ancestor) not in LOOPS
            child = ancestor
        return None

    def _is_exceptional(self, statement: cst.If, leaves_root: bool) -> bool:
        """Whether a branch ends in an error, the end of the program, leaves the loop for good, or warns of a value."""
        last = last_statement(statement.body)
        if isinstance(last, cst.Raise) or (leaves_root and isinstance(last, (cst.Break, cst.Return))):
            return True
        called = last.value if isinstance(last, cst.Expr) else None
        ends = isinstance(called, cst.Call) and self._evaluator.names.qualified(called.func) in _ENDS
        return ends or is_alarm(statement, self._evaluator)

    def _around(
        self,
        ancestor: cst.CSTNode,
        child: cst.CSTNode,
        root: cst.CSTNode,
        besides: frozenset[Guard],
        test: cst.If | None,
    ) -> Guard | None:
        if ancestor.__class__ not in _GUARDING:
            return None
        if isinstance(ancestor, cst.If) and child is ancestor.body and self._is_due(ancestor):
            return Guard.PERIODIC
        if isinstance(ancestor, cst.If) and child is not ancestor.test and self._is_spent(ancestor, child):
            return Guard.PERIODIC
        if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
            found = self.classify(ancestor.test, child is ancestor.body)
            is_look = found is Guard.OPTION and isinstance(child, cst.IndentedBlock) and only_tells(child, self._tree)
            return Guard.FLAG if is_look else found
        if isinstance(ancestor, cst.BooleanOperation) and child is ancestor.right:
            found = self.classify(ancestor.left, isinstance(ancestor.operator, cst.And))
            asks = self._tree.parent(ancestor)  # if args.careful and torch.isnan(loss): raise ...
            is_asked = isinstance(asks, cst.If) and asks.test is ancestor and only_tells(asks.body, self._tree)
            return Guard.FLAG if found is Guard.OPTION and is_asked else found
        if isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
            return self._earlier_exit(ancestor, child, root, besides, test)
        if isinstance(ancestor, cst.MatchCase) and isinstance(ancestor.pattern, (cst.MatchValue, cst.MatchOr)):
            match = self._tree.parent(ancestor)
            subject = match.subject if isinstance(match, cst.Match) else None
            counts = subject is not None and (self._is_remainder(subject) or is_counter(subject, self._evaluator))
            return Guard.PERIODIC if counts else None
        fails = isinstance(ancestor, (cst.ExceptHandler, cst.Raise))
        return Guard.PERIODIC if fails or (isinstance(ancestor, cst.Assert) and child is ancestor.msg) else None

    def _is_spent(self, statement: cst.If, branch: cst.CSTNode) -> bool:
        """Whether a branch sees to it that the test does not lead there again: asked for every node below it."""
        key = (id(statement), branch is statement.body)
        if key not in self._spent:
            self._spent[key] = is_spent(statement, branch, self._evaluator)
        return self._spent[key]

    def _is_due(self, statement: cst.If) -> bool:
        """Whether a branch computes what is not there yet, ``if self.mean is None``, or has its turn."""
        written = self._tree.below(statement.body, cst.AssignTarget)
        is_missing = self._misses(statement.test, {canonical(target.target) for target in written})
        is_new = is_new_key(statement.test, True, (statement.body,), self._evaluator)
        return is_missing or is_new or counts_on(statement, self._tree)

    def _misses(self, test: cst.BaseExpression, places: set[str]) -> bool:
        if isinstance(test, cst.BooleanOperation):
            missing = (self._misses(test.left, places), self._misses(test.right, places))
            if isinstance(test.operator, cst.And):
                return any(missing)
            other = test.right if missing[0] else test.left
            is_rare = self._is_early(other) or self.classify(other, True) is Guard.PERIODIC
            return any(missing) and (all(missing) or is_rare)
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return isinstance(test.expression, cst.Attribute) and canonical(test.expression) in places
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            asked = test.comparisons[0]
            asks = isinstance(asked.operator, (cst.Is, cst.Equal)) and is_none(asked.comparator)
            lasts = isinstance(test.left, cst.Attribute) or self._is_unset_before_loop(test.left)
            return asks and lasts and canonical(test.left) in places
        return False

    def _is_unset_before_loop(self, variable: cst.BaseExpression) -> bool:
        """Whether a variable is None when a loop begins, and not again in it."""
        loop = self._tree.enclosing(variable, *LOOPS)
        if not isinstance(variable, cst.Name) or loop is None:
            return False
        definitions = self._evaluator.flow.definitions(variable)
        unset = [b.node for b in definitions if b.part is not None and is_none(b.part)]
        return bool(unset) and not any(self._tree.within(node, loop) for node in unset)

    def _is_early(self, test: cst.BaseExpression) -> bool:
        """Whether a test holds for the first steps only: ``self.step < limit``."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return False
        return isinstance(test.comparisons[0].operator, (cst.LessThan, cst.LessThanEqual)) and is_counter(
            test.left, self._evaluator
        )

    def _earlier_exit(
        self,
        block: cst.IndentedBlock | cst.Module,
        child: cst.CSTNode,
        root: cst.CSTNode,
        besides: frozenset[Guard],
        allowed: cst.If | None,
    ) -> Guard | None:
        """``if step % k: continue`` guards everything after it; an unconditional ``break`` ends the loop at once."""
        exits = self._exits.get(id(block))
        if exits is None:
            exits = self._exits[id(block)] = exits_of(block, self._evaluator)
        place = self._tree.order(child)
        if exits.first_pause < place and Guard.PERIODIC not in besides:
            return Guard.PERIODIC
        for test, holds, where in exits.tests:
            if where >= place:
                break
            found = self.classify(test, holds) if allowed is None or test is not allowed.test else None
            if found is not None and found not in besides:
                return found
        ends = exits.last_break >= place and not goes_on(child, self._tree)
        return Guard.PERIODIC if ends and self._tree.enclosing(block, *LOOPS) is root else None

    def classify(self, test: cst.BaseExpression, taken: bool) -> Guard | None:
        """Return why the branch that is taken when ``test`` is ``taken`` is a rare one, None if it is not."""
        return self._classified.answer(test, taken, self._classify)

    def _classify(self, test: cst.BaseExpression, taken: bool) -> Guard | None:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self.classify(test.expression, not taken)
        if isinstance(test, cst.BooleanOperation):
            sides = (self.classify(test.left, taken), self.classify(test.right, taken))
            found = [guard for guard in _RAREST if guard in sides]
            if isinstance(test.operator, cst.And) is taken:
                return next(iter(found), None)
            return found[-1] if None not in sides else None
        if isinstance(test, cst.NamedExpr):
            return self.classify(test.value, taken)
        if isinstance(test, cst.IfExp):
            one, other = self.classify(test.body, taken), self.classify(test.orelse, taken)
            return one if other is not None else None
        if leaves_host(test, taken):
            return Guard.HOST
        if taken and asks_for_option(test, self._evaluator):
            return Guard.FLAG
        if self._is_remainder(test):
            return None if taken else Guard.PERIODIC
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            return self._comparison(test.left, test.comparisons[0], taken)
        if isinstance(test, (cst.Name, cst.Attribute)):
            return self._variable(test, taken)
        if isinstance(test, cst.Call):
            return self._call(test, taken)
        return Guard.FLAG if taken and self._is_occasional_setting(test) else None

    def _is_occasional_setting(self, test: cst.BaseExpression) -> bool:
        """Whether a setting is named for looking into a run, and not known to be on: ``CONFIG["debug"]``."""
        index = test.slice[0].slice if isinstance(test, cst.Subscript) and len(test.slice) == 1 else None
        key = literal(index.value) if isinstance(index, cst.Index) else None
        return isinstance(key, str) and bool(_OCCASIONAL.search(key)) and self.defaults.of_option(test) is not True

    def _call(self, test: cst.Call, taken: bool) -> Guard | None:
        asked = {identifier(node.func) for node in self._tree.descendants(test) if isinstance(node, cst.Call)}
        if asked & (_BROKEN if taken else _SOUND):
            return Guard.PERIODIC
        if not taken:
            return None
        name = identifier(test.func)
        named = _OCCASIONAL.search(name) or name.startswith(("should_", "is_log", "every", "tick"))
        general = (self._evaluator.names.qualified(test.func) or "").startswith(("builtins.", "torch."))
        counts = not general and any(is_counter(argument.value, self._evaluator) for argument in test.args)
        # divisible_by(step, 100), math.log2(step).is_integer()
        is_rare = named or counts or self._is_of_counter(test) or lets_through(test, self._evaluator)
        return Guard.PERIODIC if is_rare else None

    def _is_of_counter(self, test: cst.Call) -> bool:
        """Whether a method is asked of what a function for numbers makes of a counter."""
        made = test.func.value if isinstance(test.func, cst.Attribute) else None
        if not isinstance(made, cst.Call) or not (self._evaluator.names.qualified(made.func) or "").startswith(
            _NUMBERS
        ):
            return False
        return any(is_counter(argument.value, self._evaluator) for argument in made.args)

    def _is_remainder(self, expression: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether an expression is ``step % k``, also through ``divmod``, a bit mask or a variable."""
        if isinstance(expression, cst.NamedExpr):
            return self._is_remainder(expression.value, depth)
        if isinstance(expression, cst.BinaryOperation):
            if isinstance(expression.operator, cst.BitAnd):
                return is_counter(expression.left, self._evaluator) or is_counter(expression.right, self._evaluator)
            is_modulo = isinstance(expression.operator, cst.Modulo) and not isinstance(expression.left, cst.BaseString)
            is_other = is_of_batch(expression.left, self._evaluator) or divides_all(expression.right, self.defaults)
            return is_modulo and not is_other
        if isinstance(expression, cst.Subscript):
            return self._is_divmod(expression.value)
        if isinstance(expression, cst.Call):
            return self._evaluator.names.qualified(expression.func) in ("math.fmod", "operator.mod")
        if not isinstance(expression, cst.Name) or depth > _MAX_DEPTH:
            return False
        bindings = self._evaluator.flow.definitions(expression)
        return bool(bindings) and all(
            b.kind is BindingKind.ASSIGNMENT
            and b.value is not None
            and (self._is_divmod(b.value) if b.path == (1,) else not b.path and self._is_remainder(b.value, depth + 1))
            for b in bindings
        )

    def _is_divmod(self, expression: cst.BaseExpression) -> bool:
        return (
            isinstance(expression, cst.Call) and self._evaluator.names.qualified(expression.func) == "builtins.divmod"
        )

    def _most_passes(self, limit: cst.BaseExpression) -> int | None:
        """The default of a parameter, or what a call of the file gives that is more."""
        if not isinstance(limit, cst.Name) or self.defaults.of_parameter(limit) is None:
            return None
        given = limits(limit, self._evaluator)
        known = [number for number in given if number is not None]
        return max(known) if known and len(known) == len(given) else None

    def _comparison(self, left: cst.BaseExpression, target: cst.ComparisonTarget, taken: bool) -> Guard | None:
        right, operator = target.comparator, target.operator
        modulo = self._is_remainder(left) or self._is_remainder(right)
        counters = is_counter(left, self._evaluator) or is_counter(right, self._evaluator)
        if modulo or counters:
            if isinstance(operator, cst.Equal):
                return Guard.PERIODIC if taken else None
            if isinstance(operator, cst.NotEqual):
                return None if taken else Guard.PERIODIC
            if isinstance(operator, (cst.In, cst.NotIn)):
                return Guard.PERIODIC if taken is isinstance(operator, cst.In) else None
            if modulo:
                return Guard.PERIODIC
            is_end = is_one_of_the_last(right, operator, taken, self._evaluator)
            is_start = is_one_of_the_first(left, right, operator, taken, self._most_passes(right))
            return Guard.PERIODIC if is_end or is_start else None
        if is_time(left, self._evaluator) or is_time(right, self._evaluator):
            return Guard.PERIODIC
        if taken and is_chance(left, target, self._evaluator, self.defaults.of_option(right)):
            return Guard.PERIODIC
        if isinstance(operator, (cst.Is, cst.Equal)) and isinstance(right, cst.Name) and right.value == "True":
            return self.classify(left, taken)
        if taken and _OCCASIONAL.search(identifier(left)) and self.defaults.fails(left, target):
            return Guard.FLAG  # if verbosity > 1
        if not is_none(right) or not isinstance(operator, (cst.Is, cst.IsNot)):
            return None
        if taken is isinstance(operator, cst.IsNot):
            return Guard.FLAG if self.defaults.is_file(left) else None
        return Guard.FLAG if isinstance(left, cst.Attribute) and self.defaults.is_set(left) else None

    def _variable(self, test: cst.Name | cst.Attribute, taken: bool) -> Guard | None:
        is_no = isinstance(test, cst.Name) and test.value == "False"  # what a constant of the file holds
        if taken and (is_no or self.defaults.is_file(test)):
            return Guard.FLAG
        told = stands_for(test, self._evaluator)
        found = {self.classify(value, taken) if value is not None else None for value in told}
        if taken and found and isinstance(test, cst.Name) and is_told_of_error(test, self._evaluator):
            return Guard.FLAG
        if found and None not in found:
            of_flags = next((guard for guard in _RAREST if guard in found), Guard.PERIODIC)
            return of_flags if found <= NO_FLAG else Guard.PERIODIC
        if not taken and isinstance(test, cst.Name) and counts_passes(test, self._evaluator):
            return Guard.PERIODIC  # if not step
        if (taken and is_timed(test, self._evaluator)) or self._is_raised_by_period(test, taken):
            return Guard.PERIODIC
        if not taken or _CHOOSES_DEVICE.search(identifier(test)):
            return None
        if is_on(test, self.defaults, self._evaluator):
            return None
        is_option = self.defaults.is_option(identifier(test))
        if _OCCASIONAL.search(identifier(test)) and not (is_option and _TRACKER.search(identifier(test))):
            return Guard.FLAG
        return Guard.OPTION if is_option or self.defaults.is_off(test) else None

    def _guard_in_function(self, place: cst.CSTNode) -> Guard | None:
        """The reason for which a statement does not run whenever its function does."""
        function = self._evaluator.definitions.enclosing_function(place)
        return self.guard(place, function) if function is not None else None

    def _is_raised_by_period(self, flag: cst.Name | cst.Attribute, value: bool) -> bool:
        """Whether an attribute is only set by tests that hold once in an interval: ``self.on = step % k == 0``."""
        if not isinstance(flag, cst.Attribute):
            return False
        key = (id(flag), value)
        if key not in self._raised:
            self._raised[key] = False  # a flag that is set by itself tells nothing
            filled = self.flags.filled(flag) if value else []
            found = {self._guard_in_function(place) for place in filled}
            reasons = self.flags.reasons(flag, value) if not filled else []
            found |= {self.classify(reason.test, reason.holds) for reason in reasons}
            self._raised[key] = found == {Guard.PERIODIC}
        return self._raised[key]
