"""Why code is hot, and the methods that are hot by what they are called."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call


class Role(Enum):
    """Why code is hot."""

    TRAINING_LOOP = "training loop"
    EVALUATION_LOOP = "evaluation loop"
    SAMPLING_LOOP = "sampling loop"
    """Runs a model without taking batches: decoding, rollouts."""

    FORWARD = "forward"
    STEP = "training step"
    LOSS = "loss"
    METRIC = "metric"
    UPDATE = "update"
    """Of the weights by an optimizer, or of an average that follows them."""

    DENOISING = "denoising step"
    """Of a scheduler of a diffusion process, which the loops of other files call."""

    OPERATION = "operation"
    """Computes a tensor from tensors, for the steps of the programs that import it."""

    ELEMENTS = "loop over tensors"
    """Looks at one element of a tensor, or at one of many tensors, in each pass."""

    DATA = "data loading"


_OFTEN = {
    Role.FORWARD: "in every forward pass",
    Role.STEP: "in every training step",
    Role.LOSS: "each time this loss is computed",
    Role.METRIC: "each time this metric is updated",
    Role.UPDATE: "each time the weights are updated",
    Role.DENOISING: "in every denoising step",
    Role.OPERATION: "each time this function is called",
    Role.DATA: "for every item that is loaded",
}


_IMPORTED = frozenset(
    (Role.FORWARD, Role.STEP, Role.LOSS, Role.METRIC, Role.UPDATE, Role.DENOISING, Role.OPERATION, Role.ELEMENTS)
)


class Heat(NamedTuple):
    """A hot place: the loop or function that makes it hot, and how certain that is."""

    root: cst.CSTNode
    role: Role
    evidence: Evidence
    evaluates: bool = False
    """Whether a forward pass or loss gets there while evaluating only."""

    @property
    def trains(self) -> bool:
        """Whether gradients are computed in it."""
        return self.role in (Role.TRAINING_LOOP, Role.STEP)

    @property
    def often(self) -> str:
        """How often it runs, in words that follow what runs there."""
        evaluated = "in every evaluation step" if isinstance(self.root, FUNCTIONS) else ""
        otherwise = evaluated or f"on every pass of this {self.role.value}"
        return _OFTEN.get(self.role, otherwise) + " while evaluating" * self.evaluates

    @property
    def is_imported(self) -> bool:
        """Whether the program that imports it decides where it runs: a forward pass, a step, a loss, a metric."""
        return self.role in (
            Role.FORWARD,
            Role.STEP,
            Role.LOSS,
            Role.METRIC,
            Role.UPDATE,
            Role.OPERATION,
            Role.ELEMENTS,
        )


_ROLE_BY_METHOD = {
    "training_step": Role.STEP,
    "validation_step": Role.EVALUATION_LOOP,
    "test_step": Role.EVALUATION_LOOP,
    "predict_step": Role.EVALUATION_LOOP,
    "compute_loss": Role.LOSS,
    "prediction_step": Role.EVALUATION_LOOP,
    "__getitem__": Role.DATA,
    "collate_fn": Role.DATA,
}
# The methods of models that mmcv's runners call for each batch.
_ROLE_BY_MODEL_METHOD = {"train_step": Role.STEP, "val_step": Role.EVALUATION_LOOP}
# What SpeechBrain's `Brain` calls for each batch; few recipes write the last two themselves.
_ROLE_BY_BRAIN_METHOD = {
    "compute_forward": Role.STEP,
    "compute_objectives": Role.LOSS,
    "fit_batch": Role.STEP,
    "evaluate_batch": Role.EVALUATION_LOOP,
    "on_fit_batch_start": Role.STEP,
    "on_fit_batch_end": Role.STEP,
}
# What trainers call in each step of their callbacks, hooks and modules.
_ROLE_BY_HOOK = {
    **dict.fromkeys(
        "on_train_batch_start on_train_batch_end on_before_zero_grad on_before_backward on_after_backward "
        "on_before_optimizer_step optimizer_step training_step_end on_step_begin on_step_end on_substep_end".split(),
        Role.STEP,
    ),
    **dict.fromkeys(
        "on_validation_batch_start on_validation_batch_end on_test_batch_start on_test_batch_end "
        "on_predict_batch_start on_predict_batch_end validation_step_end test_step_end".split(),
        Role.EVALUATION_LOOP,
    ),
}
_HOOKED = ("Callback", "LightningModule")
# The same of Detectron2 and of OpenMMLab, whose names say less.
_ROLE_BY_NAMED_HOOK = {
    **dict.fromkeys(
        "before_step after_step before_iter after_iter before_train_iter after_train_iter".split(), Role.STEP
    ),
    **dict.fromkeys("before_val_iter after_val_iter before_test_iter after_test_iter".split(), Role.EVALUATION_LOOP),
}
# The same of trainers of the file or project, which name the base of their callbacks so.
_ROLE_BY_OWN_HOOK = {
    **dict.fromkeys(
        "on_train_batch_begin on_train_step_begin on_train_step_end on_backward_end on_after_step "
        "on_train_iter_begin on_train_iter_end on_iter_end on_iteration_end on_batch_begin on_batch_end "
        "before_batch after_batch after_pred after_loss before_backward after_backward".split(),  # as fastai has them
        Role.STEP,
    ),
    **_ROLE_BY_HOOK,
    **_ROLE_BY_NAMED_HOOK,
}
_OWN_HOOKS = re.compile(r"(Callback|Hook|HookBase)(Base)?$")
_NAMED_HOOKS = re.compile(r"^(detectron2\..*(HookBase|Trainer|TrainerBase)|(mmcv|mmengine)\..*Hook)$")
_METRIC_METHODS = ("update", "_update")
_METRICS = ("ignite.metrics.", "ignite.contrib.metrics.", "torchmetrics.", "pytorch_lightning.metrics.")
_CALLED_METRICS = "allennlp.training.metrics."
"""Where the metrics come from that a model calls with each batch."""
_FUNCTION = "torch.autograd.Function"
_TRAINER_METHODS = ("compute_loss", "prediction_step")  # of transformers.Trainer and its descendants
# What keeps a moving average of a model's weights, and is told about each step of its training.
_AVERAGE = re.compile(r"(^|[a-z_])(EMA|Ema)([A-Z_]|$)|^EMA|ExponentialMovingAverage")
_AVERAGE_METHODS = ("step", "update", "update_parameters")
_SCHEDULER = re.compile(r"(scheduler|sampler)$", re.IGNORECASE)
_DENOISING_ARGUMENTS = 3
_NOISING = ("add_noise", "scale_noise")  # each batch of a training, and the start of a denoising
_DENOISED = re.compile(r"(^|_)(sample|model_output|timestep|sigma|noise|latents?|x_t)s?$")
_DEEPEST = 8
"""Through how many classes the base of a callback is looked for."""

_STEP = re.compile(
    r"^_?((do|run)_)?(?P<stage>fit|train|training|eval|evaluate|evaluation|val|valid|validate|validation|test|predict|infer)"
    r"_((one|single)_)?(mini_?)?(batch|step|iteration)$"
)
_BATCH = re.compile(r"^((data|mini)_?)?batch(_data)?$|^(samples?|inputs?|data|images?|x)$")
_ROLE_BY_STAGE = {
    **dict.fromkeys(("fit", "train", "training"), Role.STEP),
    **dict.fromkeys("eval evaluate evaluation val valid validate validation".split(), Role.EVALUATION_LOOP),
}
_LOSS_CLASS = re.compile(r"(Loss|Criterion)(es)?(V?\d+)?$")


def by_name(method: cst.FunctionDef, owner: cst.ClassDef, definitions: Definitions) -> Role | None:
    """Return the role of a method that everybody calls for the same purpose in classes of this kind."""
    name, kind = method.name.value, definitions.class_kind(owner)
    if name in ("forward", "__call__", "backward"):
        return _of_call(name, owner, definitions)
    if name in _ROLE_BY_METHOD and name != "collate_fn":
        role = _ROLE_BY_METHOD[name]
        if name in _TRAINER_METHODS:
            known = any(n.endswith("Trainer") for n in definitions.ancestry(owner))
        else:
            known = role is not Role.DATA or kind is Kind.DATASET
        if known:
            return role
    if name in _ROLE_BY_MODEL_METHOD and kind is Kind.MODULE:
        return _ROLE_BY_MODEL_METHOD[name]
    if name in _ROLE_BY_HOOK and any(n.endswith(_HOOKED) for n in definitions.ancestry(owner)):
        return _ROLE_BY_HOOK[name]
    if name in _ROLE_BY_NAMED_HOOK and any(map(_NAMED_HOOKS.match, definitions.ancestry(owner))):
        return _ROLE_BY_NAMED_HOOK[name]
    if name in _ROLE_BY_OWN_HOOK and _OWN_HOOKS.search(_root(owner, definitions)):
        return _ROLE_BY_OWN_HOOK[name]
    if name in _METRIC_METHODS and _is_metric(owner, definitions):
        return Role.METRIC
    if name in _NOISING and owner.name.value.endswith("Scheduler") and _takes_sample(method):
        return Role.OPERATION
    if name == "step" and owner.name.value.endswith("Scheduler") and _takes_sample(method):
        return Role.DENOISING
    averages = name in _AVERAGE_METHODS and _AVERAGE.search(owner.name.value) is not None
    if averages or (name == "step" and kind is Kind.OPTIMIZER):
        return Role.UPDATE
    return _ROLE_BY_BRAIN_METHOD.get(name) if definitions.is_brain(owner) else None


def _root(owner: cst.ClassDef, definitions: Definitions) -> str:
    """The name of the class that a class derives from in the end, in this file or the one it is imported from."""
    above = definitions.ancestry(owner)
    if above:
        return above[0].rpartition(".")[2]
    root = owner
    for _ in range(_DEEPEST):
        bases = definitions.bases(root)
        if not bases:
            break
        root = bases[0]
    return root.name.value


def _of_call(name: str, owner: cst.ClassDef, definitions: Definitions) -> Role | None:
    """The role of what runs when an object is called."""
    if name == "forward" and definitions.class_kind(owner) is Kind.MODULE:
        return Role.FORWARD
    if name == "__call__" and owner.name.value.endswith("Loss"):
        return Role.LOSS
    if name == "__call__" and _is_called_metric(owner, definitions):
        return Role.METRIC
    return Role.FORWARD if name != "__call__" and _FUNCTION in definitions.ancestry(owner) else None


def _is_metric(owner: cst.ClassDef, definitions: Definitions) -> bool:
    """Whether a class is a metric of a library or of the file, which is asked for its value now and then."""
    above = definitions.ancestry(owner)
    if any(n.startswith(_METRICS) for n in above):
        return True
    lineage = (*above, *(base.name.value for base in definitions.bases(owner)))
    return any(n.endswith("Metric") for n in lineage) and definitions.method(owner, "compute") is not None


def _is_called_metric(owner: cst.ClassDef, definitions: Definitions) -> bool:
    """Whether models call the objects of a class with each batch, and ask for the metric at the end of an epoch."""
    if any(n.startswith(_CALLED_METRICS) for n in definitions.ancestry(owner)):
        return True
    asked = definitions.method(owner, "get_metric")
    return asked is not None and any(parameter.name.value == "reset" for parameter in asked.params.params)


def _takes_sample(step: cst.FunctionDef) -> bool:
    """Whether a step of a scheduler takes a sample and a prediction, rather than an epoch and what it is judged by."""
    given = [parameter.name.value for parameter in step.params.params]
    return len(given) > _DENOISING_ARGUMENTS and any(map(_DENOISED.search, given))


def denoises(call: cst.Call) -> bool:
    """Return whether a call takes a step of a diffusion process: ``scheduler.step(prediction, t, sample)``.

    The schedulers of learning rates take one argument at most.
    """
    method = method_call(call, "step")
    return (
        method is not None
        and len(call.args) >= _DENOISING_ARGUMENTS
        and bool(_SCHEDULER.search(identifier(method.value)))
    )


def computes_loss(heat: Heat, definitions: Definitions) -> bool:
    """Return whether what is hot is the forward pass of a class that is named for the loss that it computes."""
    owner = definitions.owner(heat.root) if isinstance(heat.root, cst.FunctionDef) else None
    return owner is not None and heat.role is Role.FORWARD and bool(_LOSS_CLASS.search(owner.name.value))


def takes_one_step(name: str) -> bool:
    """Return whether a function is named for the one step that it takes: ``train_step``, ``predict_batch``."""
    return _STEP.match(name) is not None


def of_step(function: cst.FunctionDef) -> Role | None:
    """Return the role of a function by such a name that is given a batch, None where it may as well run only once."""
    names = [parameter.name.value for parameter in function.params.params]
    if function.name.value == "batch_processor" and "train_mode" in names:  # of mmcv's runners
        return Role.STEP
    found = _STEP.match(function.name.value)
    given = any(map(_BATCH.match, names))
    return _ROLE_BY_STAGE.get(found["stage"]) if found is not None and given else None
