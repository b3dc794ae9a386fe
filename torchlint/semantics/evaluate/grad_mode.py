"""Where autograd records nothing."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.evaluate.dispatch import Dispatch
from torchlint.semantics.evaluate.held_contexts import HeldContexts
from torchlint.semantics.evaluate.script_modes import SETTERS
from torchlint.semantics.tables.torch_api import NO_GRAD_CONTEXTS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

# Methods around which Lightning disables gradients itself.
_FRAMEWORK_INFERENCE = re.compile(
    r"(validation|test|predict)_step|(on_)?(validation|test|predict)_((epoch|batch)_)?(start|end)"
)
# Methods that frameworks call in each training step, by what the name of their class or of an ancestor holds.
FRAMEWORK_STEP_METHODS = {
    "training_step": "Lightning",
    "compute_loss": "Trainer",
    "compute_objectives": "Brain",
    "forward": "FairseqCriterion",
}

# Methods that other frameworks only call where gradients are off, by the names of the bases of their class.
_INFERENCE_BY_BASE = {
    "valid_step": re.compile(r"^fairseq\.|Task$"),
    "eval_step": re.compile(r"^parlai\.|Agent$|^torchtnt\.|EvalUnit$|AutoUnit$"),
    "predict_step": re.compile(r"^torchtnt\.|PredictUnit$"),
    "evaluate_batch": re.compile(r"^speechbrain\.|Brain$"),
    "predict_batch": re.compile(r"^catalyst\.|Runner$"),
    "inference": re.compile(r"^espnet"),
}

# Methods by which a context begins and ends without a ``with`` block of its own.
_ENTERS = frozenset(("__enter__", "__exit__", "enter_context"))
# Wrappers of projects around the contexts of torch.
_SWITCHED_OFF = re.compile(
    r"(^|_)(((no|without|disable)_?(grads?|gradients?))|"
    r"(inference|eval|evaluation)_?(mode|context|ctx|scope)|evaluating|inferring)$",
    re.IGNORECASE,
)
# Bases of contexts that leave gradients as they are.
_IS_PLAIN_BASE = re.compile(r"^(builtins\.object|contextlib\.|abc\.|typing\.)")
_DECIDING: frozenset[type] = frozenset((cst.With, cst.IndentedBlock, cst.Module, cst.FunctionDef, cst.Lambda))


class Gradients:
    """Answers whether gradients are disabled around a node."""

    def __init__(self, tree: Tree, names: Names, definitions: Definitions, evaluator: Evaluator) -> None:
        self._tree = tree
        self._names = names
        self._definitions = definitions
        self._evaluator = evaluator
        self._functions: dict[int, bool] = {}
        self._globally: bool | None = None
        self._setters: dict[int, bool | None] | None = None
        self._entered_contexts: set[int] = set()
        self._dispatch = Dispatch(tree, definitions, evaluator)
        self.contexts = HeldContexts(tree, names, definitions, evaluator)

    def forget(self) -> None:
        """Drop what was decided while the call graph was incomplete."""
        self._functions.clear()

    def disabled(self, node: cst.CSTNode) -> bool:
        """Return whether no graph is built at a node: by a context, a decorator, every caller, or the whole file."""
        return self._decision(node) is True

    def sometimes_disabled(self, node: cst.CSTNode) -> bool:
        """Return whether no graph is built at a node in some runs: there, or at one of the calls that lead to it."""
        waiting: list[cst.CSTNode] = [node]
        seen: set[int] = set()
        while waiting:
            place = waiting.pop()
            if self.disabled(place):
                return True
            function = self._definitions.enclosing_function(place)
            if function is not None and id(function) not in seen:
                seen.add(id(function))
                waiting += self._evaluator.callers(function)
        return False

    def left_open(self, node: cst.CSTNode) -> bool:
        """Return whether a context around a node may switch gradients off, or what runs before it has for good."""
        if self.contexts.is_set_elsewhere(node):
            return True
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, cst.FunctionDef):
                return self._dispatch.may_run(ancestor)
            if isinstance(ancestor, cst.With) and child is ancestor.body and self.contexts.may_switch(ancestor):
                return True
            child = ancestor
        return False

    def is_volatile(self, function: cst.FunctionDef | None) -> bool:
        """Return whether a function, or the script, asks for `volatile=True`, which switched graphs off before 0.4."""
        return any(function is None or self._tree.within(argument, function) for argument in self._volatile)

    @cached_property
    def _volatile(self) -> list[cst.Arg]:
        named = (argument for argument in self._tree.nodes(cst.Arg) if argument.keyword is not None)
        return [a for a in named if a.keyword and a.keyword.value == "volatile" and literal(a.value) is not False]

    def wanted(self, node: cst.CSTNode) -> bool:
        """Return whether the function around a node switches gradients on for it."""
        return self._decision(node) is False

    def _decision(self, node: cst.CSTNode) -> bool | None:
        self._mode_setters()
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor.__class__ not in _DECIDING:  # most
                pass
            elif isinstance(ancestor, cst.With):
                decision = self._context(ancestor) if child is ancestor.body else None
                if decision is not None:
                    return decision
            elif isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
                decision = self._set_before(ancestor, child) if self._mode_setters() else None
                if decision is not None:
                    return decision
            elif isinstance(ancestor, cst.FunctionDef):
                if child is ancestor.body:
                    return self.function_disabled(ancestor) or self._is_off_from_start(ancestor) or None
            elif isinstance(ancestor, cst.Lambda) and self._dispatch.runs_lambda(ancestor):
                return True
            child = ancestor
        return self._whole_file() or None

    def _is_off_from_start(self, method: cst.FunctionDef) -> bool:
        """Whether what makes or enters the object of a method switches gradients off: ``set_grad_enabled(False)``."""
        owner = self._definitions.owner(method) if self._mode_setters() else None
        begins = (
            [self._definitions.method(owner, name) for name in ("__init__", "__enter__")] if owner is not None else []
        )
        return any(
            first is not None
            and first is not method
            and isinstance(first.body, cst.IndentedBlock)
            and self._set_before(first.body, None) is True
            for first in begins
        )

    def _set_before(self, block: cst.IndentedBlock | cst.Module, child: cst.CSTNode | None) -> bool | None:
        """What the last ``torch.set_grad_enabled(...)`` or ``guard.__enter__()`` before a statement of a block does."""
        decision: bool | None = None
        for line in block.body:
            if line is child:
                break
            if isinstance(line, cst.SimpleStatementLine):
                for statement in line.body:
                    if isinstance(statement, cst.Expr) and id(statement.value) in self._mode_setters():
                        decision = self._mode_setters()[id(statement.value)]
        return decision

    def _mode_setters(self) -> dict[int, bool | None]:
        """The calls that set the mode for all that follows, and what they set it to; None where they set it back."""
        if self._setters is None:
            self._setters = {}
            for call in self._tree.nodes(cst.Call):
                name = identifier(call.func)
                if not isinstance(self._tree.parent(call), cst.Expr):
                    continue
                if name.endswith("set_grad_enabled"):
                    if self._names.qualified(call.func) in SETTERS:
                        self._setters[id(call)] = self.switches_off(call)
                elif name in _ENTERS:
                    decision = self._entered(call)
                    if decision is not None:
                        self._setters[id(call)] = None if name == "__exit__" else decision
        return self._setters

    def _entered(self, call: cst.Call) -> bool | None:
        """What ``guard.__enter__()`` and ``stack.enter_context(guard)`` do to gradients."""
        guard: cst.BaseExpression | None = None
        if identifier(call.func) == "enter_context":
            guard = call.args[0].value if call.args else None
        elif isinstance(call.func, cst.Attribute):
            guard = call.func.value
        if isinstance(guard, cst.Name):
            bindings = self._evaluator.flow.definitions(guard)
            guard = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        return self.switches_off(guard) if guard is not None else None

    def _context(self, statement: cst.With) -> bool | None:
        for item in statement.items:
            decision = self.switches_off(item.item)
            if decision is not None:
                return decision
        return None

    def switches_off(self, expression: cst.BaseExpression) -> bool | None:
        """Return what a context manager or decorator does to gradients: True off, False on, None nothing known."""
        call = expression if isinstance(expression, cst.Call) else None
        name = self._names.qualified(call.func if call is not None else expression)
        if name is None or not name.startswith("torch."):
            called = call.func if call is not None else expression
            is_off = self._is_named_for_off(called) or self._stands_for_off(called)
            return True if is_off or self._yields_without(called) else None
        if name in NO_GRAD_CONTEXTS:
            mode = literal(call.args[0].value) if call is not None and call.args else True
            return None if mode is False else True
        if name == "torch.enable_grad":
            return False
        if name in SETTERS and call is not None:
            mode = literal(bind(call.args, ("mode",)).get("mode"))
            return None if mode is None else not mode
        return None

    def _is_named_for_off(self, called: cst.BaseExpression) -> bool:
        """Whether a wrapper is named for switching gradients off, and does not show that it only sets a mode."""
        if _SWITCHED_OFF.search(identifier(called)) is None:
            return False
        made = self._definitions.definition(called)
        if isinstance(made, cst.ClassDef) and all(map(_IS_PLAIN_BASE.match, self._definitions.ancestry(made))):
            bodies = [each.body for each in self._definitions.family(made)]
        elif isinstance(made, cst.FunctionDef):
            bodies = [made.body]
        else:
            return True
        used = (n for body in bodies for n in self._tree.descendants(body) if isinstance(n, (cst.Name, cst.Attribute)))
        return any("grad" in identifier(n) or _SWITCHED_OFF.search(identifier(n)) for n in used)

    def _stands_for_off(self, called: cst.BaseExpression) -> bool:
        """Whether a parameter stands for such a context by its default, or an attribute of the class: ``guard()``."""
        values: list[cst.BaseExpression | None] = []
        if isinstance(called, cst.Name):
            parameters = (self._tree.parent(binding.node) for binding in self._evaluator.flow.definitions(called))
            values = [each.default for each in parameters if isinstance(each, cst.Param)]
        elif isinstance(called, cst.Attribute) and isinstance(called.value, cst.Name):
            owner = self._definitions.receiver(called.value)
            held = self._definitions.attribute(owner, called.attr.value) if owner is not None else ()
            values = [each.value for each in held if not each.path]
        named = [self._names.qualified(value) if value is not None else None for value in values]
        return bool(named) and all(name in NO_GRAD_CONTEXTS for name in named)

    def _yields_without(self, called: cst.BaseExpression) -> bool:
        """Whether a context manager that the file writes as a generator yields where gradients are off."""
        made = self._definitions.definition(called)
        if not isinstance(made, cst.FunctionDef) or not made.decorators or id(made) in self._entered_contexts:
            return False
        self._entered_contexts.add(id(made))
        yields = self._tree.below(made.body, cst.Yield)
        found = bool(yields) and all(self.disabled(each) for each in yields)
        self._entered_contexts.discard(id(made))
        return found

    def _calls_without(self, decorator: cst.BaseExpression) -> bool:
        """Whether a decorator of the file calls what it decorates, or hands it on, only where gradients are off."""
        made = self._definitions.definition(decorator.func if isinstance(decorator, cst.Call) else decorator)
        if isinstance(decorator, cst.Call) and isinstance(made, cst.FunctionDef):
            given_back = [self._definitions.definition(result) for result in self._definitions.results(made)]
            made = given_back[0] if len(given_back) == 1 else None
        given = made.params.params if isinstance(made, cst.FunctionDef) and not made.decorators else ()
        if not isinstance(made, cst.FunctionDef) or len(given) != 1:
            return False
        names = (n for n in self._tree.named(given[0].name.value) if self._tree.within(n, made.body))
        decorated = [name for name in names if self._is_handed_on(name)]
        return bool(decorated) and all(map(self.disabled, decorated))

    def _is_handed_on(self, name: cst.Name) -> bool:
        """Whether a function is called, or given to one that may call it: not to ``functools.wraps``."""
        parent = self._tree.parent(name)
        call = self._tree.parent(parent) if isinstance(parent, cst.Arg) else parent
        if not isinstance(call, cst.Call):
            return False
        return (self._names.qualified(call.func) or "") not in ("functools.wraps", "functools.update_wrapper")

    def _decorates(self, function: cst.FunctionDef) -> bool:
        """Whether a function decorates others, or is what a decorator gives, so that more than its calls run it."""
        around = self._definitions.enclosing_function(function)
        return id(function) in self._decorators or (around is not None and id(around) in self._decorators)

    @cached_property
    def _decorators(self) -> frozenset[int]:
        used = (each.decorator for each in self._tree.nodes(cst.Decorator))
        named = (each.func if isinstance(each, cst.Call) else each for each in used)
        return frozenset(id(made) for each in named if (made := self._definitions.definition(each)) is not None)

    @cached_property
    def _rebound(self) -> frozenset[int]:
        """The functions that the file decorates where it calls or binds them: ``run = torch.no_grad()(evaluate)``."""
        wrapped = (
            call for call in self._tree.nodes(cst.Call) if isinstance(call.func, cst.Call) and len(call.args) == 1
        )
        made = (self._definitions.definition(c.args[0].value) for c in wrapped if self.switches_off(c.func))
        return frozenset(id(function) for function in made if function is not None)

    @cached_property
    def _redecorated(self) -> list[cst.BaseExpression]:
        """The variables and attributes that are given what a decorator makes of them."""
        found: list[cst.BaseExpression] = []
        for statement in self._tree.nodes(cst.Assign):
            value, target = statement.value, statement.targets[0].target
            if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Call) or len(value.args) != 1:
                continue
            if identifier(value.args[0].value) == identifier(target) and self.switches_off(value.func):
                found.append(target)
        return found

    def wraps_forward(self, model: cst.BaseExpression) -> bool:
        """Return whether the file decorates what a model runs: ``net.forward = torch.no_grad()(net.forward)``."""
        held = [each for each in self._redecorated if isinstance(each, cst.Attribute)]
        return any(each.attr.value == "forward" and is_same(each.value, model) for each in held)

    def function_disabled(self, function: cst.FunctionDef) -> bool:
        """Return whether a function runs without gradients by its decorators, its role, or all of its callers."""
        key = id(function)
        if key not in self._functions:
            self._functions[key] = False  # recursion decides nothing
            self._functions[key] = self._decide(function)
        return self._functions[key]

    def _decide(self, function: cst.FunctionDef) -> bool:
        for decorator in function.decorators:
            decision = self.switches_off(decorator.decorator)
            if decision is not None or self._calls_without(decorator.decorator):
                return decision is not False
            if self.contexts.decorates(decorator.decorator):
                return True
        if id(function) in self._rebound or self._is_of_class_without(function):
            return True
        owner = self._definitions.owner(function)
        name = function.name.value
        decision = self._decide_by_framework(name, owner) if owner is not None else None
        if decision is not None:
            return decision
        if name == "forward" and owner is not None and self._definitions.class_kind(owner) is Kind.MODULE:
            return False  # calls of the module run it too
        callers = [
            c for c in self._evaluator.callers(function) if self._definitions.enclosing_function(c) is not function
        ]
        callers = callers or (self._by_bases(function, owner) if owner is not None else [])
        if callers:
            return not self._decorates(function) and all(self.disabled(call) for call in callers)
        return self._whole_file() if owner is None or name == "__call__" else False

    def _is_of_class_without(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator of its class is given such a context: ``@for_all_methods(torch.no_grad())``."""
        owner = self._definitions.owner(function)
        used = (each.decorator for each in owner.decorators) if owner is not None else ()
        given = (argument.value for each in used if isinstance(each, cst.Call) for argument in each.args)
        return any(self.switches_off(context) for context in given)

    def _by_bases(self, function: cst.FunctionDef, owner: cst.ClassDef) -> list[cst.Call]:
        """The calls by which the bases of a class call a method on their object that only the class has."""
        name = function.name.value
        calls = [c for base in self._definitions.bases(owner) for c in self._tree.below(base, cst.Call)]
        methods = ((call, method_call(call, name)) for call in calls)
        own = ((call, m.value) for call, m in methods if m is not None and isinstance(m.value, cst.Name))
        return [call for call, held in own if self._definitions.receiver(held) is not None]

    def _decide_by_framework(self, name: str, owner: cst.ClassDef) -> bool | None:
        """Whether the framework that a class is for calls its method by this name without gradients, or with them."""
        if name in FRAMEWORK_STEP_METHODS:
            trains = any(FRAMEWORK_STEP_METHODS[name] in base for base in self._definitions.ancestry(owner))
            return False if trains else None  # whatever else calls it
        is_inference = _FRAMEWORK_INFERENCE.fullmatch(name) is not None
        by_base = _INFERENCE_BY_BASE.get(name)
        bases = self._definitions.ancestry(owner) if is_inference or by_base is not None else ()
        if by_base is not None and any(map(by_base.search, bases)):
            return True
        if not is_inference:
            return None
        return any("Lightning" in b or b.startswith(("lightning.", "pytorch_lightning.")) for b in bases) or None

    def _whole_file(self) -> bool:
        if self._globally is None:
            self._globally = any(
                self._tree.parent(call).__class__ is cst.Expr
                and self._definitions.enclosing_function(call) is None
                and self._names.qualified(call.func) in SETTERS
                and self.switches_off(call) is True
                and self.contexts.script.stays_off(call)
                for call in self._tree.calls_named("set_grad_enabled")
            )
        return self._globally
