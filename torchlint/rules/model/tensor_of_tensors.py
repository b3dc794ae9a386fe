"""`torch.tensor` is given a tensor, or a list of NumPy arrays.

`torch.tensor(x)` of a tensor, and `torch.tensor([a, b])` or `torch.tensor([f(x) for x in xs])` of arrays.

## Why it costs

`torch.tensor` reads a list number by number, through Python: of 32 arrays of 84 by 84 numbers torch 2.13 made a tensor
in 38 ms on the CPU, and in 0.07 ms of `numpy.stack` of the same arrays. It warns of that ("extremely slow") once in a
process. A tensor it copies, and cuts it from its graph, without the code saying so; it warns of that as well.

## What to write instead

`x.detach().clone()` where a copy without a graph is meant, `x.clone()` where the gradient is to come through, and `x`
itself where neither is needed. `torch.as_tensor(numpy.stack(arrays))` for arrays of one shape.

The fix is unsafe: a subclass of tensors stays what it is, arrays of several dtypes are converted to their common one by
the rules of NumPy, an empty list gives float64, and the warning goes.

## When to ignore it

Where the list holds two or three short arrays and is made once.

Holds for all supported versions of torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.values import Origin
from torchlint.syntax.calls import Arguments, identifier, literal, method_call
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.tensors.array import Array

CONSTRUCTOR = "torch.tensor"
OPTIONS = ("dtype", "device")
ASKS = ("is_tensor", "isinstance", "hasattr", "type")

rule = Rule(
    code="TL420",
    name="tensor-of-tensors",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`torch.tensor` of a tensor, or of a list of arrays",
    triggers=Triggers.all_of("torch", "tensor"),
    examples=(
        Example(
            bad="import torch\n\nx = torch.ones(3)\ny = torch.tensor(x)\n",
            good="import torch\n\nx = torch.ones(3)\ny = x.detach().clone()\n",
        ),
        Example(
            bad="import numpy as np\nimport torch\n\npair = torch.tensor([np.zeros(3), np.ones(3)])\n",
            good="import numpy as np\nimport torch\n\npair = torch.as_tensor(np.stack([np.zeros(3), np.ones(3)]))\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.tensor.html",),
    documentation=__doc__,
    silences={
        "not-certain": "Nothing says for certain that it is a tensor, or that the items are arrays.",
        "parameter": "It is a parameter: callers give numbers too, or nobody would wrap it.",
        "asked": "The code around asks whether it is a tensor, so that here it is none.",
        "numbers": "The list holds numbers.",
        "single-array": "It is one array: TL208 reports that copy.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=(CONSTRUCTOR,))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report `torch.tensor` of what is a tensor already, or of a list of arrays."""
    if model.callee(call) != CONSTRUCTOR:
        return
    given = model.arguments(call)
    data = given.get("data")
    if data is None or given.open or rule.silent("test", model.in_test(call)):
        return
    arrays = _arrays(data, model)
    if arrays:
        yield Finding(
            call,
            f"`{model.code(call.func)}` reads the arrays in {model.shown(data, 'the list')} number by number, through "
            "Python. `torch.as_tensor(numpy.stack(..))` copies them as they lie in memory.",
            _stacked(call, data, arrays, given, model),
        )
        return
    value = model.value(data)
    # The members of a batch need not be tensors: a collate function leaves sizes and names as they are.
    certain = value.is_tensor and value.evidence >= Evidence.INFERRED and value.origin is not Origin.BATCH
    if rule.silent("not-certain", not certain):
        return
    if rule.silent("parameter", _is_parameter(data, model)):
        return
    if rule.silent("asked", _is_asked(data, call, model)):
        return
    yield Finding(
        call,
        f"{model.shown(data, 'The argument')} is a tensor: `{model.code(call.func)}` copies it and cuts it from its "
        "graph, and warns of it. Write `.detach().clone()` if that is meant.",
        _cloned(call, data, given, value.evidence, model),
    )


def _arrays(data: cst.BaseExpression, model: Model) -> list[Array]:
    """Return the arrays that a list holds, none unless all that it holds are arrays."""
    if isinstance(data, (cst.List, cst.Tuple)):
        items = [element.value for element in data.elements]
    elif isinstance(data, (cst.ListComp, cst.GeneratorExp)):
        items = [data.elt]
    else:
        return []
    found = [model.arrays.array(item) for item in items]
    arrays = [array for array in found if array is not None]
    return arrays if len(arrays) == len(found) else []


def _is_parameter(data: cst.BaseExpression, model: Model) -> bool:
    if not isinstance(data, cst.Name):
        return False
    return any(binding.kind is BindingKind.PARAMETER for binding in model.reaching(data))


def _is_asked(data: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Whether the function asks what the data is before this."""
    around = model.enclosing_function(call) or model.tree.module
    tests = (node for node in model.descendants(around) if isinstance(node, cst.Call) and node.args)
    return any(identifier(test.func) in ASKS and is_same(test.args[0].value, data) for test in tests)


def _stacked(
    call: cst.Call, data: cst.BaseExpression, arrays: list[Array], given: Arguments, model: Model
) -> Fix | None:
    """Return the fix that lets NumPy put the arrays together."""
    constructor = model.spelling("torch.as_tensor", call)
    joins = "stack" if isinstance(data, cst.List) else "array"
    function = model.spelling(f"numpy.{joins}", call)
    if (
        constructor is None
        or function is None
        or data.lpar
        or not given.named.keys() <= {"data", *OPTIONS}
        or model.is_partial(call)
    ):
        return None
    return Fix(
        "Stack the arrays first",
        (Replace(call.func, constructor), Replace(data, f"{function}({model.code(data)})")),
        Safety.UNSAFE,
        "Arrays of several dtypes get the one that NumPy chooses, and an empty list float64.",
        min(array.evidence for array in arrays),
    )


def _cloned(call: cst.Call, data: cst.BaseExpression, given: Arguments, evidence: Evidence, model: Model) -> Fix | None:
    """Return the fix that says what the call does."""
    if not given.named.keys() <= {"data", *OPTIONS, "requires_grad"} or model.is_partial(call):
        return None
    if "device" not in given.named and (model.on_default_device(call) or model.device_context(call)):
        return None  # it copies to that device
    gradient = given.get("requires_grad")
    if gradient is not None and not isinstance(literal(gradient), bool):
        return None
    code = model.code(data)
    if not isinstance(data, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) and not data.lpar:
        code = f"({code})"
    options = [f"{name}={model.code(given.named[name])}" for name in given.named if name in OPTIONS]
    copy = f"to({', '.join(options)}, copy=True)" if options else "clone()"
    cut = "" if method_call(data, "detach") is not None else ".detach()"
    ending = ".requires_grad_()" if literal(gradient) is True else ""
    return Fix(
        "Say that it is a copy without a graph",
        (Replace(call, f"{code}{cut}.{copy}{ending}"),),
        Safety.UNSAFE,
        "A tensor of another class stays what it is, on its device whatever the default is, and the warning goes.",
        evidence,
    )
