"""Functions that compute a tensor from tensors, which the programs that import them call in their steps."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import dotted
from torchlint.semantics.evaluate import type_hints
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.element_loops import ElementLoops
from torchlint.semantics.heat.guards import Guards
from torchlint.semantics.process.testing import tests
from torchlint.semantics.roles import Heat, Role
from torchlint.semantics.synchronization.round_trips import feeds_tensors
from torchlint.semantics.values import Value
from torchlint.syntax.calls import literal, method_call
from torchlint.syntax.remembered import remembered
from torchlint.syntax.statements import is_main_guard

# What prepares, stores or shows something, or looks at a finished result: none of a step's computations.
_ELSEWHERE = re.compile(
    r"^_*(build|calibrate|collate|convert|create|decode|draw|dump|eval|evaluate|export|find|fit|fuse|generate|init|"
    r"initialize|inspect|is|has|load|log|make|metric|parse|plot|prepare|preprocess|print|process|read|register|reset|sample|"
    r"save|search|setup|show|split|test|trace|validate|verify|visualize|warmup|write)(_|$)|"
    r"_(check|reader|class_weights|schedule)$|^class_weights$|^schedule$|[a-z]_$"  # the last: fills what it is given
)
# What runs on the host: functions that take part in it wait anyway, or are given tensors in host memory.
_TO_HOST = ("cpu", "numpy")
_CACHES = frozenset(("functools.lru_cache", "functools.cache", "functools.cached_property"))
_LOADING = "torch.utils.data"


class TensorFunctions:
    """Answers whether a node runs in such a function."""

    def __init__(self, evaluator: Evaluator, guards: Guards) -> None:
        self._evaluator = evaluator
        self._guards = guards
        self._known: dict[int, bool] = {}
        self._elements = ElementLoops(evaluator, guards)

    def heat(self, node: cst.CSTNode) -> Heat | None:
        """Return the function around a node if each of its calls runs the node and programs call it in their steps.

        That they do is a guess from its signature, weaker than what `Hotness` answers from.
        """
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or not self._is_called(function) or self._guards.guard(node, function) is not None:
            return None
        return Heat(function, Role.OPERATION, Evidence.INFERRED)

    def of_branch(self, node: cst.CSTNode) -> Heat | None:
        """Return the same, or the loop that runs a node for one element of a tensor after the other."""
        return self.heat(node) or self._elements.heat(node)

    @remembered
    def of_read(self, node: cst.CSTNode) -> Heat | None:
        """Return the same of a read for a branch, or for other tensors; or the loop over the elements of a tensor."""
        feeds = isinstance(node, cst.Call) and feeds_tensors(node, self._evaluator)
        return (self.heat(node) if feeds else self._of_test(node)) or self._elements.heat(node)

    def _of_test(self, node: cst.CSTNode) -> Heat | None:
        """The function around a node in the condition of a branch, which it takes by the value of a tensor."""
        child = node
        for ancestor in self._evaluator.tree.ancestors(node):
            if isinstance(ancestor, (cst.If, cst.IfExp, cst.While, cst.Assert)) and child is ancestor.test:
                return self.heat(node)
            if isinstance(ancestor, cst.BaseSuite):
                return None
            child = ancestor
        return None

    def _is_called(self, function: cst.FunctionDef) -> bool:
        """Whether a function is an operation, that other files or the operations of this one call."""
        key = id(function)
        if key not in self._known:
            self._known[key] = False  # until it is known, for functions that call each other
            self._known[key] = self._computes(function) and self._is_used(function)
        return self._known[key]

    def _is_used(self, function: cst.FunctionDef) -> bool:
        callers = self._evaluator.callers(function)
        around = [self._evaluator.definitions.enclosing_function(call) for call in callers]
        return not callers or any(caller is not None and self._is_called(caller) for caller in around)

    def _computes(self, function: cst.FunctionDef) -> bool:
        """Whether a function of a library takes a tensor, as its annotations say, and returns one."""
        if function.asynchronous is not None or _ELSEWHERE.search(function.name.value):
            return False
        definitions = self._evaluator.definitions
        if definitions.owner(function) is not None or definitions.enclosing_function(function) is not None:
            return False
        if not self._is_library or function.name.value in self._handed_on or self._works_on_host(function):
            return False
        parameters = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
        takes_tensor = any(type_hints.may_be_tensor(parameter, self._evaluator) for parameter in parameters)
        return takes_tensor and self._gives_tensor(function)

    def _gives_tensor(self, function: cst.FunctionDef) -> bool:
        """Whether a function returns a tensor by its annotation, or without one by all that it returns."""
        if function.returns is not None:
            return _is_tensor(type_hints.type_hint(function.returns.annotation, self._evaluator))
        found = [self._evaluator.value(result) for result in self._evaluator.definitions.results(function)]
        return bool(found) and all(_is_tensor(value) and value.evidence >= Evidence.INFERRED for value in found)

    @cached_property
    def _is_library(self) -> bool:
        """Whether a file is no program and no test, and has nothing to do with loading data."""
        tree, qualified = self._evaluator.tree, self._evaluator.names.qualified
        if tests(self._evaluator.scopes):
            return False
        if any(isinstance(node, cst.If) and is_main_guard(node) for node in tree.module.body):
            return False
        imported = (dotted(node.module) for node in tree.nodes(cst.ImportFrom) if not node.relative)
        if any(name.startswith(_LOADING) for name in imported):
            return False
        return not any(qualified(node) == _LOADING for node in tree.attributes_named("data"))

    @cached_property
    def _handed_on(self) -> frozenset[str]:
        """The names that others than torch are given: they may call what these stand for on items that they load."""
        found: set[str] = set()
        for call in self._evaluator.tree.nodes(cst.Call):
            given = [argument.value for argument in call.args]
            lists = [one for one in given if isinstance(one, (cst.List, cst.Tuple))]
            given += [element.value for one in lists for element in one.elements]
            own = {one.value for one in given if isinstance(one, cst.Name)}
            if own and not (self._evaluator.names.qualified(call.func) or "").startswith("torch."):
                found |= own
        return frozenset(found)

    def _works_on_host(self, function: cst.FunctionDef) -> bool:
        """Whether a function copies tensors to the host, is one for the CPU, or runs once for the same arguments."""
        qualified = self._evaluator.names.qualified
        for decorator in (each.decorator for each in function.decorators):
            call = decorator if isinstance(decorator, cst.Call) else None
            if qualified(call.func if call is not None else decorator) in _CACHES:
                return True
            if any(
                str(literal(argument.value)).lower() == "cpu" for argument in (call.args if call is not None else ())
            ):
                return True
        return any(map(self._copies, self._evaluator.tree.below(function.body, cst.Call)))

    def _copies(self, call: cst.Call) -> bool:
        """Whether a call copies a tensor to the host: ``x.cpu()``, ``x.numpy()``, ``np.asarray(x)``."""
        if method_call(call, *_TO_HOST) is not None:
            return not call.args
        if len(call.args) == 0 or not (self._evaluator.names.qualified(call.func) or "").startswith("numpy."):
            return False
        return self._evaluator.value(call.args[0].value).is_tensor


def _is_tensor(value: Value) -> bool:
    return value.elements[0].is_tensor if value.elements else value.is_tensor
