"""Copies to the host whose values Python goes over, or by which it takes tensors apart."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.syntax.calls import identifier, method_call

_CUTTING = frozenset("split split_with_sizes tensor_split roll".split())
# What hands on the values of what it is given, and methods of arrays that do.
_PASSING = frozenset(f"builtins.{name}" for name in "enumerate zip reversed tuple list".split())
_CHANGING = frozenset("cumsum astype copy".split())
_TOGETHER = frozenset(("torch.stack", "torch.cat"))
# What many programs leave on the host, and hand to a forward pass beside the data.
_SIZES = re.compile(r"(^|_)(lens?|lengths?|sizes?|counts?|splits?|shapes?|nums?)(_|$)")


def is_walked(copy: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a copy is gone over, or cuts a tensor, at once or by a name: ``for end in ends.tolist()``.

    What was put together first, so that the host waits once, is left out: ``torch.stack([x, y]).tolist()``; so are
    sizes that a function is given, which may be on the host already.
    """
    method = method_call(copy, "tolist", "numpy")
    source = method.value if method is not None else None
    if method is not None and method.attr.value == "numpy" and method_call(method.value, "cpu") is None:
        return False  # perhaps of another library, which has that method too
    if source is None or evaluator.names.qualified(getattr(source, "func", source)) in _TOGETHER:
        return False
    if _is_given_size(source, evaluator):
        return False
    top = _handed_on(copy, evaluator)
    return _takes_apart(top, evaluator) or any(
        _takes_apart(_handed_on(name, evaluator), evaluator) for name in _names(top, evaluator)
    )


def _is_given_size(source: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a tensor is a parameter that is named for sizes, and no call of the file shows what computes them."""
    if not isinstance(source, cst.Name) or _SIZES.search(source.value) is None:
        return False
    given = [b for b in evaluator.flow.definitions(source) if b.kind is BindingKind.PARAMETER]
    return any(all(_is_given_size(each, evaluator) for each in passed_for(binding, evaluator)) for binding in given)


def _names(top: cst.CSTNode, evaluator: Evaluator) -> list[cst.Name]:
    """Where the variable is read into which a value is put."""
    statement = evaluator.tree.parent(top)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0].target
    if not isinstance(target, cst.Name):
        return []
    same = (name for name in evaluator.tree.named(target.value) if name is not target)
    return [name for name in same if any(b.node is target for b in evaluator.flow.definitions(name))]


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
    parent = evaluator.tree.parent(node)
    if isinstance(parent, (cst.For, cst.CompFor)):
        return parent.iter is node
    call = evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and identifier(call.func) in _CUTTING and evaluator.value(call).known
