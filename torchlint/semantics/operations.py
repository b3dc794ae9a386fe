"""Functions that compute a tensor from tensors, which the programs that import them call in their steps."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate import names
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.guards import Guards
from torchlint.semantics.roles import Heat, Role
from torchlint.semantics.values import Value
from torchlint.semantics.versions import is_main_guard

# What prepares, stores or shows something, or looks at a finished result: none of a step's computations.
_ELSEWHERE = re.compile(
    r"^_*(build|collate|convert|create|decode|draw|dump|eval|evaluate|export|find|fuse|generate|init|initialize|inspect|"
    r"is|has|load|log|make|metric|parse|plot|prepare|preprocess|print|process|read|register|reset|sample|save|search|setup|"
    r"show|split|test|trace|validate|verify|visualize|warmup|write)(_|$)|_(check|reader)$"
)


class Operations:
    """Answers whether a node runs in such a function."""

    def __init__(self, evaluator: Evaluator, guards: Guards) -> None:
        self._evaluator = evaluator
        self._guards = guards
        self._known: dict[int, bool] = {}

    def heat(self, node: cst.CSTNode) -> Heat | None:
        """Return the function around a node if each of its calls runs the node and programs call it in their steps.

        That they do is a guess from its signature, weaker than what `Hotness` answers from.
        """
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or not self._is_called(function) or self._guards.guard(node, function) is not None:
            return None
        return Heat(function, Role.OPERATION, Evidence.INFERRED)

    def of_test(self, node: cst.CSTNode) -> Heat | None:
        """Return the same of a node in the condition of a branch, which the function takes by the value of a tensor."""
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
        """Whether a function of a library takes a tensor and returns one, as its annotations say."""
        if function.returns is None or function.asynchronous is not None or _ELSEWHERE.search(function.name.value):
            return False
        definitions = self._evaluator.definitions
        if definitions.owner(function) is not None or definitions.enclosing_function(function) is not None:
            return False
        if any(isinstance(node, cst.If) and is_main_guard(node) for node in self._evaluator.tree.module.body):
            return False
        if not _is_tensor(names.type_hint(function.returns.annotation, self._evaluator)):
            return False
        parameters = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
        return any(names.may_be_tensor(parameter, self._evaluator) for parameter in parameters)


def _is_tensor(value: Value) -> bool:
    return value.elements[0].is_tensor if value.elements else value.is_tensor
