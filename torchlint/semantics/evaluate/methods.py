"""Method calls on values whose kind is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evaluate import containers, distributions
from torchlint.semantics.evaluate.functions import made_graph, named_device, result_dtype
from torchlint.semantics.evaluate.operators import combined
from torchlint.semantics.evaluate.type_hints import is_tensor_or_data
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables import torch_api as api
from torchlint.semantics.values import (
    NDARRAY,
    NUMBER,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Origin,
    Value,
    of,
    sequence,
    tensor,
)
from torchlint.syntax.calls import bind, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_SAME_VALUES = frozenset(
    "clone float half double long int bool bfloat16 contiguous squeeze unsqueeze view reshape flatten permute t "
    "pin_memory".split()
)
_OF_NO_TENSOR = frozenset(("has", "has_value", "set_value", "append", "copy", "update", "sizes", "sparse_sizes"))
_OF_TENSORS = api.TENSOR_ONLY | {"to", "cuda", "cpu"}
_GIVES_TENSOR = api.TENSOR_ONLY - {"expand", "contiguous", "isfinite", "isinf", "bmm", "logsumexp"}
_REDUCES = frozenset(
    "max min median sum mean argmax argmin softmax log_softmax norm std var any all cumsum prod amax amin".split()
)
_PREPARING = frozenset(("prepare", "setup", "setup_dataloaders", "prepare_data_loader"))
_CLIPPING = ("clip_grad_norm_", "clip_grad_norm")
"""Methods that give the norm of all gradients: of sharded models, Accelerate, fairseq's optimizers."""

_INTEGERS = frozenset(f"torch.{name}" for name in "long int short bool uint8 int8 int16 int32 int64".split())
_NEXT = ("next", "__next__")
_DICTIONARY = "torch.nn.ModuleDict"


def evaluate(call: cst.Call, method: cst.Attribute, evaluator: Evaluator) -> Value:
    """Return what ``owner.method(...)`` gives."""
    owner = evaluator.value(method.value)
    name = method.attr.value
    if name in api.STRING_ONLY:
        return NUMBER if name.startswith("is") or name.endswith("with") else Value(Kind.STRING)
    if owner.kind is Kind.TENSOR:
        is_shown = name == "detach" and not call.args  # whatever it is called: nothing else is detached
        return of_tensor(call, owner.borne_out() if is_shown else owner, name, evaluator)
    if owner.kind is Kind.PENDING:
        return owner
    if owner.kind is Kind.BATCH:
        return _of_batch(call, owner, name, evaluator)
    if owner.kind is Kind.NDARRAY:
        return NUMBER if name in ("item", "mean", "sum", "max", "min", "std") else owner
    if owner.kind is Kind.NUMBER:
        return NUMBER
    if owner.kind is Kind.MAPPING:
        return _of_mapping(containers.element(method.value, owner, evaluator), name, call)
    if owner.kind is Kind.STRING:
        return Value(Kind.STRING)
    if owner.kind is Kind.CLASS and name == "load_from_checkpoint":  # of Lightning
        return Value(Kind.MODULE, Evidence.INFERRED, definition=owner.definition)
    if name in _CLIPPING and owner.kind in (Kind.UNKNOWN, Kind.MODULE, Kind.OPTIMIZER):
        return tensor(Evidence.NAMED, Device.EITHER, Graph.DETACHED)
    if owner.kind is Kind.MODULE:
        return _of_module(owner, name)
    if distributions.is_distribution(owner):
        given = distributions.method(owner, name)
        return given._replace(graph=Graph.DETACHED) if evaluator.gradients.disabled(call) else given
    if owner.kind is Kind.SCALER:
        return evaluator.value(call.args[0].value) if name == "scale" and call.args else UNKNOWN
    if owner.kind is Kind.DATALOADER and name == "__iter__":
        return owner
    if owner.kind is Kind.ITERATOR and name in _NEXT:
        return owner.iterated()
    if name in _PREPARING:
        return _prepared(call, method.value, evaluator)
    if name in ("gather", "gather_for_metrics") and len(call.args) == 1:  # of Accelerate
        return _gathered(evaluator.value(call.args[0].value))
    if name == "unwrap_model" and call.args:
        wrapped = evaluator.value(call.args[0].value)
        return (wrapped if wrapped.kind is Kind.MODULE else Value(Kind.MODULE)).borne_out()
    if (name == "item" and not call.args) or (name == "size" and len(call.args) == 1) or name == "numel":
        return NUMBER.weakened(Evidence.INFERRED)
    place = Device.CPU if method_call(method.value, "cpu") is not None else Device.UNKNOWN
    if name == "detach" and not call.args:
        return tensor(Evidence.INFERRED, place, graph=Graph.DETACHED)
    if name in _OF_TENSORS and is_tensor_or_data(method.value, evaluator):
        return of_tensor(call, tensor(Evidence.INFERRED, place), name, evaluator)
    if name == "backward":
        return Value(Kind.NONE)
    if name == "eval" and not call.args and evaluator.names.qualified(method) is None:
        return Value(Kind.MODULE, Evidence.INFERRED)  # `Net().to(device).eval()`
    is_unknown = owner.kind is Kind.UNKNOWN and evaluator.names.qualified(method) is None
    gives_tensor = name in _GIVES_TENSOR or (name in _REDUCES and _names_dimension(call))
    if is_unknown and (gives_tensor or (name == "to" and _is_cast_to_integers(call, evaluator))):
        return of_tensor(call, tensor(Evidence.INFERRED, place), name, evaluator)
    return UNKNOWN


def _is_cast_to_integers(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether ``x.to(torch.int8)`` makes whole numbers, which no module takes."""
    return any(evaluator.value(argument.value).name in _INTEGERS for argument in call.args)


def _names_dimension(call: cst.Call) -> bool:
    """Return whether arguments are called as only torch does: NumPy has an axis, xarray a name for each dimension."""
    named = ((a.keyword.value, literal(a.value)) for a in call.args if a.keyword is not None)
    return any(name in ("dim", "keepdim") and isinstance(value, int) for name, value in named)


def _of_batch(call: cst.Call, owner: Value, name: str, evaluator: Evaluator) -> Value:
    if name in ("to", "cuda", "cpu"):
        moved = of_tensor(call, owner._replace(kind=Kind.TENSOR), name, evaluator)
        return owner._replace(device=moved.device)
    if name in ("items", "values"):
        value = owner._replace(kind=Kind.TENSOR)
        return of(Kind.ITERATOR, sequence(Value(Kind.STRING), value) if name == "items" else value)
    return of_tensor(call, owner._replace(kind=Kind.TENSOR), name, evaluator)


def _of_mapping(element: Value, name: str, call: cst.Call) -> Value:
    if name == "items":
        return of(Kind.ITERATOR, sequence(Value(Kind.STRING), element))
    if name in ("values", "keys"):
        return of(Kind.ITERATOR, element if name == "values" else Value(Kind.STRING))
    if len(call.args) == 2 and isinstance(literal(call.args[1].value), str):
        return UNKNOWN  # `batch.get("name", "train")` of a dictionary that is said to hold tensors
    return element if name in ("get", "pop", "setdefault") else UNKNOWN


def _of_module(owner: Value, name: str) -> Value:
    if name == "eval" and owner.evidence is Evidence.NAMED:
        return owner.borne_out()  # `encoder.to(device).eval()`
    if name in ("to", "cuda", "cpu", "train", "eval", "half", "float", "double", "requires_grad_", "apply", "bfloat16"):
        return owner
    if name in ("parameters", "buffers"):
        return of(Kind.ITERATOR, tensor(owner.evidence, graph=Graph.ATTACHED, origin=Origin.PARAMETER))
    if name in ("named_parameters", "named_buffers"):
        parameter = tensor(owner.evidence, graph=Graph.ATTACHED, origin=Origin.PARAMETER)
        return of(Kind.ITERATOR, sequence(Value(Kind.STRING), parameter))
    if name in ("modules", "children") or (name == "values" and owner.name == _DICTIONARY):
        return of(Kind.ITERATOR, Value(Kind.MODULE, owner.evidence))
    if name in ("named_modules", "named_children") or (name == "items" and owner.name == _DICTIONARY):
        return of(Kind.ITERATOR, sequence(Value(Kind.STRING), Value(Kind.MODULE, owner.evidence)))
    if name in ("forward", "encode", "decode", "sample", "generate", "forward_features"):
        graph = Graph.DETACHED if name in ("generate", "sample") else Graph.UNKNOWN
        return tensor(min(owner.evidence, Evidence.INFERRED), graph=graph, origin=Origin.OUTPUT)
    return UNKNOWN


def of_tensor(call: cst.Call, owner: Value, name: str, evaluator: Evaluator) -> Value:
    """Return what a method of a tensor gives."""
    if name in api.NUMBER_METHODS:
        return (
            of(Kind.SEQUENCE, NUMBER)
            if name in ("size", "stride") and not call.args
            else NUMBER.weakened(owner.evidence)
        )
    if name in ("items", "keys", "values"):
        return _of_mapping(owner, name, call)  # an output that is a mapping of tensors
    if name in _OF_NO_TENSOR:
        return UNKNOWN  # an annotation that is not quite true, or a sparse tensor of another library
    if name == "tolist":
        return of(Kind.SEQUENCE, NUMBER.weakened(owner.evidence))
    if name == "numpy":
        return NDARRAY.weakened(owner.evidence)
    if name == "cpu":
        return owner._replace(device=Device.CPU)
    if name == "cuda":
        return owner._replace(device=Device.ACCELERATOR)
    if name == "type" and not call.args:
        return Value(Kind.STRING)
    if name in ("to", "type", "type_as"):
        return _converted(call, owner, name, evaluator)
    if name in ("detach", "detach_"):
        return owner._replace(graph=Graph.DETACHED)
    if name == "requires_grad_":
        return owner._replace(graph=Graph.UNKNOWN if call.args else Graph.ATTACHED)
    if name == "backward":
        return Value(Kind.NONE)
    if name == "sample":  # what a model gives is a distribution then, whose samples may hold no graph
        return owner._replace(graph=Graph.UNKNOWN)
    arguments = [evaluator.value(a.value) for a in call.args if not a.star]
    found = combined([owner, *arguments]) if name not in _SAME_VALUES else owner
    found = found._replace(origin=owner.origin) if owner.origin is Origin.LOSS else found
    if evaluator.gradients.disabled(call):
        found = found._replace(graph=Graph.DETACHED)
    found = found._replace(dtype=result_dtype(call, name, owner.dtype, evaluator))
    if name in api.DETACHED_RESULTS:
        kept = name in _SAME_VALUES and owner.origin is Origin.BATCH
        return found._replace(graph=made_graph(bind(call.args)), origin=Origin.BATCH if kept else Origin.UNKNOWN)
    if name in api.LIST_METHODS:
        return of(Kind.SEQUENCE, found)
    takes_dimension = bool(arguments) and not arguments[0].is_tensor
    if name in api.SEQUENCE_METHODS and (takes_dimension or name in ("topk", "sort", "kthvalue")):
        return sequence(found, found._replace(graph=Graph.DETACHED))
    return found


def _converted(call: cst.Call, owner: Value, name: str, evaluator: Evaluator) -> Value:
    target = bind(call.args).get("device")
    if target is None and call.args and call.args[0].keyword is None:
        target = call.args[0].value
    value = evaluator.value(target) if target is not None else UNKNOWN
    if value.kind is Kind.DTYPE:
        return owner._replace(dtype=value.name)
    if value.is_tensor or value.kind is Kind.BATCH:
        return owner._replace(device=value.device)
    if name == "type":
        on_accelerator = (value.name or "").startswith("torch.cuda.") or str(value.literal).startswith("torch.cuda.")
        return owner._replace(device=Device.ACCELERATOR) if on_accelerator else owner
    if target is not None and bind(call.args).get("dtype") is target:
        return owner
    device = named_device(value)
    return owner._replace(device=device if value.known else Device.UNKNOWN)


def leaves_batches(accelerator: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether an accelerator is told to leave batches where they are: ``device_placement=False``."""
    made: list[cst.CSTNode | None] = []
    if isinstance(accelerator, cst.Name):
        made = [binding.value for binding in evaluator.flow.definitions(accelerator)]
    elif isinstance(accelerator, cst.Attribute) and isinstance(accelerator.value, cst.Name):
        owner = evaluator.definitions.receiver(accelerator.value)
        bound = evaluator.definitions.attribute(owner, accelerator.attr.value) if owner is not None else []
        made = [binding.value for binding in bound]
    return bool(made) and all(
        isinstance(call, cst.Call) and literal(bind(call.args).get("device_placement")) is False for call in made
    )


def _gathered(given: Value) -> Value:
    """What the processes gather of a tensor, or of each of several: on the device, without a graph."""
    if given.elements is not None:
        return sequence(*map(_gathered, given.elements))
    if not given.is_tensor:
        return UNKNOWN
    return tensor(min(given.evidence, Evidence.INFERRED), device=Device.ACCELERATOR, graph=Graph.DETACHED)


def _prepared(call: cst.Call, accelerator: cst.BaseExpression, evaluator: Evaluator) -> Value:
    """What accelerate and Fabric hand back: the same objects, the loaders yielding batches on the device."""
    prepared = []
    asked = bind(call.args).get("device_placement")
    if isinstance(asked, (cst.List, cst.Tuple)):
        moves = any(literal(element.value) is not False for element in asked.elements)
    else:
        moves = not leaves_batches(accelerator, evaluator)
    for argument in call.args:
        if argument.star:
            return UNKNOWN
        value = evaluator.value(argument.value)
        if value.kind is Kind.DATALOADER and moves:
            batch = Value(
                Kind.BATCH, Evidence.INFERRED, device=Device.ACCELERATOR, graph=Graph.DETACHED, origin=Origin.BATCH
            )
            value = value._replace(element=batch)
        prepared.append(value)
    if len(prepared) == 1:
        return prepared[0]
    return sequence(*prepared) if prepared else UNKNOWN
