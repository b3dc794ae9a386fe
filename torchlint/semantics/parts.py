"""The parts of the model, each imported and made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torchlint.semantics.evaluate.evaluator import Evaluator

if TYPE_CHECKING:
    from torchlint.semantics.autograd.backward import Backward
    from torchlint.semantics.autograd.local_graph import LocalGraph
    from torchlint.semantics.binding.calls_by_name import CallsByName
    from torchlint.semantics.dataflow.hoistable import Hoistable
    from torchlint.semantics.dataflow.invariants import Invariants
    from torchlint.semantics.dataflow.writes import Writes
    from torchlint.semantics.evaluation.detached import DetachedForwards
    from torchlint.semantics.evaluation.inference import Inference
    from torchlint.semantics.evaluation.modes import Modes
    from torchlint.semantics.evaluation.shown import ShownForwards
    from torchlint.semantics.heat.choices import Choices
    from torchlint.semantics.heat.conditions import Conditions
    from torchlint.semantics.heat.guards import Guards
    from torchlint.semantics.heat.hotness import Hotness
    from torchlint.semantics.heat.tensor_functions import TensorFunctions
    from torchlint.semantics.layers.norms import Norms
    from torchlint.semantics.layers.successors import Layers
    from torchlint.semantics.loading.batches import Batches
    from torchlint.semantics.loading.datasets import Datasets
    from torchlint.semantics.loading.epochs import Epochs
    from torchlint.semantics.loading.kept_workers import KeptWorkers
    from torchlint.semantics.loading.loaders import Loaders
    from torchlint.semantics.process.environment import Environment
    from torchlint.semantics.process.switches import Switches
    from torchlint.semantics.references.module_calls import ModuleCalls
    from torchlint.semantics.retention.graphs import Retentions
    from torchlint.semantics.retention.growth import Growths
    from torchlint.semantics.retention.totals import Accumulations
    from torchlint.semantics.synchronization.decisions import Decisions
    from torchlint.semantics.synchronization.dynamic_shapes import DynamicShapes
    from torchlint.semantics.synchronization.elementwise import Elementwise
    from torchlint.semantics.synchronization.host_reads import HostReads
    from torchlint.semantics.tensors.arrays import Arrays
    from torchlint.semantics.tensors.casts import Casts
    from torchlint.semantics.tensors.constructors import Constructors
    from torchlint.semantics.tensors.creations import Creations
    from torchlint.semantics.tensors.float64 import Float64Tensors
    from torchlint.semantics.tensors.lists import Lists
    from torchlint.semantics.tensors.moves import Moves
    from torchlint.semantics.tensors.numpy_detours import NumpyDetours
    from torchlint.semantics.tensors.pinned import Pinned
    from torchlint.semantics.tensors.random_generators import RandomGenerators
    from torchlint.semantics.training.gradient_clearing import GradientClearing
    from torchlint.semantics.training.mode_questions import ModeQuestions
    from torchlint.semantics.training.parameter_loops import ParameterLoops
    from torchlint.semantics.training.precision import Precision
    from torchlint.semantics.training.step_order import Steps
    from torchlint.semantics.training.training_code import TrainingCode


class Parts:
    """What answers the special questions about one file. Most files need few of them, and importing all takes long."""

    evaluator: Evaluator

    @cached_property
    def calls_by_name(self) -> CallsByName:
        """Which calls go by certain names."""
        from torchlint.semantics.binding.calls_by_name import CallsByName

        return CallsByName(self.evaluator.tree, self.evaluator.scopes)

    @cached_property
    def guards(self) -> Guards:
        """Why a node does not run whenever the code around it does."""
        from torchlint.semantics.heat.guards import Guards

        return Guards(self.evaluator)

    @cached_property
    def tensor_functions(self) -> TensorFunctions:
        """The functions of a library that compute tensors from tensors."""
        from torchlint.semantics.heat.tensor_functions import TensorFunctions

        return TensorFunctions(self.evaluator, self.guards)

    @cached_property
    def hotness(self) -> Hotness:
        """What runs on every step."""
        from torchlint.semantics.heat.hotness import Hotness

        return Hotness(self.evaluator, self.guards)

    @cached_property
    def layers(self) -> Layers:
        """Which layer feeds which."""
        from torchlint.semantics.layers.successors import Layers

        return Layers(self.evaluator)

    @cached_property
    def norms(self) -> Norms:
        """Which normalisations follow a layer."""
        from torchlint.semantics.layers.norms import Norms

        return Norms(self.layers)

    @cached_property
    def batches(self) -> Batches:
        """What is done with the batches of loaders."""
        from torchlint.semantics.loading.batches import Batches

        return Batches(self.evaluator, self.epochs)

    @cached_property
    def kept_workers(self) -> KeptWorkers:
        """What workers that stay from epoch to epoch would not see."""
        from torchlint.semantics.loading.kept_workers import KeptWorkers

        return KeptWorkers(self.evaluator, self.epochs)

    @cached_property
    def mode_questions(self) -> ModeQuestions:
        """Whether code asks if its module is being trained."""
        from torchlint.semantics.training.mode_questions import ModeQuestions

        return ModeQuestions(self.evaluator)

    @cached_property
    def module_calls(self) -> ModuleCalls:
        """Whether objects are modules, and calling them is the same as calling their ``forward``."""
        from torchlint.semantics.references.module_calls import ModuleCalls

        return ModuleCalls(self.evaluator)

    @cached_property
    def choices(self) -> Choices:
        """What only runs if it is asked for."""
        from torchlint.semantics.heat.choices import Choices

        return Choices(self.evaluator)

    @cached_property
    def gradient_clearing(self) -> GradientClearing:
        """Where gradients are cleared."""
        from torchlint.semantics.training.gradient_clearing import GradientClearing

        return GradientClearing(self.evaluator)

    @cached_property
    def steps(self) -> Steps:
        """The order in which training steps do what they do."""
        from torchlint.semantics.training.step_order import Steps

        return Steps(self.evaluator)

    @cached_property
    def switches(self) -> Switches:
        """Switches of the whole process."""
        from torchlint.semantics.process.switches import Switches

        return Switches(self.evaluator)

    @cached_property
    def environment(self) -> Environment:
        """Who may read a variable of the environment."""
        from torchlint.semantics.process.environment import Environment

        return Environment(self.evaluator, self.switches)

    @cached_property
    def training_code(self) -> TrainingCode:
        """Whether code trains."""
        from torchlint.semantics.training.training_code import TrainingCode

        return TrainingCode(self.evaluator)

    @cached_property
    def local_graph(self) -> LocalGraph:
        """Graphs that one pass makes and uses up."""
        from torchlint.semantics.autograd.local_graph import LocalGraph

        return LocalGraph(self.evaluator)

    @cached_property
    def modes(self) -> Modes:
        """Whether modules compute as in training."""
        from torchlint.semantics.evaluation.modes import Modes

        return Modes(self.evaluator, self.training_code)

    @cached_property
    def writes(self) -> Writes:
        """What is written in place."""
        from torchlint.semantics.dataflow.writes import Writes

        return Writes(self.evaluator)

    @cached_property
    def hoistable(self) -> Hoistable:
        """What is known before a loop begins."""
        from torchlint.semantics.dataflow.hoistable import Hoistable

        return Hoistable(self.evaluator, self.writes)

    @cached_property
    def invariants(self) -> Invariants:
        """What stays the same from pass to pass."""
        from torchlint.semantics.dataflow.invariants import Invariants

        return Invariants(self.evaluator, self.writes)

    @cached_property
    def backward(self) -> Backward:
        """The backward passes."""
        from torchlint.semantics.autograd.backward import Backward

        return Backward(self.evaluator)

    @cached_property
    def host_reads(self) -> HostReads:
        """Where the host waits for a value."""
        from torchlint.semantics.synchronization.host_reads import HostReads

        return HostReads(self.evaluator)

    @cached_property
    def constructors(self) -> Constructors:
        """Calls that make tensors."""
        from torchlint.semantics.tensors.constructors import Constructors

        return Constructors(self.evaluator)

    @cached_property
    def moves(self) -> Moves:
        """Moves to a device or type."""
        from torchlint.semantics.tensors.moves import Moves

        return Moves(self.evaluator)

    @cached_property
    def parameter_loops(self) -> ParameterLoops:
        """Loops that change one parameter after the other."""
        from torchlint.semantics.training.parameter_loops import ParameterLoops

        return ParameterLoops(self.evaluator)

    @cached_property
    def pinned(self) -> Pinned:
        """Which memory is not pinned."""
        from torchlint.semantics.tensors.pinned import Pinned

        return Pinned(self.evaluator)

    @cached_property
    def dynamic_shapes(self) -> DynamicShapes:
        """Results with as many elements as the values say."""
        from torchlint.semantics.synchronization.dynamic_shapes import DynamicShapes

        return DynamicShapes(self.evaluator)

    @cached_property
    def float64(self) -> Float64Tensors:
        """Tensors of 64-bit floats."""
        from torchlint.semantics.tensors.float64 import Float64Tensors

        return Float64Tensors(self.evaluator, self.arrays, self.moves)

    @cached_property
    def precision(self) -> Precision:
        """Autocast blocks."""
        from torchlint.semantics.training.precision import Precision

        return Precision(self.evaluator)

    @cached_property
    def arrays(self) -> Arrays:
        """NumPy arrays and what becomes of them."""
        from torchlint.semantics.tensors.arrays import Arrays

        return Arrays(self.evaluator)

    @cached_property
    def datasets(self) -> Datasets:
        """Datasets and loaders."""
        from torchlint.semantics.loading.datasets import Datasets

        return Datasets(self.evaluator, self.moves)

    @cached_property
    def loaders(self) -> Loaders:
        """Calls that make loaders."""
        from torchlint.semantics.loading.loaders import Loaders

        return Loaders(self.evaluator, self.moves, self.datasets)

    @cached_property
    def epochs(self) -> Epochs:
        """Loaders that are iterated over again and again."""
        from torchlint.semantics.loading.epochs import Epochs

        return Epochs(self.evaluator)

    @cached_property
    def creations(self) -> Creations:
        """Tensors that are made and then moved."""
        from torchlint.semantics.tensors.creations import Creations

        return Creations(self.evaluator, self.moves)

    @cached_property
    def random_generators(self) -> RandomGenerators:
        """Random number generators that objects carry."""
        from torchlint.semantics.tensors.random_generators import RandomGenerators

        return RandomGenerators(self.evaluator)

    @cached_property
    def casts(self) -> Casts:
        """Tensors that are made and then cast."""
        from torchlint.semantics.tensors.casts import Casts

        return Casts(self.evaluator, self.constructors)

    @cached_property
    def elementwise(self) -> Elementwise:
        """Loops over the elements of a tensor."""
        from torchlint.semantics.synchronization.elementwise import Elementwise

        return Elementwise(self.evaluator)

    @cached_property
    def lists(self) -> Lists:
        """What lists hold that become tensors."""
        from torchlint.semantics.tensors.lists import Lists

        return Lists(self.evaluator, self.constructors)

    @cached_property
    def decisions(self) -> Decisions:
        """What becomes of values that are read."""
        from torchlint.semantics.synchronization.decisions import Decisions

        return Decisions(self.evaluator, self.moves)

    @cached_property
    def numpy_detours(self) -> NumpyDetours:
        """Tensors that NumPy makes."""
        from torchlint.semantics.tensors.numpy_detours import NumpyDetours

        return NumpyDetours(self.evaluator)

    @cached_property
    def growths(self) -> Growths:
        """Variables that grow by concatenation."""
        from torchlint.semantics.retention.growth import Growths

        return Growths(self.evaluator, self.hotness)

    @cached_property
    def inference(self) -> Inference:
        """Where models are run without training."""
        from torchlint.semantics.evaluation.inference import Inference

        return Inference(self.evaluator, self.backward, self.training_code)

    @cached_property
    def detached(self) -> DetachedForwards:
        """Forward passes of which only the values are kept."""
        from torchlint.semantics.evaluation.detached import DetachedForwards

        return DetachedForwards(self.evaluator, self.inference, self.backward)

    @cached_property
    def shown_forwards(self) -> ShownForwards:
        """Forward passes of which only pictures are made."""
        from torchlint.semantics.evaluation.shown import ShownForwards

        return ShownForwards(self.evaluator, self.inference, self.detached)

    @cached_property
    def retentions(self) -> Retentions:
        """Values that keep their graph."""
        from torchlint.semantics.retention.graphs import Retentions

        return Retentions(self.evaluator, self.hotness, self.backward, self.inference)

    @cached_property
    def conditions(self) -> Conditions:
        """What tests test."""
        from torchlint.semantics.heat.conditions import Conditions

        return Conditions(self.evaluator)

    @cached_property
    def accumulations(self) -> Accumulations:
        """Numbers that a loop sums up."""
        from torchlint.semantics.retention.totals import Accumulations

        return Accumulations(self.evaluator)
