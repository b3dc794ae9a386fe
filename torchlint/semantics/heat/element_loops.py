"""Loops over the elements of a tensor each pass of which waits for the value of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import FUNCTIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.guards import NO_OPTION, Guards
from torchlint.semantics.heat.handfuls import is_handful
from torchlint.semantics.process.testing import tests
from torchlint.semantics.roles import Heat, Role
from torchlint.semantics.values import Device, Value
from torchlint.syntax.calls import literal, method_call

# What runs once, decides step by step on the host, has data that are not on a device yet, or looks at a result.
_ELSEWHERE = re.compile(
    r"(^|_)(init|reset|build|setup|load|save|write|read|dump|export|convert|plot|draw|vis|visuali[sz]e|show|print|log|logging|"
    r"report|summary|repr|str|format|decode|decoding|decoder|beam|greedy|search|generate|generator|generation|infer|"
    r"inference|predict|sample|sampler|retrieval|collate|data|preprocess|postprocess|post|augment|getitem|iter|test|eval|"
    r"evaluate|metric|precision|recall|accuracy|eer|debug|check|detect|detector|explain|play|rollout|act|env|game|"
    r"tokenize|parse|parser|anchors|download|main|grid|shuffle|partition|split|weight|balance|balanced|stratified|count|"
    r"mol|graph|adjacency|edge|link|sparsity|prune|stat|stats|table|compare|rank|word|text|coco|submission|submit|confusion|"
    r"ids)s?(_|$)",
    re.IGNORECASE,
)
_OF_CLASSES = re.compile(
    r"Sampler|Dataset|DataModule|Transform|Logger|Metric|Meter|Evaluator|Precision|Recall|Report|Decoder|Search|"
    r"Generator|Tokenizer|Detector|Visuali[sz]er|Env$|Agent|Explainer"
)
_SHOWING = (
    "matplotlib",
    "networkx",
    "visdom",
    "PIL",
    "cv2",
    "gym",
    "gymnasium",
    "rdkit",
    "sklearn",
    "pandas",
    "skimage",
)
_ON_HOST = ("numpy.", "scipy.", "skimage.", "torchaudio.", "soundfile.", "librosa.", "builtins.open")
"""What works on the host, beside which the wait for an element is nothing."""

_PASSED_ON = frozenset(f"builtins.{name}" for name in ("enumerate", "zip", "reversed", "list", "tuple", "iter"))
_TO_HOST = ("cpu", "numpy")
_DISTINCT = ("torch.unique", "torch.unique_consecutive")
_OF_MANY = ("parameters", "named_parameters", "items", "values")
_ENDS: frozenset[type] = frozenset((*FUNCTIONS, cst.ClassDef, cst.While))
"""Nodes beyond which no loop is looked for."""

_MANY = 2
_MAX_DEPTH = 4


class ElementLoops:
    """Answers where the host waits for each element of a tensor in turn."""

    def __init__(self, evaluator: Evaluator, guards: Guards) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._guards = guards
        self._known: dict[int, bool] = {}
        self._heats: dict[int, Heat | None] = {}

    def heat(self, node: cst.CSTNode) -> Heat | None:
        """Return the innermost loop each pass of which runs a node on an element of its own; whoever calls it."""
        key = id(node)
        if key not in self._heats:
            self._heats[key] = self._find(node)
        return self._heats[key]

    def _find(self, node: cst.CSTNode) -> Heat | None:
        for loop in self._around(node):
            if not self._may_be_hot(loop) or self._guards.guard(node, loop) is not None:
                return None
            if self._is_of(node, loop, _MAX_DEPTH):
                return Heat(loop, Role.ELEMENTS, Evidence.INFERRED) if not self._is_seldom(loop) else None
        return None

    def _is_seldom(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a loop only runs every few steps, or to look into a run: by itself, or by all calls of its function.

        ``if step % 500 == 0: for p in parameters: ...``, ``if debug: show_norms(model)``
        """
        function = self._evaluator.definitions.enclosing_function(node)
        if self._guards.guard(node, function or self._tree.module, NO_OPTION) is not None:
            return True
        callers = self._evaluator.callers(function) if function is not None and depth < _MAX_DEPTH else []
        return bool(callers) and all(self._is_seldom(call, depth + 1) for call in callers)

    def _around(self, node: cst.CSTNode) -> Iterator[cst.For]:
        child = node
        for ancestor in self._tree.ancestors(node):
            if type(ancestor) is cst.For and child is ancestor.body:
                yield ancestor
            if type(ancestor) in _ENDS:
                return
            child = ancestor

    def _may_be_hot(self, loop: cst.For) -> bool:
        """Whether a loop may belong to a step, by what its function and its class are called."""
        if id(loop) not in self._known:
            self._known[id(loop)] = self._find_whether_hot(loop)
        return self._known[id(loop)]

    def _find_whether_hot(self, loop: cst.For) -> bool:
        if tests(self._evaluator.scopes) or any(map(self._evaluator.scopes.imports, _SHOWING)):
            return False
        function = self._evaluator.definitions.enclosing_function(loop)
        if is_handful(loop, self._evaluator):
            return False
        if function is None or any(map(self._is_on_host, self._tree.below(loop.body, cst.Call))):
            return False
        while function is not None:
            owner = self._evaluator.definitions.owner(function)
            names = (function.name.value, owner.name.value if owner is not None else "")
            if any(_ELSEWHERE.search(name) or _OF_CLASSES.search(name) for name in names):
                return False
            if any(map(self._works_on_host, self._tree.below(function.body, cst.Call))):
                return False
            function = self._evaluator.definitions.enclosing_function(function)
        return True

    def _is_on_host(self, call: cst.Call) -> bool:
        return (self._evaluator.names.qualified(call.func) or "").startswith(_ON_HOST)

    def _works_on_host(self, call: cst.Call) -> bool:
        """Whether a call brings a tensor to the host, on purpose then: ``x.cpu()``, ``x.numpy()``."""
        return method_call(call, *_TO_HOST) is not None and not call.args

    def _is_of(self, node: cst.CSTNode, loop: cst.For, depth: int) -> bool:
        """Whether a node looks at an element that a loop takes, also by variables of the pass."""
        return any(self._is_part(part, loop, depth) for part in self._tree.descendants(node))

    def _is_part(self, part: cst.CSTNode, loop: cst.For, depth: int) -> bool:
        if isinstance(part, cst.Subscript):
            return self._is_counted(part, loop) and not self._is_entry(part.value)
        if isinstance(part, cst.Attribute):
            return part.attr.value == "grad" and self._is_one_of_many(part.value, loop)
        return isinstance(part, cst.Name) and any(
            self._is_element(part, loop)
            if binding.kind is BindingKind.ITERATION and self._tree.within(binding.node, loop.target)
            else depth > 0
            and binding.kind is BindingKind.ASSIGNMENT
            and binding.value is not None
            and self._tree.within(binding.node, loop.body)
            and self._is_of(binding.value, loop, depth - 1)
            for binding in self._evaluator.flow.definitions(part)
        )

    def _is_element(self, name: cst.Name, loop: cst.For) -> bool:
        """Whether a variable of a loop is a row of a tensor, or one of many gradients."""
        if not self._is_tensor(self._evaluator.value(name)):
            return False
        if self._is_one_of_many(name, loop) and self._reads(loop) >= _MANY:
            return True
        leaves = [leaf for leaf in self._leaves(loop.iter) if self._is_tensor(self._evaluator.value(leaf))]
        return bool(leaves) and not any(map(self._are_distinct, leaves))

    def _is_one_of_many(self, variable: cst.BaseExpression, loop: cst.For) -> bool:
        """Whether a variable of a loop is one of the tensors of a module or of a mapping."""
        leaf = next(self._leaves(loop.iter), None)
        if not isinstance(variable, cst.Name) or method_call(leaf, *_OF_MANY) is None:
            return False
        bindings = self._evaluator.flow.definitions(variable)
        is_bound = any(self._tree.within(binding.node, loop.target) for binding in bindings)
        return is_bound and self._is_tensor(self._evaluator.value(variable))

    def _is_entry(self, tensor: cst.BaseExpression) -> bool:
        """Whether a tensor is an entry of a mapping that a function is given: whoever made it knows where it lies."""
        mapping = tensor.value if isinstance(tensor, cst.Subscript) else None
        bindings = self._evaluator.flow.definitions(mapping) if isinstance(mapping, cst.Name) else []
        return bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)

    def _reads(self, loop: cst.For) -> int:
        """How many values a pass reads at least."""
        calls = (call for call in self._tree.below(loop.body, cst.Call) if method_call(call, "item") is not None)
        return sum(self._guards.guard(call, loop) is None for call in calls)

    def _are_distinct(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression holds the different values of a tensor, each of which stands for a thing of its own."""
        bindings = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
        sources = [binding.value for binding in bindings] if bindings else [expression]
        calls = (source for source in sources if isinstance(source, cst.Call))
        return any(
            method_call(call, "unique") is not None or self._evaluator.names.qualified(call.func) in _DISTINCT
            for call in calls
        )

    def _leaves(self, iterated: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        if isinstance(iterated, cst.Call) and self._evaluator.names.qualified(iterated.func) in _PASSED_ON:
            for argument in iterated.args:
                yield from self._leaves(argument.value)
        else:
            yield iterated

    def _is_tensor(self, value: Value) -> bool:
        return value.is_tensor and value.evidence >= Evidence.INFERRED and value.device is not Device.CPU

    def _is_counted(self, part: cst.Subscript, loop: cst.For) -> bool:
        """Whether ``x[i]`` or ``x[i, 0]`` is taken from a tensor by the counter of a loop."""
        if not isinstance(loop.iter, cst.Call) or not self._is_tensor(self._evaluator.value(part.value)):
            return False
        name = self._evaluator.names.qualified(loop.iter.func)
        counter: cst.BaseExpression = loop.target
        if name == "builtins.enumerate" and isinstance(counter, cst.Tuple) and counter.elements:
            counter = counter.elements[0].value
        elif name != "builtins.range" or all(literal(argument.value) is not None for argument in loop.iter.args):
            return False
        places = [each.slice.value for each in part.slice if isinstance(each.slice, cst.Index)]
        if not isinstance(counter, cst.Name) or len(places) < len(part.slice):
            return False
        names = (each for place in places for each in self._tree.descendants(place))
        return any(isinstance(each, cst.Name) and each.value == counter.value for each in names)
