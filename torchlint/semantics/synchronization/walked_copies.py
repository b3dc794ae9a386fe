"""Copies to the host whose values Python goes over, or by which it takes tensors apart."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.synchronization.host_reasons import HostReasons
from torchlint.semantics.values import Device
from torchlint.syntax.calls import identifier, method_call

_CUTTING = frozenset("split split_with_sizes tensor_split roll".split())
# What hands on the values of what it is given, and methods of arrays that do.
_PASSING = frozenset(f"builtins.{name}" for name in "enumerate zip reversed tuple list".split())
_CHANGING = frozenset("cumsum astype copy".split())
_TOGETHER = frozenset(("torch.stack", "torch.cat"))
# What many programs leave on the host, and hand to a forward pass beside the data.
_SIZES = re.compile(r"(lens?|lengths?)$|(^|_)(sizes?|counts?|splits?|shapes?|nums?)(_|$)|^n_\w+s$")
_DEPTH = 3
"""Through how many variables a tensor is followed to what it is computed of."""


def is_walked(copy: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a copy is gone over, or cuts a tensor, at once or by a name: ``for end in ends.tolist()``.

    In a function that gives tensors. What was put together first, so that the host waits once, is left out:
    ``torch.stack([x, y]).tolist()``; so is what may be on the host already, and what is wanted there.
    """
    method = method_call(copy, "tolist", "numpy")
    if method is None or (method.attr.value == "numpy" and method_call(method.value, "cpu") is None):
        return False  # perhaps of another library, which has that method too
    function = evaluator.definitions.enclosing_function(copy)
    if evaluator.names.qualified(getattr(method.value, "func", method.value)) in _TOGETHER or function is None:
        return False
    results = evaluator.definitions.results(function)
    if not results or not all(_gives_tensor(result, evaluator) for result in results):
        return False
    top = _handed_on(copy, evaluator)
    places = [top, *(_handed_on(name, evaluator) for name in evaluator.flow.named_reads(top))]
    return any(_takes_apart(place, evaluator) for place in places) and not _may_be_on_host(method.value, evaluator)


def _gives_tensor(result: cst.BaseExpression, evaluator: Evaluator) -> bool:
    parts = [element.value for element in result.elements] if isinstance(result, cst.Tuple) else [result]
    values = [evaluator.value(part) for part in parts]
    return any(value.is_tensor or value.iterated().is_tensor for value in values)


def _may_be_on_host(source: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Whether a tensor is computed of a parameter that is named for sizes, or that a call gives something unmoved.

    Not of one that all calls of the file give what is computed and named for something else.
    """
    for name in [source] if isinstance(source, cst.Name) else evaluator.tree.below(source, cst.Name):
        for binding in evaluator.flow.definitions(name):
            if binding.kind is BindingKind.PARAMETER:
                given = passed_for(binding, evaluator)
                if any(evaluator.value(each).device is Device.CPU for each in given):
                    return True
                named = [each for each in given if _SIZES.search(identifier(each))]
                if _SIZES.search(name.value) and len(named) == len(given):
                    return True
            elif depth < _DEPTH and isinstance(binding.value, cst.BaseExpression) and not binding.path:
                is_same = any(binding.node is each for each in evaluator.tree.below(binding.value, cst.Name))
                if not is_same and _may_be_on_host(binding.value, evaluator, depth + 1):
                    return True
    return False


def _handed_on(node: cst.CSTNode, evaluator: Evaluator) -> cst.CSTNode:
    """What hands on the values of a node: ``enumerate(ends.cumsum(0))``."""
    while True:
        parent = evaluator.tree.parent(node)
        call = evaluator.tree.parent(parent) if isinstance(parent, (cst.Arg, cst.Attribute)) else None
        if not isinstance(call, cst.Call):
            return node
        passes = isinstance(parent, cst.Arg) and evaluator.names.qualified(call.func) in _PASSING
        if not passes and not (parent is call.func and identifier(call.func) in _CHANGING):
            return node
        node = call


def _takes_apart(node: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a loop goes over values, and does nothing that belongs on the host, or they are sizes of parts."""
    parent = evaluator.tree.parent(node)
    if isinstance(parent, (cst.For, cst.CompFor)):
        loop = evaluator.tree.parent(parent) if isinstance(parent, cst.CompFor) else parent
        calls = evaluator.tree.below(loop, cst.Call) if loop is not None else ()
        return parent.iter is node and not any(map(HostReasons(evaluator).belongs_there, calls))
    call = evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or identifier(call.func) not in _CUTTING:
        return False
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    is_of_torch = (evaluator.names.qualified(call.func) or "").startswith("torch.")
    return is_of_torch or (owner is not None and evaluator.value(owner).is_tensor)
