"""Whether a file visibly computes on an accelerator."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.functions import named_device
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import CUDA_CONSTRUCTORS
from torchlint.semantics.values import Device, Kind, Origin
from torchlint.syntax.calls import identifier, is_none, literal

_FRAMEWORKS = ("lightning", "pytorch_lightning", "accelerate", "deepspeed", "fabric")
_LAYER = re.compile(r"torch\.nn(\.modules\.\w+)?\.[A-Z]\w+$")
_OF_DEVICE = frozenset(
    "synchronize empty_cache set_device current_stream reset_peak_memory_stats reset_max_memory_allocated "
    "max_memory_allocated memory_allocated max_memory_reserved memory_reserved".split()
)
_QUANTIZERS = frozenset(
    f"{module}.{name}"
    for module in ("torch.quantization", "torch.ao.quantization")
    for name in ("convert", "get_default_qconfig", "quantize", "quantize_dynamic")
)
_CUDA_TYPES = frozenset(name.rpartition(".")[2] for name in CUDA_CONSTRUCTORS)
_DEVICE_STRINGS = ("cuda", "mps", "xpu", "npu", "hpu", "xla")
_OF_OTHERS = re.compile(r"cuda|gpu|xpu|npu|hpu|xla|accelerator|^parse_(known_)?args$|^get_device$", re.IGNORECASE)
"""What other devices are called, and what may name them: options, other files."""


def accelerator_evidence(evaluator: Evaluator) -> Evidence | None:
    """Return how certain it is that a file moves work to an accelerator; None if nothing says so."""
    tree = evaluator.tree
    if hides_accelerators(evaluator):
        return None
    for text in tree.nodes(cst.SimpleString):
        value = text.raw_value
        if value.startswith(_DEVICE_STRINGS) and value.partition(":")[0] in _DEVICE_STRINGS:
            return Evidence.PROVEN
    found: Evidence | None = None
    on_host = _quantizes(evaluator) or frameworks_run_on_cpu(evaluator)
    for call in tree.nodes(cst.Call):
        if not isinstance(call.func, cst.Attribute):
            continue
        name = call.func.attr.value
        if name == "cuda" and evaluator.names.qualified(call.func) is None:
            return Evidence.PROVEN
        if name in ("to", "to_device") and call.args and found is None:
            where = evaluator.value(call.args[0].value)
            if where.kind is Kind.DEVICE and where.device is not Device.CPU:
                found = where.evidence
            elif where.kind is Kind.NUMBER and named_device(where) is Device.ACCELERATOR:
                found = Evidence.INFERRED  # the index of an accelerator
        elif (
            name in _OF_DEVICE
            and found is None
            and not on_host
            and evaluator.names.qualified(call.func) == f"torch.cuda.{name}"
        ):
            found = Evidence.INFERRED  # it waits for a GPU, or looks after its memory
        elif name == "backward" and found is None and not on_host and _hands_loss_over(call, evaluator):
            found = Evidence.INFERRED
    if on_host:
        return found
    imports: list[cst.Import | cst.ImportFrom] = [*tree.nodes(cst.Import), *tree.nodes(cst.ImportFrom)]
    for statement in imports:
        if _imports_framework(statement) or _imports_trainer(statement):
            return Evidence.INFERRED
    if found is None and _extends_trainer(evaluator):
        return Evidence.INFERRED
    return found or _type_evidence(evaluator) or _keyword_evidence(evaluator)


def frameworks_run_on_cpu(evaluator: Evaluator) -> bool:
    """Return whether everything of Lightning's that a file makes is told to run on the CPU: ``accelerator="cpu"``."""
    if not any(map(evaluator.scopes.imports, ("lightning", "pytorch_lightning"))):
        return False
    given = [a.value for a in evaluator.tree.nodes(cst.Arg) if a.keyword and a.keyword.value == "accelerator"]
    return bool(given) and all(literal(value) == "cpu" for value in given)


def _quantizes(evaluator: Evaluator) -> bool:
    """Whether a file makes integer models by the eager mode, of which the kernels are the CPU's."""
    called = (evaluator.names.qualified(call.func) for call in evaluator.tree.nodes(cst.Call))
    return any(name in _QUANTIZERS for name in called)


def _hands_loss_over(call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a framework takes the backward pass, which places models and batches: ``accelerator.backward(loss)``."""
    if evaluator.names.qualified(call.func) is not None or not call.args or not isinstance(call.func, cst.Attribute):
        return False
    return not evaluator.value(call.func.value).is_tensor and evaluator.value(call.args[0].value).origin is Origin.LOSS


def hides_accelerators(evaluator: Evaluator) -> bool:
    """Return whether a file leaves no GPU to its programs: ``os.environ["CUDA_VISIBLE_DEVICES"] = ""``."""
    variables = (node for node in evaluator.tree.nodes(cst.SimpleString) if node.raw_value == "CUDA_VISIBLE_DEVICES")
    lines = [evaluator.flow.statement(node) for node in variables]
    return bool(lines) and all(
        isinstance(line, cst.Assign)
        and isinstance(line.targets[0].target, cst.Subscript)
        and literal(line.value) in ("", "-1")
        and evaluator.definitions.enclosing_function(line) is None
        for line in lines
    )


def trains_what_it_is_given(evaluator: Evaluator, passes: list[cst.Call]) -> bool:
    """Return whether a file trains in methods only, and makes no model: the program that imports it places them."""
    functions = [evaluator.definitions.enclosing_function(call) for call in passes]
    if any(function is None or evaluator.definitions.owner(function) is None for function in functions):
        return False
    classes = evaluator.tree.nodes(cst.ClassDef)
    if any(evaluator.definitions.class_kind(each) is Kind.MODULE for each in classes):
        return False
    called = (evaluator.names.qualified(call.func) or "" for call in evaluator.tree.nodes(cst.Call))
    return not any(_LAYER.match(name) for name in called)


def _extends_trainer(evaluator: Evaluator) -> bool:
    """Whether a class runs what a trainer of another file put on its device: the model and the batches."""
    classes = evaluator.tree.nodes(cst.ClassDef)
    names = (name for each in classes if each.bases for name in evaluator.definitions.ancestry(each))
    return any(name.endswith("Trainer") for name in names)


def _imports_framework(statement: cst.Import | cst.ImportFrom) -> bool:
    if isinstance(statement, cst.ImportFrom):
        root: cst.BaseExpression | None = statement.module
        modules = [root] if root is not None and not statement.relative else []
    else:
        modules = [alias.name for alias in statement.names]
    for module in modules:
        while isinstance(module, cst.Attribute):
            module = module.value
        if isinstance(module, cst.Name) and module.value in _FRAMEWORKS:
            return True
    return False


def _imports_trainer(statement: cst.Import | cst.ImportFrom) -> bool:
    if not isinstance(statement, cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
        return False
    root = statement.module.value if isinstance(statement.module, cst.Name) else ""
    return root in ("transformers", "trl") and any(identifier(n.name).endswith("Trainer") for n in statement.names)


def _type_evidence(evaluator: Evaluator) -> Evidence | None:
    """The types of old programs: ``dtype = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor``."""
    for named in evaluator.tree.nodes(cst.Attribute):
        if named.attr.value in _CUDA_TYPES and evaluator.names.qualified(named) in CUDA_CONSTRUCTORS:
            around = evaluator.tree.enclosing(named, cst.Call, cst.Comparison)
            if around is None or identifier(getattr(around, "func", around)) not in ("isinstance", "issubclass", ""):
                return Evidence.INFERRED
    return None


def _keyword_evidence(evaluator: Evaluator) -> Evidence | None:
    for argument in evaluator.tree.nodes(cst.Arg):
        named = argument.keyword is not None and argument.keyword.value in ("device", "device_ids")
        if not named or is_none(argument.value) or literal(argument.value) == "cpu":
            continue
        if evaluator.value(argument.value).device is not Device.CPU:
            return Evidence.INFERRED
    return None


def runs_on_mps(evaluator: Evaluator) -> bool:
    """Return whether a file computes on Apple's devices, or on the CPU, and speaks of no others.

    It names them itself, ``torch.device("mps" if ... else "cpu")``, and leaves nobody the choice.
    """
    if not evaluator.vocabulary.mentions_mps:
        return False
    vocabulary, tree = evaluator.vocabulary, evaluator.tree
    words = (*vocabulary.identifiers, *vocabulary.attributes, *vocabulary.imported)
    if any(map(_OF_OTHERS.search, words)) or any("cuda" in text.raw_value for text in tree.nodes(cst.SimpleString)):
        return False
    named = [call for call in tree.nodes(cst.Call) if evaluator.names.qualified(call.func) == "torch.device"]
    if not all(call.args and _is_written_out(call.args[0].value) for call in named):
        return False
    texts = (text for text in tree.nodes(cst.SimpleString) if text.raw_value.partition(":")[0] == "mps")
    return any(_chooses(text, evaluator) for text in texts)


def _is_written_out(device: cst.BaseExpression) -> bool:
    """Whether a device is a constant, or one of several."""
    if isinstance(device, cst.IfExp):
        return _is_written_out(device.body) and _is_written_out(device.orelse)
    if isinstance(device, cst.Call):
        return identifier(device.func) == "device" and bool(device.args) and _is_written_out(device.args[0].value)
    return isinstance(device, cst.SimpleString)


def _chooses(text: cst.SimpleString, evaluator: Evaluator) -> bool:
    """Whether a string is the device that a file takes, no default of an option nor what one is compared with."""
    tree = evaluator.tree
    node: cst.CSTNode = text
    parent = tree.parent(node)
    while isinstance(parent, cst.IfExp) and node is not parent.test:
        node, parent = parent, tree.parent(parent)
    call = tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and identifier(call.func) == "device":
        parent = tree.parent(call)
    elif isinstance(call, cst.Call):
        return identifier(call.func) == "to"
    while isinstance(parent, cst.IfExp):
        parent = tree.parent(parent)
    return not isinstance(parent, cst.Assign) or not _may_be_other(parent, evaluator)


def _may_be_other(chosen: cst.Assign, evaluator: Evaluator) -> bool:
    """Whether a variable for the device is also given by a caller, or by a setting."""
    names = {identifier(target.target) for target in chosen.targets}
    function = evaluator.definitions.enclosing_function(chosen)
    if function is not None and any(parameter.name.value in names for parameter in parameters(function)):
        return True
    bound = (a for a in evaluator.tree.nodes(cst.Assign) if any(identifier(t.target) in names for t in a.targets))
    values = (a.value for a in bound if not isinstance(a.value, cst.Name))  # `self.device = device`
    return not all(map(_is_written_out, values))
