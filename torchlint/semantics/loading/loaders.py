"""Calls that make loaders of batches, torch's own and those of frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.functions import hands_out, named_device, places_items
from torchlint.semantics.evaluate.methods import leaves_batches
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.loading.blocking_moves import BlockingMoves
from torchlint.semantics.loading.collations import Collations
from torchlint.semantics.loading.datasets import Datasets
from torchlint.semantics.loading.placed_batches import PlacedBatches
from torchlint.semantics.tables.loaders import LOADER_KINDS, PREPARES, TRAINER_SETTINGS, Choice, LoaderKind
from torchlint.semantics.tensors.accelerator import frameworks_run_on_cpu, runs_on_mps
from torchlint.semantics.tensors.moves import Moves
from torchlint.semantics.values import Device, Kind, Value
from torchlint.syntax.calls import Arguments, bind, identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_RUNNERS = ("lightning.pytorch.Trainer", "lightning.fabric.Fabric")
_ON_GPU = frozenset(("gpu", "cuda"))
_PREPARING = ("accelerate.", "lightning.fabric.")
# What makes a trainer with the settings of a mapping: `LightningCLI(..., trainer_defaults={"accelerator": "gpu"})`.
_RUNNER_MAKERS = {"lightning.pytorch.cli.LightningCLI": "trainer_defaults"}
# What makes engines of Ignite that move each batch to `device`.
_ENGINE_MAKERS = {
    "ignite.engine.create_supervised_trainer": ("model", "optimizer", "loss_fn", "device"),
    "ignite.engine.create_supervised_evaluator": ("model", "metrics", "device"),
}

_NO_MOVERS = frozenset("builtins torch functools itertools copy logging json types typing rich wandb".split())
# What functions of other files are called that go through a loader with a model.
_USES_BATCHES = re.compile(
    r"(^|_)(train|fit|test|eval\w*|valid\w*|val|infer\w*|predict\w*|extract\w*|embed\w*|encode|finetune|epoch|loop|score|"
    r"run|search|attack|distill)(_|$)|^(Trainer|Evaluator|Engine|\w+(Trainer|Evaluator|Engine|Solver|Learner))$",
)
_NO_BATCHES = frozenset(("builtins.len", "builtins.str", "builtins.repr", "builtins.type", "builtins.id"))
_NO_LOADERS = frozenset((Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER))


class LoaderCall(NamedTuple):
    """A call that makes a loader, or that says how a trainer makes its own."""

    call: cst.Call
    kind: LoaderKind
    given: Arguments
    datasets: tuple[cst.BaseExpression, ...]
    """What the items come from; empty for a graph, of which batches are sampled."""

    collate: cst.BaseExpression | None
    source: cst.BaseExpression | None
    """What a message calls the data by."""

    name: str

    @property
    def open(self) -> bool:
        """Whether arguments that nobody sees may decide."""
        return self.given.open or bool(self.given.extra)

    def chosen(self, choice: Choice) -> cst.BaseExpression | None:
        """Return what is given for a parameter."""
        return self.given.get(choice.keyword)

    def is_off(self, choice: Choice) -> bool:
        """Return whether a parameter is the constant 0 or False, or is that unless it is given."""
        value = self.chosen(choice)
        found = choice.default if value is None else literal(value)
        return isinstance(found, (bool, int)) and not found


class Loaders:
    """Recognises loaders, and says where their batches go."""

    def __init__(self, evaluator: Evaluator, moves: Moves, datasets: Datasets) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._moves = moves
        self._datasets = datasets
        self.placed_batches = PlacedBatches(evaluator, moves, datasets)
        self.collations = Collations(evaluator)
        self.blocking_moves = BlockingMoves(evaluator, self.collations)
        self._reads_device: dict[cst.Call, bool] = {}

    def loader(self, call: cst.Call, name: str, given: Arguments) -> LoaderCall | None:
        """Return the loader that a call of ``name`` makes."""
        if name in LOADER_KINDS:
            kind = LOADER_KINDS[name]
            source = given.get(kind.data)
            datasets: tuple[cst.BaseExpression, ...] = (source,) if source is not None and kind.indexes else ()
            return LoaderCall(call, kind, given, datasets, given.get("collate_fn"), source, name)
        if name not in TRAINER_SETTINGS or self._loads_itself():
            return None
        datasets = tuple(self._keyword_values("train_dataset", "eval_dataset"))
        collate = next(self._keyword_values("data_collator"), None)
        source = datasets[0] if datasets else None
        return LoaderCall(call, TRAINER_SETTINGS[name], given, datasets, collate, source, name)

    def _loads_itself(self) -> bool:
        """Whether a trainer of the file makes its loaders by a method of its own."""
        return any(function.name.value == "get_train_dataloader" for function in self._tree.nodes(cst.FunctionDef))

    def _keyword_values(self, *names: str) -> Iterator[cst.BaseExpression]:
        for argument in self._tree.nodes(cst.Arg):
            if argument.keyword is not None and argument.keyword.value in names:
                yield argument.value

    def reads_device(self, loader: LoaderCall) -> bool:
        """Return whether the items of a loader, or the graph that it samples, are on a device already."""
        if loader.call not in self._reads_device:
            self._reads_device[loader.call] = self._is_on_device(loader)
        return self._reads_device[loader.call]

    def _is_on_device(self, loader: LoaderCall) -> bool:
        sources = (*loader.datasets, loader.collate) if loader.collate is not None else loader.datasets
        if any(map(self.placed_batches.are_given_by, sources)):
            return True
        if loader.name.startswith("monai.") and places_items(self._evaluator):
            return True
        return not loader.kind.indexes and loader.source is not None and self._moved_before(loader.source, loader.call)

    def _moved_before(self, graph: cst.BaseExpression, place: cst.Call) -> bool:
        """Whether a graph, which ``to`` moves in place, is put on a device further up."""
        return any(
            self._tree.order(call) < self._tree.order(place) and self._is_moved(graph, call)
            for call in self._tree.nodes(cst.Call)
        )

    def _is_moved(self, graph: cst.BaseExpression, call: cst.Call) -> bool:
        method = method_call(call, "to", "cuda")
        parent = self._tree.parent(call)
        bound = [target.target for target in parent.targets] if isinstance(parent, cst.Assign) else []
        return method is not None and any(is_same(place, graph) for place in (method.value, *bound))

    def destination(self, loader: LoaderCall) -> Device | None:
        """Return the place that the batches of a loader are moved to: an accelerator, one of them, or None."""
        if any(literal(loader.given.get(name)) is True for name in loader.kind.host_only):
            return None
        on_cpu = frameworks_run_on_cpu(self._evaluator) and self._moves.destination is not Device.ACCELERATOR
        if self.needs_no_pinning or on_cpu:
            return None
        if not loader.kind.moves:
            framework = self._framework_destination
            return framework if framework is Device.ACCELERATOR else self._moves.destination or framework
        place = hands_out(loader.kind, loader.given, self._evaluator)
        if place is Device.CPU:
            return self._moves.destination
        return Device.EITHER if loader.kind.host_only or place is not Device.ACCELERATOR else place

    @cached_property
    def are_prepared(self) -> bool:
        """Whether anything that may be a loader is given to an accelerator, which then moves the batches."""
        calls = (c for c in self._tree.calls_named(*PREPARES) if method_call(c) is not None)
        return any(a.star or self._evaluator.value(a.value).kind not in _NO_LOADERS for c in calls for a in c.args)

    def go_to_prepared(self, move: cst.Call, moved: Value) -> bool:
        """Return whether a batch moves to the device of an accelerator that prepares loaders in this file."""
        place = next((a.value for a in move.args if a.star == ""), None)
        if not isinstance(place, cst.Attribute) or place.attr.value != "device":
            return False
        if leaves_batches(place.value, self._evaluator):
            return False
        if moved.evidence > Evidence.NAMED and not self.are_prepared:
            return False  # the loader is made here, and nobody hands it to the accelerator
        named = self._evaluator.value(place.value).name or ""
        return "prepare" in self._evaluator.usage.attributes(place.value) or named.startswith("accelerate.")

    @cached_property
    def may_decline_accelerator(self) -> bool:
        """Whether more decides than whether there is CUDA: ``not args.no_cuda and ...``, a device from elsewhere."""
        asked = self._tree.calls_named("is_available")
        return not asked or any(isinstance(self._tree.parent(call), cst.BooleanOperation) for call in asked)

    @cached_property
    def needs_no_pinning(self) -> bool:
        """Whether pinned memory is nothing to where the file moves things: to a TPU or to MPS, and never to CUDA."""
        return self._runs_on_tpu() or runs_on_mps(self._evaluator)

    def _runs_on_tpu(self) -> bool:
        qualified = self._evaluator.names.qualified
        calls = (call.func for call in self._tree.calls_named("device", "xla_device"))
        if not any(identifier(name) == "xla_device" or qualified(name) == "torch_xla.device" for name in calls):
            return False
        return not any(a.attr.value == "cuda" for a in self._tree.nodes(cst.Attribute)) and not any(
            text.raw_value.startswith("cuda") for text in self._tree.nodes(cst.SimpleString)
        )

    @cached_property
    def _framework_destination(self) -> Device | None:
        """Where a framework moves what the file gives it."""
        places = {self._run_place(call) for call in self._tree.nodes(cst.Call)}
        if Device.ACCELERATOR in places:
            return Device.ACCELERATOR
        return Device.EITHER if places - {None} else None

    def _run_place(self, call: cst.Call) -> Device | None:
        """Where the batches of a Lightning trainer, of an engine of Ignite or of accelerate's loaders go."""
        name = self._evaluator.names.qualified(call.func) or ""
        if name in _ENGINE_MAKERS:
            device = bind(call.args, _ENGINE_MAKERS[name]).get("device")
            place = named_device(self._evaluator.value(device)) if device is not None else None
            return place if place in (Device.ACCELERATOR, Device.EITHER) else None
        if name in _RUNNERS or name in _RUNNER_MAKERS:
            given = bind(call.args)
            settings = given.get(_RUNNER_MAKERS.get(name, ""))
            given = bind((cst.Arg(settings, star="**"),)) if settings is not None else given
            where, gpus = literal(given.get("accelerator")), literal(given.get("gpus"))
            if where in _ON_GPU or gpus:
                return Device.ACCELERATOR
            return Device.EITHER if where == "auto" else None
        method = method_call(call, *PREPARES)
        if method is None:
            return self._place_of_other_file(call, name)
        if not self._is_accelerator(method.value):
            return None
        loads = any(self._evaluator.value(a.value).kind is Kind.DATALOADER for a in call.args)
        return Device.EITHER if loads else None

    def _place_of_other_file(self, call: cst.Call, name: str) -> Device | None:
        """Where a function of another file is told to move batches: ``extract(batches(loader), model, device)``."""
        last = name.rpartition(".")[2]
        if not _USES_BATCHES.search(last) or name.partition(".")[0] in _NO_MOVERS:
            return None
        if self._evaluator.definitions.definition(call.func) is not None:
            return None
        given = [self._evaluator.value(argument.value) for argument in call.args]
        places = {value.device for value in given if value.kind is Kind.DEVICE}
        place = places.pop() if len(places) == 1 else None
        if place not in (Device.ACCELERATOR, Device.EITHER):
            return None
        return Device.EITHER if any(self._hands_on(argument.value) for argument in call.args) else None

    def _hands_on(self, given: cst.BaseExpression) -> bool:
        """Whether what a function is given is a loader, or made of one: ``batches(loader)``, no ``len(loader)``."""
        if self._evaluator.value(given).kind is Kind.DATALOADER:
            return True
        if isinstance(given, cst.Call):
            name = self._evaluator.names.qualified(given.func) or ""
            counts = name in _NO_BATCHES or self._evaluator.value(given).kind in (Kind.NUMBER, Kind.STRING)
            return not counts and any(self._hands_on(argument.value) for argument in given.args)
        return False

    def _is_accelerator(self, expression: cst.BaseExpression) -> bool:
        named = self._evaluator.value(expression).name or ""
        if named.startswith(_PREPARING) or identifier(expression) == "accelerator":
            return True
        bindings = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
        made = [(b.value.func if isinstance(b.value, cst.Call) else None) for b in bindings]
        names = [(self._evaluator.names.qualified(each) or "") if each is not None else "" for each in made]
        return bool(names) and all(name.startswith(_PREPARING) for name in names)
