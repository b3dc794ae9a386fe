"""Loops that certainly run, so that what they compute is there after them: over parameters, layers, batches."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import ITERATION_WRAPPERS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call

_OF_MODELS = ("parameters", "named_parameters", "modules", "named_modules", "children", "named_children")
_VIEWS = ("items", "values", "keys")
_WRAPPERS = ITERATION_WRAPPERS | {f"builtins.{name}" for name in ("enumerate", "reversed", "list", "tuple", "sorted")}
_FULL = frozenset((Kind.BATCH, Kind.TENSOR, Kind.MODULE))
_MAX_DEPTH = 4


class CertainRuns:
    """Tells loops that run at least once from those over what may be empty."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def surely(self, node: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Return whether no loop that goes over what may be empty stands around a node, and not around the other."""
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (cst.FunctionDef, cst.Lambda)) or self._tree.within(read, ancestor):
                return True
            if isinstance(ancestor, cst.While) and self._tree.within(node, ancestor.body):
                return False
            if isinstance(ancestor, cst.For) and not self.has_items(ancestor.iter):
                return False
        return True

    def has_items(self, iterated: cst.BaseExpression, depth: int = 0) -> bool:
        """Return whether what a loop goes over is known to hold something."""
        if depth > _MAX_DEPTH:
            return False
        if isinstance(iterated, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            return any(isinstance(each, (cst.Element, cst.DictElement)) for each in iterated.elements)
        value = self._evaluator.value(iterated)
        if value.kind is Kind.DATALOADER or (value.kind in _FULL and value.evidence >= Evidence.INFERRED):
            return True
        if isinstance(iterated, (cst.GeneratorExp, cst.ListComp, cst.DictComp)):
            over = iterated.for_in
            return not over.ifs and over.inner_for_in is None and self.has_items(over.iter, depth + 1)
        if isinstance(iterated, cst.Name):
            bindings = self._evaluator.flow.definitions(iterated)
            made = [binding.part for binding in bindings]
            return bool(made) and all(each is not None and self.has_items(each, depth + 1) for each in made)
        if not isinstance(iterated, cst.Call):
            return False
        if method_call(iterated, *_OF_MODELS) is not None:
            return True
        view = method_call(iterated, *_VIEWS)
        if view is not None:
            return self.has_items(view.value, depth + 1)
        name = self._evaluator.names.qualified(iterated.func)
        if name == "builtins.range":
            return self._counts(iterated)
        if name == "builtins.zip":
            of_model = any(method_call(argument.value, *_OF_MODELS) is not None for argument in iterated.args)
            return of_model or all(self.has_items(argument.value, depth + 1) for argument in iterated.args)
        is_wrapped = name in _WRAPPERS or identifier(iterated.func) == "tqdm"
        return is_wrapped and bool(iterated.args) and self.has_items(iterated.args[0].value, depth + 1)

    def _counts(self, call: cst.Call) -> bool:
        """Whether ``range`` has something: as many steps as a variable says are some, as many as things may be none."""
        given = [argument.value for argument in call.args]
        bounds = [literal(each) for each in given]
        if len(given) == 1 and isinstance(given[0], (cst.Name, cst.Attribute)):
            return True
        known = [bound for bound in bounds if isinstance(bound, int)]
        return len(known) == len(given) > 0 and 0 not in known[2:] and len(range(*known)) > 0
