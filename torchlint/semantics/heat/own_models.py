"""Models that each pass of a loop makes, takes or loads for itself."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

_HANDED_BACK = frozenset("to cuda cpu eval train half float double bfloat16 requires_grad_ share_memory xpu".split())
# What hands back the model that it is given, or one that is kept.
_WRAPS = re.compile(r"wrap|parallel|compile|prepare|^getattr$|^next$|^partial$|^get$|^pop$", re.IGNORECASE)
_LOADS = re.compile(
    r"^_*(re)?(load|restore)(_\w*(state|ckpt|checkpoint|weights?|params|parameters|pretrained|model|snapshot)\w*|_from_\w+)?$"
)
_COPIES = re.compile(r"copy|clone|fit|train|make|build|create|get_peft", re.IGNORECASE)
_MAX_DEPTH = 3


def is_of_pass(called: cst.BaseExpression, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether each pass of a loop runs another model.

    ``for name in names: model = models[name]``, ``for model in models``, ``model = Net()``, ``model = fit(seed)``,
    ``model.load_state_dict(torch.load(path))``
    """
    if isinstance(called, cst.Name) and (_is_taken(called, loop, evaluator) or _is_made(called, loop, evaluator, 0)):
        return True
    return _is_assigned(called, loop, evaluator) or _is_loaded(called, loop, evaluator)


def _is_taken(called: cst.Name, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Whether a model is what a loop takes, or computed from it in the pass."""
    if not isinstance(loop, cst.For):
        return False
    targets = {
        node.value for node in (loop.target, *evaluator.tree.descendants(loop.target)) if isinstance(node, cst.Name)
    }
    bindings = evaluator.flow.definitions(called)
    if bindings and all(evaluator.tree.within(binding.node, loop.target) for binding in bindings):
        return True
    return bool(bindings) and all(
        evaluator.tree.within(binding.node, loop.body)
        and binding.value is not None
        and any(name.value in targets for name in evaluator.tree.below(binding.value, cst.Name))
        for binding in bindings
    )


def _is_made(name: cst.Name, loop: cst.For | cst.While, evaluator: Evaluator, depth: int) -> bool:
    """Whether all that a name may be bound to is made in the pass."""
    bindings = evaluator.flow.definitions(name)
    return bool(bindings) and all(_is_made_at(binding, loop, evaluator, depth) for binding in bindings)


def _is_made_at(binding: Binding, loop: cst.For | cst.While, evaluator: Evaluator, depth: int) -> bool:
    if binding.kind is not BindingKind.ASSIGNMENT or binding.value is None or depth == _MAX_DEPTH:
        return False
    return evaluator.tree.within(binding.node, loop.body) and _makes(binding.value, loop, evaluator, depth)


def _makes(value: cst.BaseExpression, loop: cst.For | cst.While, evaluator: Evaluator, depth: int) -> bool:
    """Whether an expression makes a model: by a call that does not hand back one that was there."""
    while (method := method_call(value, *_HANDED_BACK)) is not None:
        value = method.value
    if isinstance(value, cst.IfExp):
        return all(_makes(each, loop, evaluator, depth) for each in (value.body, value.orelse))
    if isinstance(value, cst.Name):
        return _is_made(value, loop, evaluator, depth + 1)
    if not isinstance(value, cst.Call):
        return False
    is_getter = isinstance(value.func, cst.Attribute) and value.func.attr.value.startswith("get")
    if is_getter or _WRAPS.search(identifier(value.func)):
        return bool(value.args) and _makes(value.args[0].value, loop, evaluator, depth)
    given = [a.value for a in value.args if evaluator.value(a.value).kind is Kind.MODULE]
    if given and not _COPIES.search(identifier(value.func)):  # `set_dropout(model, 0.1)`
        return all(_makes(each, loop, evaluator, depth) for each in given)
    return True


def _is_assigned(called: cst.BaseExpression, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Whether each pass puts a new model where the called one is kept: ``self.model = Net()``."""
    if not isinstance(called, cst.Attribute):
        return False
    made = (
        statement.value
        for statement in evaluator.tree.below(loop.body, cst.Assign)
        if any(is_same(target.target, called) for target in statement.targets)
    )
    return any(_makes(value, loop, evaluator, 0) for value in made)


def _is_loaded(called: cst.BaseExpression, loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Whether each pass loads the weights of a model: ``model.load_state_dict(...)``, ``load_checkpoint(model, path)``.

    The weights of another model of the program are no new ones, as of a target network.
    """
    for call in evaluator.tree.below(loop.body, cst.Call):
        if not _LOADS.match(identifier(call.func)) or any(map(_is_of_model, call.args)):
            continue
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        given = [argument.value for argument in call.args]
        if any(each is not None and is_same(each, called) for each in (receiver, *given)):
            return True
    return False


def _is_of_model(argument: cst.Arg) -> bool:
    return method_call(argument.value, "state_dict") is not None
