"""Models of other files that compute gradients while they run, by what they give or how they are made."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.names import argument_for
from torchlint.syntax.calls import identifier, literal

# What a model that differentiates itself gives: `energy, forces = model(positions)`, `model(batch)["forces"]`.
_DERIVED = re.compile(
    r"(^|_)(forces?|stress|virials?|grads?|gradients?|jacobians?|hessians?|score_fn|neg_d\w|d[a-z]_d[a-z])(_|$)",
    re.IGNORECASE,
)
# Models that are differentiated by their input within: physics that is learned by an energy or a residual.
_DIFFERENTIATES = re.compile(r"(^|_)(hnn|lnn|pinns?|hamiltonian\w*|lagrangian\w*|force_?field)(_|$)", re.IGNORECASE)
_OPTIMIZER = re.compile(r"(^|_)optim(izer)?(_|$)", re.IGNORECASE)
_CLASS = re.compile(r"^[A-Z]")
_MAX_DEPTH = 3


def differentiates(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call of a model visibly needs gradients: it gives some, or adapts itself."""
    if _DIFFERENTIATES.search(identifier(call.func)) is not None:
        return True
    return any(map(_DERIVED.search, _parts(call, evaluator))) or _adapts(call.func, evaluator, 0)


def _parts(call: cst.Call, evaluator: Evaluator) -> Iterator[str]:
    """Yield what the parts of a result are called: the variables that hold them, and keys by which they are read."""
    tree, statement = evaluator.tree, evaluator.flow.statement(call)
    yield from _key(tree.parent(call))
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        held = target.target
        yield from (name.value for name in tree.below(held, cst.Name))
        yield identifier(held)
        for read in tree.named(held.value) if isinstance(held, cst.Name) else ():
            if any(binding.node is held for binding in evaluator.flow.definitions(read)):
                yield from _key(tree.parent(read))


def _key(read: cst.CSTNode | None) -> Iterator[str]:
    """Yield by what something is read: ``out["forces"]``, ``out.forces``, ``out[KEYS.FORCES]``."""
    if isinstance(read, cst.Attribute):
        yield read.attr.value
    elif isinstance(read, cst.Subscript) and isinstance(read.slice[0].slice, cst.Index):
        index = read.slice[0].slice.value
        yield identifier(index) or str(literal(index))


def _adapts(model: cst.BaseExpression, evaluator: Evaluator, depth: int) -> bool:
    """Whether a model was given an optimizer where it was made: it adapts itself to what it sees."""
    bindings = evaluator.flow.definitions(model) if isinstance(model, cst.Name) and depth < _MAX_DEPTH else []
    for binding in bindings:
        if binding.kind is BindingKind.PARAMETER:
            if any(_adapts(given, evaluator, depth + 1) for given in _given(binding.node, evaluator)):
                return True
        elif isinstance(binding.value, cst.Call) and not binding.path and _CLASS.match(identifier(binding.value.func)):
            given = (argument.value for argument in binding.value.args)
            if any(_OPTIMIZER.search(identifier(g.func if isinstance(g, cst.Call) else g)) for g in given):
                return True
    return False


def _given(parameter: cst.CSTNode, evaluator: Evaluator) -> Iterator[cst.BaseExpression]:
    """Yield what the calls of the file pass for a parameter."""
    held, function = evaluator.tree.parent(parameter), evaluator.tree.enclosing(parameter, cst.FunctionDef)
    if not isinstance(held, cst.Param) or function is None:
        return
    for call in evaluator.callers(function):
        given = argument_for(function, held, call, evaluator)
        if given is not None:
            yield given
