"""Functions that go through lists and dictionaries of tensors by calling themselves: ``recursively_apply(f, data)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier

_SEQUENCES = frozenset(("list", "tuple", "List", "Tuple", "Sequence"))
_MAPPINGS = frozenset(("dict", "Dict", "OrderedDict", "Mapping", "MutableMapping"))
_TESTS = frozenset(("builtins.isinstance", "builtins.issubclass"))
# Walkers of libraries, which take a function and data.
_WALKERS = frozenset(
    (
        "torch.utils._pytree.tree_map",
        "torch.utils._pytree.tree_map_only",
        "lightning_utilities.core.apply_func.apply_to_collection",
        "accelerate.utils.recursively_apply",
        "ignite.utils.apply_to_tensor",
    )
)


def walks_containers(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function calls itself for what the lists and the dictionaries hold that it is given."""
    if not any(evaluator.tree.within(call, function) for call in evaluator.callers(function)):
        return False
    tests = (c for c in evaluator.tree.below(function, cst.Call) if evaluator.names.qualified(c.func) in _TESTS)
    types = {identifier(name) for test in tests for name in _types(test)}
    goes_through = not types.isdisjoint(_SEQUENCES) or _makes_alike(function, evaluator)
    return goes_through and not types.isdisjoint(_MAPPINGS)


def _makes_alike(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function makes of anything else something of the same type: ``type(x)(move(o) for o in x)``."""
    returned = (each.value for each in evaluator.tree.below(function.body, cst.Return))
    made = (value.func for value in returned if isinstance(value, cst.Call) and len(value.args) == 1)
    return any(isinstance(each, cst.Call) and evaluator.names.qualified(each.func) == "builtins.type" for each in made)


def applies_to_each(applied: cst.FunctionDef | cst.Lambda, data: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is handed to a walker, to be applied to each tensor that ``data`` is given."""
    given = {parameter.name.value for parameter in parameters(data)}
    for call in evaluator.tree.below(data.body, cst.Call):
        if call.args and not any(argument.star for argument in call.args[:2]):
            values = [argument.value for argument in call.args]
            handed = [each for each in values if each is applied or evaluator.definitions.definition(each) is applied]
            others = (each.value for each in values if isinstance(each, cst.Name) and each not in handed)
            if handed and not given.isdisjoint(others) and _is_walker(call, evaluator):
                return True
    return False


def _is_walker(call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a call goes through what it is given, and calls one of its arguments for each tensor there."""
    if evaluator.names.qualified(call.func) in _WALKERS:
        return True
    function = evaluator.definitions.definition(call.func)
    if not isinstance(function, cst.FunctionDef) or not walks_containers(function, evaluator):
        return False
    called = (inner.func for inner in evaluator.tree.below(function.body, cst.Call))
    names = (each for each in called if isinstance(each, cst.Name))
    return any(b.kind is BindingKind.PARAMETER for each in names for b in evaluator.flow.definitions(each))


def _types(test: cst.Call) -> list[cst.BaseExpression]:
    """The types that a test asks for."""
    given = test.args[1].value if len(test.args) == 2 else None
    if isinstance(given, cst.Tuple):
        return [element.value for element in given.elements]
    return [given] if given is not None else []
