"""Attributes: of tensors, modules, instances of classes in the file, and imported modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate import distributions, hints, names, packed
from torchlint.semantics.evaluate.stored_before import stored
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import NUMBER_ATTRIBUTES, TENSOR_ATTRIBUTES
from torchlint.semantics.values import (
    DTYPE,
    NUMBER,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Origin,
    Value,
    join,
    of,
    tensor,
)
from torchlint.syntax.calls import identifier

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


_PAIR = ("values", "indices")
"""What ``topk``, ``sort`` and ``max`` along a dimension name their results."""

_BUFFER = tensor(Evidence.INFERRED, graph=Graph.DETACHED)
_OF_ALL_TENSORS = NUMBER_ATTRIBUTES | {"device", "dtype", "shape"}


def evaluate(expression: cst.Attribute, evaluator: Evaluator) -> Value:
    """Return the value of ``owner.name``."""
    qualified = evaluator.names.qualified(expression)
    if qualified is not None:
        return names.of_qualified(qualified)
    name = expression.attr.value
    owner = evaluator.value(expression.value)
    if owner.kind is Kind.PENDING:
        return owner
    found = stored(_of_owner(owner, name, evaluator), expression, evaluator)
    if name == "grad" and not found.known and _is_of_parameter(expression, owner, evaluator):
        return _BUFFER
    if hints.is_start(found):
        found = hints.filled(found, expression, evaluator)
    return hints.borne_out(found, expression, evaluator) if found.known else hints.variable(expression, evaluator)


def _is_of_parameter(gradient: cst.Attribute, owner: Value, evaluator: Evaluator) -> bool:
    """Return whether a loop visits what may be parameters, and takes the gradient of each: ``p.grad.norm()``."""
    parameter, parent = gradient.value, evaluator.tree.parent(gradient)
    if owner.known or not isinstance(parameter, cst.Name) or (isinstance(parent, cst.Call) and parent.func is gradient):
        return False
    bindings = evaluator.flow.definitions(parameter)
    return bool(bindings) and all(b.kind is BindingKind.ITERATION and _names_parameters(b.value) for b in bindings)


def _names_parameters(source: cst.CSTNode | None) -> bool:
    """Return whether what a loop goes over is named for parameters: ``parameters``, ``self.params``."""
    return source is not None and "param" in identifier(source)


def _of_owner(owner: Value, name: str, evaluator: Evaluator) -> Value:
    if owner.kind is Kind.TENSOR:
        return of_tensor(owner, name)
    if owner.kind is Kind.BATCH:
        return _of_batch(owner, name)
    if owner.kind is Kind.SEQUENCE and len(owner.elements or ()) == 2 and name in _PAIR:
        return (owner.elements or ())[_PAIR.index(name)]
    if owner.name == packed.PACKED:
        return packed.attribute(owner, name)
    if owner.kind is Kind.NDARRAY:
        return NUMBER if name in ("ndim", "size") else of(Kind.SEQUENCE, NUMBER) if name == "shape" else owner
    if distributions.is_distribution(owner):
        return distributions.attribute(owner, name)
    if owner.definition is not None and isinstance(owner.definition, cst.ClassDef):
        found = of_instance(owner.definition, name, evaluator)
        if found.known:
            return found
    if owner.kind is Kind.MODULE and name in ("weight", "bias"):
        return tensor(owner.evidence, graph=Graph.ATTACHED, origin=Origin.PARAMETER)
    if owner.kind is Kind.MODULE and name == "module":
        return owner
    if name == "device" and owner.kind in (Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE):
        return Value(Kind.DEVICE, Evidence.INFERRED, device=Device.EITHER)
    return UNKNOWN


def _of_batch(owner: Value, name: str) -> Value:
    """The value of an attribute of a batch: of the tensor that it is, or one of the tensors that it holds."""
    if name in _OF_ALL_TENSORS:
        return of_tensor(owner, name)
    if name.startswith("num_") or name in ("batch_size", "max_len"):  # how many nodes or graphs a batch of graphs has
        return UNKNOWN
    return owner._replace(kind=Kind.TENSOR).weakened(Evidence.INFERRED)


def of_tensor(owner: Value, name: str) -> Value:
    """Return the value of an attribute of a tensor."""
    if name in ("data", "grad"):
        return owner._replace(graph=Graph.DETACHED)
    if name == "shape":
        return of(Kind.SEQUENCE, NUMBER)
    if name == "device":
        return Value(Kind.DEVICE, owner.evidence, device=owner.device)
    if name == "dtype":
        return DTYPE
    if name == "meta":  # what MONAI's tensors know of their picture stays on the host
        return tensor(Evidence.INFERRED, Device.CPU)
    if name in NUMBER_ATTRIBUTES:
        return NUMBER
    if name in TENSOR_ATTRIBUTES:
        return owner
    if owner.origin is Origin.OUTPUT:  # the fields of a structured output
        return owner._replace(origin=Origin.LOSS if name.endswith("loss") else Origin.OUTPUT).weakened(
            Evidence.INFERRED
        )
    return UNKNOWN


def of_instance(class_def: cst.ClassDef, name: str, evaluator: Evaluator) -> Value:
    """Return the join of everything that a class of the file assigns to an attribute of its instances.

    A buffer is where the model is, and adding a number changes the kind of nothing.
    """
    values = [_BUFFER] if evaluator.definitions.is_buffer(class_def, name) else []
    for binding in evaluator.definitions.attribute(class_def, name):
        if binding.value is None:
            return UNKNOWN
        value = names.unpack(evaluator.value(binding.value), binding.path)
        adds = values and value.kind is Kind.NUMBER and isinstance(evaluator.tree.parent(binding.node), cst.AugAssign)
        if not adds:
            values.append(value)
    if values:
        return join(values)
    method = evaluator.definitions.method(class_def, name)
    if method is not None:
        is_read = evaluator.definitions.is_property(method)
        return evaluator.returned(method) if is_read else Value(Kind.FUNCTION, definition=method)
    return UNKNOWN
