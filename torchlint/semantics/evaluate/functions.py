"""Calls of imported functions and classes, by the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evaluate import averages, containers, distributions, hints, iterators, packed
from torchlint.semantics.evaluate.operators import combined
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables import torch_api as api
from torchlint.semantics.tables.arrays import ARRAYS, SOUNDS
from torchlint.semantics.tables.loaders import (
    LOADER_KINDS,
    PLACING_TRANSFORMS,
    TEXT_ITERATORS,
    TYPING_TRANSFORMS,
    LoaderKind,
)
from torchlint.semantics.values import (
    NDARRAY,
    NUMBER,
    STRING,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Origin,
    Value,
    join,
    of,
    sequence,
    tensor,
)
from torchlint.syntax.calls import Arguments, bind, identifier, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_WRAPPER_WORDS = ("tqdm", "progress", "prefetch", "pbar", "track")
_PASSES_FIRST_THROUGH = frozenset(
    (
        "torch.nn.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.compile",
        "torch.jit.script",
        "torch.jit.trace",
        "copy.deepcopy",
        "copy.copy",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.quantization.convert",
        "torch.autograd.Variable",
        "torch.nn.Parameter",
        "torch.distributed.fsdp.FullyShardedDataParallel",
    )
)
_HOST_PACKAGES = ("torch.cuda.", "torch.distributed.", "torch.backends.")
# Modules whose functions give no tensors, or none that anything can be said about.
_NO_TENSORS = (
    "torch._",
    "torch_geometric.",
    *(
        f"torch.{package}."
        for package in (
            "ao compiler export fx futures hub jit library monitor multiprocessing onnx ops overrides package profiler "
            "quantization utils version"
        ).split()
    ),
)

# What else the libraries of Hugging Face load by `from_pretrained`.
_NO_MODELS = ("Tokenizer", "Processor", "Config", "FeatureExtractor", "Pipeline", "Scheduler", "Flax")


def evaluate(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    """Return what calling an imported function or class by this qualified name gives."""
    module, _, last = name.rpartition(".")
    if name in _PASSES_FIRST_THROUGH and call.args:
        return _passed_through(call, name, evaluator.value(call.args[0].value))
    if name.startswith(("torch.", "torch_geometric.")):
        return _torch(call, name, last, evaluator)
    if name.startswith("builtins."):
        return _builtin(call, last, evaluator)
    if name.startswith("numpy."):
        return NUMBER if name in api.NUMPY_NUMBERS else NDARRAY
    if name in ARRAYS or name in SOUNDS:
        return NDARRAY if name in ARRAYS else sequence(NDARRAY, NUMBER)
    if name in LOADER_KINDS:
        return loader(call, name, evaluator)
    if name.startswith("torchtext."):
        return _text_iterator(call, name, evaluator)
    if name in api.ITERATION_WRAPPERS or (last in ("tqdm", "track", "prefetch") and call.args):
        return evaluator.value(call.args[0].value) if call.args else UNKNOWN
    if name == "horovod.torch.allreduce" and call.args and not call.args[0].star:
        return evaluator.value(call.args[0].value)  # by a function of autograd: its graph goes on
    if name.startswith(api.OPTIMIZER_MODULES) and last[:1].isupper():
        return Value(Kind.OPTIMIZER, name=name)
    if name.startswith("torchvision.models.") or name in ("timm.create_model", "timm.models.create_model"):
        return Value(Kind.MODULE, name=name)
    if name.startswith("torchvision.datasets.") or (last.endswith("Dataset") and last[:1].isupper()):
        return Value(Kind.DATASET, Evidence.PROVEN if name.startswith("torchvision") else Evidence.INFERRED, name=name)
    if name.startswith("torchvision.transforms."):
        return Value(Kind.FUNCTION, name=name)
    if name.partition(".")[0] in ("transformers", "diffusers") and last == "from_pretrained":
        is_model = not any(word in module for word in _NO_MODELS)
        return Value(Kind.MODULE, Evidence.INFERRED, name=module) if is_model else UNKNOWN
    if name in api.MOCKS:
        return Value(Kind.INSTANCE, name=name)  # of no class that its variable is named for
    if name in ("collections.OrderedDict", "collections.defaultdict"):
        return containers.mapping(call, evaluator)
    if name == "itertools.chain":
        return join([evaluator.value(a.value) for a in call.args])
    if name.partition(".")[0] in api.HOST_CLASSES:
        return NUMBER if name.startswith(("math.", "random.", "time.")) else UNKNOWN
    if name.partition(".")[0] in ("optimizer", "optim") or last.endswith("Optimizer"):
        return Value(Kind.OPTIMIZER, Evidence.NAMED, name=name)
    if name.startswith("collections.") and last.endswith(("Dict", "dict")):
        return Value(Kind.MAPPING)
    return unseen(call, last, evaluator)


def unseen(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    """Return what a function of this name, of which nothing else is known, can be expected to give."""
    found = passes_loader_through(call, evaluator)
    if not found.known and hints.hands_out_loader(call, name, evaluator):
        return Value(Kind.DATALOADER, Evidence.NAMED)
    found = found if found.known else averages.averaged(call, name, evaluator)
    return found if found.known else hints.named_device(name)


def _torch(call: cst.Call, name: str, last: str, evaluator: Evaluator) -> Value:
    arguments = [evaluator.value(a.value) for a in call.args if a.keyword is None and not a.star]
    if name in LOADER_KINDS:
        return loader(call, name, evaluator)
    if name == "torch.accelerator.current_accelerator":
        return Value(Kind.DEVICE, device=Device.EITHER)
    if name == "torch.device":
        chosen = not arguments or arguments[0].kind is Kind.UNKNOWN  # at run time
        return Value(Kind.DEVICE, device=Device.EITHER if chosen else named_device(arguments[0]))
    if name in api.FACTORIES or name in api.LEGACY_CONSTRUCTORS:
        return _factory(call, name, evaluator)
    if name in api.CUDA_CONSTRUCTORS:
        return tensor(device=Device.ACCELERATOR, graph=Graph.DETACHED, origin=Origin.FACTORY)
    if name in api.LIKE_FACTORIES and arguments:
        made = arguments[0] if arguments[0].is_tensor else tensor()
        return made._replace(graph=made_graph(bind(call.args)), origin=Origin.FACTORY)
    if name == "torch.from_numpy":
        return tensor(device=Device.CPU, graph=Graph.DETACHED)
    if name in api.TORCH_NUMBERS or name.startswith(_HOST_PACKAGES):
        return Value(Kind.SCALER) if name in api.SCALERS else NUMBER if _answers_number(name, last) else UNKNOWN
    if name in api.SCALERS:
        return Value(Kind.SCALER)
    if name.startswith("torch.utils.data."):
        return _data(call, name, last, arguments)
    if name.startswith("torch.optim.lr_scheduler."):
        return Value(Kind.SCHEDULER, name=name)
    if name.startswith("torch.optim."):
        return Value(Kind.OPTIMIZER, name=name)
    if (last[:1].isupper() and name.startswith(("torch.nn.", "torch_geometric.nn."))) or name == "torch.hub.load":
        return Value(Kind.MODULE, name=name, origin=Origin.LOSS if name in api.LOSS_CLASSES else Origin.UNKNOWN)
    if name.startswith("torch.distributions.") and last[:1].isupper():
        return distributions.made(name, [evaluator.value(a.value) for a in call.args if not a.star])
    if name.startswith(packed.MODULE):
        return packed.made(last, arguments)
    if last.lstrip("_").startswith(("is_", "has_", "are_", "can_")):
        return NUMBER
    if name in ("torch.load", "torch.save") or name.startswith(_NO_TENSORS) or last.startswith(("get_", "set_")):
        return UNKNOWN
    return _tensor_function(call, name, last, arguments, evaluator)


def _answers_number(name: str, last: str) -> bool:
    """Whether a function of torch, of its packages for hardware or of their settings gives no object.

    What their modules hold may give anything: ``torch.distributed.rpc.rpc_sync`` what a function returns elsewhere.
    """
    settings = name in api.TORCH_NUMBERS or name.startswith("torch.backends.")
    return not last[:1].isupper() and (settings or name.count(".") == 2)


def _passed_through(call: cst.Call, name: str, value: Value) -> Value:
    if name == "torch.nn.Parameter":
        return tensor(graph=Graph.ATTACHED, origin=Origin.PARAMETER)
    if name == "torch.autograd.Variable":
        found, graph = value if value.known else tensor(), made_graph(bind(call.args, ("data", "requires_grad")))
        return found if graph is Graph.DETACHED else found._replace(graph=graph)
    if name.startswith("copy.") or value.kind is Kind.MODULE:
        return value
    return Value(Kind.MODULE, min(value.evidence, Evidence.INFERRED)) if name != "torch.compile" else value


def _data(call: cst.Call, name: str, last: str, arguments: list[Value]) -> Value:
    if name == "torch.utils.data.random_split":
        return of(
            Kind.SEQUENCE, arguments[0] if arguments and arguments[0].kind is Kind.DATASET else Value(Kind.DATASET)
        )
    if name in api.DATASET_WRAPPERS and arguments:
        inner = arguments[0].iterated() if arguments[0].kind is Kind.SEQUENCE else arguments[0]
        return inner if inner.kind is Kind.DATASET else Value(Kind.DATASET, name=name)
    return Value(Kind.DATASET, name=name) if last.endswith(("Dataset", "Subset")) else UNKNOWN


def loader(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    """Return the value of a data loader: its batches are on the host, unless it is known to move them."""
    kind = LOADER_KINDS[name]
    device = hands_out(kind, bind(call.args, kind.parameters.split()), evaluator)
    return _of_batches(name, Device.UNKNOWN if name.startswith("monai.") and places_items(evaluator) else device)


def _of_batches(name: str, device: Device) -> Value:
    batch = Value(Kind.BATCH, Evidence.INFERRED, device=device, graph=Graph.DETACHED, origin=Origin.BATCH)
    return Value(Kind.DATALOADER, name=name, element=batch)


def hands_out(kind: LoaderKind, given: Arguments, evaluator: Evaluator) -> Device:
    """Return where the batches of a loader are when it hands them out."""
    if not kind.moves:
        return Device.CPU
    switch = given.get(kind.moves_unless_off) if kind.moves_unless_off else None
    if given.open_keywords or (switch is not None and not isinstance(literal(switch), bool)):
        return Device.UNKNOWN
    if switch is not None and literal(switch) is False:
        return Device.CPU
    where = given.get("device")
    return named_device(evaluator.value(where)) if where is not None else Device.ACCELERATOR


def places_items(evaluator: Evaluator) -> bool:
    """Return whether a transform of MONAI in this file puts items on a device."""
    for call in evaluator.tree.nodes(cst.Call):
        name = evaluator.names.qualified(call.func)
        if name in PLACING_TRANSFORMS or (name in TYPING_TRANSFORMS and bind(call.args).get("device") is not None):
            return True
    return False


def _text_iterator(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    """The iterators of old torchtext: their batches are where ``device`` says, wherever that is by default."""
    made = name.removesuffix(".splits")
    if made not in TEXT_ITERATORS:
        return UNKNOWN
    where = bind(call.args).get("device")
    device = named_device(evaluator.value(where)) if where is not None else Device.UNKNOWN
    found = _of_batches(made, device)
    return of(Kind.SEQUENCE, found) if made != name else found


def named_device(value: Value) -> Device:
    """Return the place that a device value or a string like ``cuda:0`` names."""
    if value.kind is Kind.DEVICE:
        return value.device
    if value.kind is Kind.STRING and isinstance(value.literal, str):
        if value.literal == "cpu":
            return Device.CPU
        return (
            Device.ACCELERATOR
            if value.literal.partition(":")[0] in ("cuda", "mps", "xpu", "hpu", "npu", "xla")
            else Device.UNKNOWN
        )
    if value.kind is Kind.NUMBER and not isinstance(value.literal, (bool, float)):
        return Device.ACCELERATOR
    return Device.EITHER if value.kind is Kind.STRING else Device.UNKNOWN


def _factory(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    given = bind(call.args)
    device = Device.CPU
    where = given.get("device")
    if where is not None:
        device = named_device(evaluator.value(where))
    elif given.open_keywords:
        device = Device.UNKNOWN
    data = evaluator.value(call.args[0].value) if call.args and name in api.DATA_FACTORIES else UNKNOWN
    if data.is_tensor and where is None:
        device = data.device
    return tensor(device=device, graph=made_graph(given), origin=Origin.FACTORY, dtype=_dtype(given, evaluator))


def made_graph(given: Arguments) -> Graph:
    """Return whether a fresh tensor asks for gradients."""
    switch = given.get("requires_grad")
    if switch is None:
        return Graph.UNKNOWN if given.open_keywords else Graph.DETACHED
    flag = literal(switch)
    return Graph.ATTACHED if flag is True else Graph.DETACHED if flag is False else Graph.UNKNOWN


def result_dtype(call: cst.Call, operation: str, operand: str | None, evaluator: Evaluator) -> str | None:
    """Return the dtype of the result of a torch function or tensor method, None where it is not certain."""
    given = bind(call.args)
    if given.open_keywords or given.get("dtype") is not None:
        return _dtype(given, evaluator)
    return api.result_dtype(operation, operand)


def _dtype(given: Arguments, evaluator: Evaluator) -> str | None:
    expression = given.get("dtype")
    return evaluator.value(expression).name if expression is not None else None


def _tensor_function(call: cst.Call, name: str, last: str, arguments: list[Value], evaluator: Evaluator) -> Value:
    if last[:1].isupper() or (name.startswith(("torch.nn.init.", "torch.nn.utils.")) and last != "clip_grad_norm_"):
        return UNKNOWN
    flat = [v.iterated() if v.kind is Kind.SEQUENCE else v for v in arguments]
    found = combined(flat)
    if not found.known:
        found = tensor(device=Device.CPU) if _takes_copy(call) else tensor()
    found = found._replace(evidence=max(Evidence.INFERRED, min(v.evidence for v in (found, *arguments) if v.known)))
    if evaluator.gradients.disabled(call) or last in api.DETACHED_RESULTS or name == "torch.nn.utils.clip_grad_norm_":
        found = found._replace(graph=Graph.DETACHED)
    found = found._replace(dtype=result_dtype(call, last, arguments[0].dtype if arguments else None, evaluator))
    if name in api.LOSS_FUNCTIONS:
        graph = Graph.DETACHED if found.graph is Graph.DETACHED else Graph.ATTACHED
        return found._replace(origin=Origin.LOSS, graph=graph)
    if last in api.LIST_METHODS:
        return of(Kind.SEQUENCE, found)
    if last in api.SEQUENCE_METHODS and len(call.args) > 1 and not (len(arguments) > 1 and arguments[1].is_tensor):
        return sequence(found, found._replace(graph=Graph.DETACHED))
    return found


def _takes_copy(call: cst.Call) -> bool:
    """Whether a call is given a copy on the host of something unknown, where the other tensors must be then, too."""
    return any(method_call(argument.value, "cpu") is not None for argument in call.args)


def _builtin(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    arguments = [evaluator.value(a.value) for a in call.args if not a.star]
    first = arguments[0] if arguments else UNKNOWN
    if name in (
        "len",
        "int",
        "float",
        "bool",
        "round",
        "ord",
        "hash",
        "id",
        "isinstance",
        "hasattr",
        "callable",
        "range",
    ):
        return of(Kind.SEQUENCE, NUMBER) if name == "range" else NUMBER
    if name in ("str", "repr", "format", "input", "chr", "type"):
        return STRING
    if name == "enumerate":
        return of(Kind.ITERATOR, sequence(NUMBER, first.iterated())) if arguments else UNKNOWN
    if name == "zip":
        return of(Kind.ITERATOR, sequence(*(a.iterated() for a in arguments)))
    if name == "map":
        function = call.args[0].value if call.args else None
        made = evaluator.value(function.body) if isinstance(function, cst.Lambda) else UNKNOWN
        return of(Kind.ITERATOR, made) if made.known else UNKNOWN
    if name == "next":
        return iterators.given_next(first, evaluator)
    if name == "list" and not call.args:
        return sequence()  # as `[]`: what is appended shows what it holds
    if name in ("iter", "list", "tuple", "set", "sorted", "reversed", "filter"):
        if first.kind in (Kind.DATALOADER, Kind.TENSOR, Kind.SEQUENCE, Kind.ITERATOR):
            return of(Kind.ITERATOR, first.iterated()) if first.iterated().known else Value(Kind.ITERATOR)
        return Value(Kind.SEQUENCE)
    if name == "dict":
        return containers.mapping(call, evaluator)
    if name == "sum" and arguments:
        item = first.iterated()
        return item if item.is_tensor or item.kind in (Kind.NUMBER, Kind.PENDING) else UNKNOWN
    if name in ("max", "min", "abs"):
        values = [first.iterated()] if len(arguments) == 1 and first.kind is Kind.SEQUENCE else arguments
        return combined(values) if any(v.is_tensor for v in values) else NUMBER if arguments else UNKNOWN
    if name in ("getattr", "setattr", "super"):
        return UNKNOWN
    return UNKNOWN


def passes_loader_through(call: cst.Call, evaluator: Evaluator) -> Value:
    """Return the loader that an unknown call is given and then iterated over: by a progress bar, a prefetcher."""
    parent = evaluator.tree.parent(call)
    wraps = any(word in identifier(call.func).lower() for word in _WRAPPER_WORDS)
    if isinstance(parent, (cst.For, cst.Arg)) or wraps:
        for argument in call.args[:2]:
            value = evaluator.value(argument.value)
            if value.kind is Kind.DATALOADER and (not isinstance(parent, cst.Arg) or value.evidence is Evidence.PROVEN):
                return value.weakened(Evidence.INFERRED)
    return UNKNOWN
