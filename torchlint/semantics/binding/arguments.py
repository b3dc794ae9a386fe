"""Which parameter of a function of the file takes which argument of a call."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions, parameters

# Methods that are called by the object, or its class, itself.
_CALLED_BY_OBJECT = ("__init__", "__call__", "forward")


def argument_for(
    function: cst.FunctionDef, parameter: cst.Param, call: cst.Call, definitions: Definitions
) -> cst.BaseExpression | None:
    """Return the expression that a call passes for a parameter, None where it is not visible."""
    place = position(function, parameter, call, definitions)
    for index, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword is not None:
            if argument.keyword.value == parameter.name.value:
                return argument.value
        elif index == place:
            return argument.value
    return None


def parameter_for(
    function: cst.FunctionDef, argument: cst.Arg, call: cst.Call, definitions: Definitions
) -> cst.Param | None:
    """Return the parameter for which a call passes an argument, None where it is not visible."""
    if argument.star:
        return None
    if argument.keyword is not None:
        name = argument.keyword.value
        return next((each for each in parameters(function) if each.name.value == name), None)
    before = call.args[: next(index for index, given in enumerate(call.args) if given is argument)]
    place = len([given for given in before if given.keyword is None]) + _takes_object(function, call, definitions)
    taken = (*function.params.posonly_params, *function.params.params)
    return taken[place] if place < len(taken) and not any(given.star for given in before) else None


def position(function: cst.FunctionDef, parameter: cst.Param, call: cst.Call, definitions: Definitions) -> int:
    """Return the place of a parameter among the arguments of a call, -1 if it has none."""
    names = [each.name.value for each in (*function.params.posonly_params, *function.params.params)]
    if parameter.name.value not in names:
        return -1
    return names.index(parameter.name.value) - _takes_object(function, call, definitions)


def _takes_object(function: cst.FunctionDef, call: cst.Call, definitions: Definitions) -> bool:
    """Whether the first parameter is the object of which a call runs a method, and no argument."""
    if definitions.owner(function) is None or definitions.is_static(function):
        return False
    return isinstance(call.func, cst.Attribute) or function.name.value in _CALLED_BY_OBJECT
