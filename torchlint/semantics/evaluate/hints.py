"""The weakest answers: what use in the file suggests (inferred), and what the name says (named)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import roles
from torchlint.semantics.evaluate.moving_calls import names_move
from torchlint.semantics.evaluate.taken_apart import unpacked
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Device, Graph, Kind, Origin, Value, join, tensor
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_LOADER = re.compile(
    r"(^|_)(data_?)?loader(s|_?[a-z0-9]|_(source|target|src|tgt|labeled|unlabeled|train|val|valid|test|eval))?$|(^|_)(train|val|valid|test|eval|dev)_?(data_?)?(loader|dl|dataloader)$|(^|_)dl$"
    r"|(^|_)(data|batch|train|val|valid|test|eval|dev)_(iter(ator)?|itr)$",
    re.IGNORECASE,
)
_DEVICE = re.compile(r"^(devices?|dev|gpus?|cuda|local_rank|gpu_ids?|device_ids?|rank)$|(^|_)device$", re.IGNORECASE)
_HOST = re.compile(r"(^|_)(cpu|host|offload|storage)_", re.IGNORECASE)
_DATASET = re.compile(r"(^|_)(dataset|data_?set)$", re.IGNORECASE)
_LOSS = re.compile(
    r"^(total_|train_|val_|valid_|test_|batch_)?loss$|(^|_)loss(_[a-z0-9]+)?$|^loss[A-Z_]?\w{0,4}$|^err[DG](_\w+)?$"
)
_CRITERION = re.compile(
    r"(^|_)(crit|criterion[a-z]{0,9}|criteria|loss_fn|loss_fct|loss_func|loss_function|lossfn|objective)(_|$)|^cri_\w+$",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"^(model|net|network|encoder|decoder|transformer|generator|discriminator|backbone|classifier|netG|netD|net_g|net_d|"
    r"policy|actor|critic|teacher|student|unet|vae)(_?(ema|s|g|d|ddp|\d))?$|(^|_)(model|net|network|encoder|decoder)$",
    re.IGNORECASE,
)
_OPTIMIZER = re.compile(
    r"(^|_)(optim|optimizer|optimiser|opt)(_?[a-z0-9]{1,8})?$|^optimizer[A-Z]\w*$|^optim[A-Z]\w*$", re.IGNORECASE
)
_MAKER = re.compile(
    r"^_?(build|compile|configure|construct|convert|create|define|delete|disable|download|enable|export|freeze|get|has|"
    r"init|initialize|instantiate|load|make|prepare|print|quantize|register|remove|replace|reset|restore|save|set|setup|"
    r"set_up|show|store|summarize|sync|trace|unfreeze|unload|unwrap|update|upload|wrap)_"
)
_MAKES_LOADER = re.compile(
    r"^_?(get|make|build|create)_(\w+_)?(data_?)?loader$|^(train|val|valid|validation|test|eval|dev|predict)_(data_?)loader$"
)
_SCALER = re.compile(r"^_?(grad_|loss_|amp_)?scaler$", re.IGNORECASE)
# Methods that bear out a name such as `model`.
_OF_MODULES = frozenset("eval train parameters named_parameters state_dict load_state_dict zero_grad".split())
# What optimizers have not: an engine (DeepSpeed, LightningLite) is a model that takes the steps itself.
_OF_ENGINES = frozenset(("parameters", "named_parameters", "eval", "train"))
_OF_COLLECTORS = frozenset(("add", "append", "update"))  # of losses, which may have a `backward` too
_BORNE_OUT = frozenset((Kind.MODULE, Kind.OPTIMIZER, Kind.SCALER))
_ENGINE = re.compile(r"^ignite\.(engines?\.)?(engine\.)?Engine$")
# Parameters of `forward` and of the step methods of frameworks.
_STEP_METHODS = frozenset(("training_step", "validation_step", "test_step", "predict_step", "compute_loss"))
_GIVEN_MODEL = frozenset(("training_step", "compute_loss", "prediction_step"))  # by the trainer of Hugging Face
# Parameters of `forward` that are numbers: `forward(self, x, H, W)`.
_SIZE = re.compile(r"^([HWDThwd]|hw|height|width|depth|\w+_(h|w|height|width|size|shape)|size|shape|num_\w+|n_\w+)$")
# Methods of models that the trainers of other files call for each batch.
_MODEL_STEPS = frozenset(("train_step", "val_step"))
# What a function that takes one step calls its batch: `fit_batch(self, batch)`, `evaluate_step(batch)`.
_BATCH = re.compile(r"^((data|mini)_?)?batch(_data)?$")
# What SpeechBrain calls for each batch: the place of the first parameter that holds what the loader hands out.
_FIRST_BATCH = {"compute_forward": 1, "compute_objectives": 2}
_PARTS = (cst.Attribute, cst.Subscript)
_ACCELERATORS = ("cuda", "xpu", "mps", "npu", "hpu")


_MOVED_BATCH = Value(Kind.BATCH, Evidence.INFERRED, device=Device.CPU, origin=Origin.BATCH)
"""A batch that the file moves to the device itself."""
_PLACED_BATCH = Value(Kind.BATCH, Evidence.INFERRED, device=Device.ACCELERATOR, origin=Origin.BATCH)
"""A batch that a framework has moved."""


def variable(expression: cst.Name | cst.Attribute, evaluator: Evaluator) -> Value:
    """Return what use and name suggest for a variable that nothing else explains."""
    if isinstance(expression, cst.Attribute) and expression.attr.value == "device":
        return Value(Kind.DEVICE, Evidence.INFERRED, device=Device.EITHER)  # what everything with a place calls it
    used = _by_use(expression, evaluator)
    if used.known:
        return used
    found = named(identifier(expression))
    if found.kind is Kind.MODULE and (
        evaluator.usage.attributes(expression) & _OF_MODULES
        or identifier(expression) in evaluator.usage.names_of_models()
    ):
        return found.borne_out()
    return found


def borne_out(found: Value, expression: cst.Name | cst.Attribute, evaluator: Evaluator) -> Value:
    """Return what a variable holds, borne out by its use where a name alone said so: ``self.model = model``."""
    if found.kind not in _BORNE_OUT or found.evidence is not Evidence.NAMED:
        return found
    used = variable(expression, evaluator)
    return found.borne_out() if used.kind is found.kind and used.evidence > Evidence.NAMED else found


def _by_use(expression: cst.Name | cst.Attribute, evaluator: Evaluator) -> Value:
    usage = evaluator.usage
    attributes = usage.attributes(expression)
    if not attributes:
        return UNKNOWN
    if ({"zero_grad", "step"} <= attributes and not attributes & _OF_ENGINES) or "param_groups" in attributes:
        return Value(Kind.OPTIMIZER, Evidence.INFERRED)
    if "step" in attributes and "update" in attributes and ("scale" in attributes or "unscale_" in attributes):
        return Value(Kind.SCALER, Evidence.INFERRED)
    is_plain = not attributes & _OF_COLLECTORS or named(identifier(expression)).origin is Origin.LOSS
    is_loss = is_plain and "backward" in attributes and not attributes & {"step", "module", "parameters"}
    if is_loss and usage.is_backpropagated(expression):
        return tensor(Evidence.INFERRED, graph=Graph.ATTACHED, origin=Origin.LOSS)
    if usage.has_parameters(expression) or "named_parameters" in attributes or usage.is_prepared_model(expression):
        return Value(Kind.MODULE, Evidence.INFERRED)
    if {"train", "eval"} <= attributes or (
        attributes & {"eval", "train"} and attributes & {"load_state_dict", "state_dict", "zero_grad"}
    ):
        return Value(Kind.MODULE, Evidence.INFERRED)
    return UNKNOWN


def is_start(found: Value) -> bool:
    """Return whether a value is a list or mapping that starts empty, or a list that starts with numbers."""
    if found.elements == () or (found.kind is Kind.MAPPING and found.element is None):
        return True
    return found.kind is Kind.SEQUENCE and found.iterated().kind is Kind.NUMBER


def filled(empty: Value, variable: cst.Name | cst.Attribute, evaluator: Evaluator) -> Value:
    """Return what such a list or mapping holds, by what the file appends to it or puts into it."""
    usage = evaluator.usage
    starts_with_numbers = empty.kind is Kind.SEQUENCE and empty.iterated().kind is Kind.NUMBER
    by_place = empty.kind is Kind.MAPPING or starts_with_numbers
    given = usage.stored(variable) if by_place else usage.appended(variable)
    if starts_with_numbers and not given:
        return empty
    if starts_with_numbers and usage.tells_apart(variable):
        return Value(empty.kind)  # each place may hold something else
    items = join([evaluator.value(item) for item in given if not _replaces(item, variable, evaluator)])
    return (
        Value(empty.kind, min(items.evidence, Evidence.INFERRED), element=items) if items.known else Value(empty.kind)
    )


def _replaces(item: cst.BaseExpression, variable: cst.Name | cst.Attribute, evaluator: Evaluator) -> bool:
    """Return whether an item takes the place of one that was there: ``for k, v in items.items(): items[k] = f(v)``."""
    loop = evaluator.tree.enclosing(item, cst.For)
    method = method_call(loop.iter, "items", "keys", "values") if loop is not None else None
    return method is not None and is_same(method.value, variable)


def hands_out_loader(call: cst.Call, name: str, evaluator: Evaluator) -> bool:
    """Return whether a function is named for the loader that it gives, and a loop takes that as it is.

    Perhaps through ``tqdm``: it is one loader then, and no pair of them.
    """
    parent = evaluator.tree.parent(call)
    is_gone_through = isinstance(parent, (cst.For, cst.CompFor)) or (isinstance(parent, cst.Arg) and not parent.star)
    return is_gone_through and _MAKES_LOADER.match(name) is not None


@lru_cache(maxsize=4096)
def named(name: str) -> Value:
    """Return what everybody who uses this name means by it; evidence NAMED."""
    if not name:
        return UNKNOWN
    if _LOADER.search(name):
        return Value(Kind.DATALOADER, Evidence.NAMED)
    if _DATASET.search(name):
        return Value(Kind.DATASET, Evidence.NAMED)
    if _DEVICE.search(name):
        return Value(Kind.DEVICE, Evidence.NAMED, device=Device.CPU if names_host(name) else Device.EITHER)
    if _SCALER.search(name):
        return Value(Kind.SCALER, Evidence.NAMED)
    if _CRITERION.search(name):
        return Value(Kind.MODULE, Evidence.NAMED, origin=Origin.LOSS)
    if _OPTIMIZER.search(name):
        return Value(Kind.OPTIMIZER, Evidence.NAMED)
    if _LOSS.search(name):
        return tensor(Evidence.NAMED, graph=Graph.UNKNOWN, origin=Origin.LOSS)
    if _MODEL.search(name) and not _MAKER.search(name) and not _names_class(name):
        return Value(Kind.MODULE, Evidence.NAMED)
    return UNKNOWN


def _names_class(name: str) -> bool:
    """Return whether a name is written like a class, so that calling it makes a model rather than runs it."""
    return name[:1].isupper() and name not in ("MODEL", "NET", "NETWORK")


def named_device(name: str) -> Value:
    """Return the device that a setting of this name, or what a function of this name gives, must be."""
    is_device = name == "device" or name.endswith("_device")  # not `cuda`, which is what moves are called
    place = Device.CPU if names_host(name) else Device.EITHER
    return Value(Kind.DEVICE, Evidence.NAMED, device=place) if is_device else UNKNOWN


def names_host(name: str) -> bool:
    """Return whether a device of this name is the host: ``cpu_device``, ``offload_device``."""
    return _HOST.search(name) is not None


def names_loss(name: str) -> bool:
    """Return whether everybody who uses this name means a loss by it."""
    return bool(_LOSS.search(name))


def parameter_role(function: cst.FunctionDef, param: cst.Param, evaluator: Evaluator) -> Value:
    """Return what a parameter is by the role of its function: the input of ``forward``, the batch of a step."""
    owner = evaluator.definitions.owner(function)
    if owner is None:
        second = any(one is param for one in function.params.params[1:2])
        is_batch = second and evaluator.is_engine_step(function)
        return _MOVED_BATCH if is_batch else _step_batch(function, param, function, evaluator)
    name = function.name.value
    if name in _STEP_METHODS and param.name.value in ("batch", "inputs", "data"):
        return _PLACED_BATCH
    if param.name.value == "model" and name in _GIVEN_MODEL and evaluator.definitions.is_trainer(owner):
        return Value(Kind.MODULE, Evidence.INFERRED)
    if name == "forward" and evaluator.definitions.class_kind(owner) is Kind.MODULE and param.default is None:
        is_device = named(param.name.value).kind is Kind.DEVICE
        is_size = _SIZE.match(param.name.value) is not None or evaluator.usage.is_size(param.name)
        return UNKNOWN if is_device or is_size else tensor(Evidence.NAMED, origin=Origin.BATCH)
    if evaluator.kept_batch(function) == param.name.value:
        return _MOVED_BATCH.weakened(Evidence.NAMED)
    found = _step_batch(function, param, owner, evaluator)
    if found.known or name not in _MODEL_STEPS or evaluator.definitions.class_kind(owner) is not Kind.MODULE:
        return found
    assigned = (_names(target.target, evaluator) for target in evaluator.tree.below(function.body, cst.AssignTarget))
    is_kept = param.name.value == "batch" and not any("batch" in names for names in assigned)  # nothing moves it here
    return _PLACED_BATCH if is_kept else UNKNOWN


def _step_batch(
    function: cst.FunctionDef, param: cst.Param, around: cst.FunctionDef | cst.ClassDef, evaluator: Evaluator
) -> Value:
    """Return the batch that a step is given by name, if the code around it moves what is called so to a device."""
    name, first = param.name.value, _FIRST_BATCH.get(function.name.value)
    if param.default is not None:
        return UNKNOWN
    is_brain = first is not None and isinstance(around, cst.ClassDef) and evaluator.definitions.is_brain(around)
    is_named = bool(_BATCH.match(name)) and (roles.takes_one_step(function.name.value) or (is_brain and first == 1))
    if is_named and name in _moved_names(around, evaluator):
        return _MOVED_BATCH.weakened(Evidence.NAMED)
    if not is_named and not (is_brain and any(one is param for one in function.params.params[first:])):
        return UNKNOWN
    is_moved = not _parts(function, name, evaluator).isdisjoint(_moved_names(function, evaluator))
    return _MOVED_BATCH.weakened(Evidence.NAMED) if is_moved else UNKNOWN


def _moved_names(code: cst.FunctionDef | cst.ClassDef, evaluator: Evaluator) -> set[str]:
    """Return ``x`` of each ``x.to(device)``, ``x["image"].cuda()``."""
    moves = (method_call(call, "to", "cuda") for call in evaluator.tree.below(code.body, cst.Call))
    return {_bottom_name(move.value) for move in moves if move is not None}


def _parts(function: cst.FunctionDef, name: str, evaluator: Evaluator) -> set[str]:
    """Return the variables that hold parts of a parameter: ``x, y = batch``, ``x = batch[0]``, ``for x in batch``."""
    tree, found = evaluator.tree, set()
    for statement in tree.below(function.body, cst.Assign):
        target, value = statement.targets[0].target, statement.value
        unpacks = isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, cst.Name)
        if (unpacks or isinstance(value, cst.Subscript)) and _bottom_name(value) == name:
            found |= _names(target, evaluator)
    loops: list[cst.For | cst.CompFor] = [*tree.below(function.body, cst.For), *tree.below(function.body, cst.CompFor)]
    for loop in loops:
        if _bottom(loop.iter) == name:
            found |= _names(loop.target, evaluator)
    return found - {name}


def _names(target: cst.CSTNode, evaluator: Evaluator) -> set[str]:
    return {node.value for node in evaluator.tree.descendants(target) if isinstance(node, cst.Name)}


def engine_steps(evaluator: Evaluator) -> tuple[cst.FunctionDef, ...]:
    """Return the functions of the file that an engine of Ignite runs for each batch: ``Engine(step)``."""
    if not evaluator.scopes.imports("ignite"):
        return ()
    steps = (
        evaluator.definitions.definition(call.args[0].value)
        for call in evaluator.tree.nodes(cst.Call)
        if call.args and _ENGINE.match(evaluator.names.qualified(call.func) or "")
    )
    return tuple(step for step in steps if isinstance(step, cst.FunctionDef))


def iterated(loop: cst.For | cst.CompFor, evaluator: Evaluator) -> Value:
    """Return what a loop over something unknown binds: batches, where its body moves the target to a device."""
    if isinstance(loop, cst.CompFor) or not isinstance(loop.iter, (cst.Name, cst.Attribute, cst.Call)):
        return UNKNOWN
    if isinstance(loop.iter, cst.Call) and named(identifier(loop.iter.func)).kind is Kind.DATALOADER:
        return Value(Kind.DATALOADER, Evidence.NAMED).iterated()
    if not any(evaluator.tree.within(call, loop.body) for call in evaluator.moving_calls):
        return UNKNOWN
    names = _names(loop.target, evaluator)
    for statement in _straight(loop.body):
        if isinstance(statement, cst.SimpleStatementLine):
            names |= _taken_apart(statement, names, evaluator)
        moved = [
            each for call in evaluator.tree.below(statement, cst.Call) if (each := brought_to_device(call, evaluator))
        ]
        for comprehension in evaluator.tree.below(statement, cst.CompFor) if moved else ():
            if _goes_over(comprehension.iter, names):
                names |= _names(comprehension.target, evaluator)
        bases = (each.value if isinstance(each, _PARTS) else each for each in moved)
        if any(isinstance(base, cst.Name) and base.value in names for base in bases):
            return _MOVED_BATCH if _runs_model(loop, names, evaluator) else UNKNOWN
    return UNKNOWN


def brought_to_device(call: cst.Call, evaluator: Evaluator) -> cst.BaseExpression | None:
    """Return what a call brings to a device, None if it does not: ``x.to(device)``, ``move_to_cuda(x)``."""
    move = method_call(call, "to", "cuda")
    if move is not None:
        return move.value if _is_device_move(call, evaluator) else None
    is_helper = bool(call.args) and not call.args[0].star and names_move(identifier(call.func))
    return call.args[0].value if is_helper else None


def _straight(block: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    """Yield the simple statements of a block, also those under conditions, in ``with`` and ``try``; not in loops."""
    for statement in block.body:
        if isinstance(statement, (cst.With, cst.Try)):
            yield from _straight(statement.body)
        elif isinstance(statement, cst.If):
            branch: cst.If | cst.Else | None = statement
            while branch is not None:
                yield from _straight(branch.body)
                branch = branch.orelse if isinstance(branch, cst.If) else None
        elif not isinstance(statement, cst.BaseCompoundStatement):
            yield statement


def _taken_apart(line: cst.SimpleStatementLine, names: set[str], evaluator: Evaluator) -> set[str]:
    """Return the names that a line binds to parts of variables: ``x, y = batch``, ``x, y = batch.text, batch["y"]``."""
    found: set[str] = set()
    for statement in line.body:
        if isinstance(statement, cst.Assign):
            value = statement.value
            parts = [element.value for element in value.elements] if isinstance(value, cst.Tuple) else [value]
            parts = [unpacked(part, evaluator) for part in parts]
            unpacks = isinstance(statement.targets[0].target, (cst.Tuple, cst.List))
            kinds = (cst.Name, *_PARTS) if unpacks else _PARTS
            if all(isinstance(part, kinds) and _bottom_name(part) in names for part in parts):
                found |= _names(statement.targets[0].target, evaluator)
    return found


def _goes_over(iterated: cst.BaseExpression, names: set[str]) -> bool:
    """Return whether a comprehension goes over a variable, or over several that are written out: ``in (x, y)``."""
    parts = [e.value for e in iterated.elements] if isinstance(iterated, (cst.Tuple, cst.List)) else [iterated]
    return bool(parts) and all(_bottom(part) in names for part in parts)


def _bottom(expression: cst.BaseExpression) -> str:
    """Return ``batch`` of ``batch`` and of ``batch.items()``."""
    method = method_call(expression, "items", "values")
    return identifier(method.value if method is not None else expression)


def _runs_model(loop: cst.For, bound: set[str], evaluator: Evaluator) -> bool:
    """Return whether a loop trains or runs a module.

    What is called on the variables that hold what the loop binds says nothing: what they hold is the question.
    """
    calls = list(evaluator.tree.below(loop.body, cst.Call))
    if any(method_call(call, "backward", "step") is not None for call in calls):
        return True
    called = (call.func for call in calls if isinstance(call.func, (cst.Name, cst.Attribute)))
    return any(evaluator.value(f).kind is Kind.MODULE for f in called if _bottom_name(f) not in bound)


def _bottom_name(expression: cst.BaseExpression) -> str:
    """Return ``x`` of ``x.view`` and of ``x["image"].shape``."""
    while isinstance(expression, (cst.Attribute, cst.Subscript)):
        expression = expression.value
    return expression.value if isinstance(expression, cst.Name) else ""


def _is_device_move(call: cst.Call, evaluator: Evaluator) -> bool:
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "cuda":
        return True
    return any(_says_device(argument.value, evaluator) for argument in call.args if not argument.star)


def _says_device(argument: cst.BaseExpression, evaluator: Evaluator) -> bool:
    given = evaluator.value(argument)
    if given.kind is Kind.STRING and isinstance(given.literal, str):
        return given.literal.startswith(_ACCELERATORS)
    # A parameter whose default is a string or a number says by its name that it is a device.
    is_said = given.kind in (Kind.STRING, Kind.NUMBER) and named(identifier(argument)).kind is Kind.DEVICE
    return given.kind is Kind.DEVICE or is_said
