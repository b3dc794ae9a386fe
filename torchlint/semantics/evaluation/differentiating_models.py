"""Models of other files that compute gradients while they run, by what they give or how they are made."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call

# What a model that differentiates itself gives: `energy, forces = model(positions)`, `model(batch)["forces"]`.
_DERIVED = re.compile(
    r"(^|_)(forces?|stress|virials?|grads?|gradients?|jacobians?|hessians?|score_fn|neg_d\w|d[a-z]_d[a-z])(_|$)",
    re.IGNORECASE,
)
# What else is read of the result of an implicit surface: the gradients of its field.
_FIELD_GRADIENT_KEY = "normal_map"
# Forces and energies by their letters, which mean much else where one stands alone.
_FORCE_LETTER = re.compile(r"f_(pred|hat|out)|pred_f|F")
_ENERGY_LETTER = re.compile(r"e_(pred|hat|out)|pred_e|E")
# What the keys of a model of atoms are called.
_FORCE_KEY = re.compile(r"(pred_|atomic_)?(forces?|virials?)")
# Models that are differentiated by their input within: physics that is learned by an energy or a residual.
_DIFFERENTIATES = re.compile(r"(^|_)(hnn|lnn|pinns?|hamiltonian\w*|lagrangian\w*|force_?field)(_|$)", re.IGNORECASE)
_OPTIMIZER = re.compile(r"(^|_)optim(izer)?(_|$)", re.IGNORECASE)
_KEPT = ("to", "cuda", "eval", "float", "double")
_CLASS = re.compile(r"^[A-Z]")
_MAX_DEPTH = 3


def is_derived(name: str) -> bool:
    """Return whether something is named for a derivative: ``forces_from_energy``."""
    return _DERIVED.search(name) is not None


def differentiates(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call of a model visibly needs gradients: it gives some, or adapts itself."""
    if any(map(is_derived, (*_names(call, evaluator), *_asked(call), *_method(call, evaluator)))):
        return True
    keys = list(_keys(call, evaluator))
    if any(is_derived(key) or key == _FIELD_GRADIENT_KEY for key in keys):
        return True
    short = (*keys, *_names(call, evaluator))
    if any(map(_FORCE_LETTER.fullmatch, short)) and any(map(_ENERGY_LETTER.fullmatch, short)):
        return True
    if _speaks_of_forces(call, evaluator):
        return True
    makers = list(_makers(call.func, evaluator, 0))
    names = (identifier(call.func), *(identifier(made.func) for made in makers))
    return any(map(_DIFFERENTIATES.search, names)) or any(map(_adapts, makers))


def _speaks_of_forces(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether the routine around a call has keys for what models of atoms give: ``{"forces": 0}``."""
    function = evaluator.definitions.enclosing_function(call)
    texts = evaluator.tree.below(function.body, cst.SimpleString) if function is not None else ()
    return any(_FORCE_KEY.fullmatch(str(literal(text))) is not None for text in texts)


def _asked(call: cst.Call) -> Iterator[str]:
    """Yield what a call asks a model for by keywords: ``compute_forces=True``."""
    for argument in call.args:
        if argument.keyword is not None and literal(argument.value) is True:
            yield argument.keyword.value


def _method(call: cst.Call, evaluator: Evaluator) -> Iterator[str]:
    """Yield what a method is called by which a call runs a model: ``net.predict_forces(x)``."""
    if isinstance(call.func, cst.Attribute) and evaluator.value(call.func).kind is not Kind.MODULE:
        yield call.func.attr.value


def _names(call: cst.Call, evaluator: Evaluator) -> Iterator[str]:
    """Yield what the variables are called that hold the parts of a result."""
    statement = evaluator.flow.statement(call)
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        yield from (name.value for name in evaluator.tree.below(target.target, cst.Name))
        yield identifier(target.target)


def _keys(call: cst.Call, evaluator: Evaluator) -> Iterator[str]:
    """Yield the keys by which the parts of a result are read."""
    tree, statement = evaluator.tree, evaluator.flow.statement(call)
    yield from _key(tree.parent(call))
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        held = target.target
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


def _makers(model: cst.BaseExpression, evaluator: Evaluator, depth: int) -> Iterator[cst.Call]:
    """Yield the calls of classes that may make a model, in the callers of its function too."""
    bindings = evaluator.flow.definitions(model) if isinstance(model, cst.Name) and depth < _MAX_DEPTH else []
    for binding in bindings:
        if binding.kind is BindingKind.PARAMETER:
            for passed in passed_for(binding, evaluator):
                yield from _makers(passed, evaluator, depth + 1)
        elif not binding.path:
            yield from _class_called(binding.value)
    if depth and isinstance(model, cst.Call):
        yield from _class_called(model)


def _class_called(made: cst.CSTNode | None) -> Iterator[cst.Call]:
    while (method := method_call(made, *_KEPT)) is not None:
        made = method.value
    if isinstance(made, cst.Call) and _CLASS.match(identifier(made.func)):
        yield made


def _adapts(made: cst.Call) -> bool:
    """Whether a model is given an optimizer where it is made: it adapts itself to what it sees."""
    given = (argument.value for argument in made.args)
    return any(_OPTIMIZER.search(identifier(g.func if isinstance(g, cst.Call) else g)) for g in given)
