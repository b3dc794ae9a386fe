"""The parts of the model, each imported and made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torchlint.semantics.evaluate.evaluator import Evaluator

if TYPE_CHECKING:
    from torchlint.semantics.accumulation import Accumulations
    from torchlint.semantics.arrays import Arrays
    from torchlint.semantics.backward import Backward
    from torchlint.semantics.called import Called
    from torchlint.semantics.casts import Casts
    from torchlint.semantics.choices import Choices
    from torchlint.semantics.clearing import Clearing
    from torchlint.semantics.conditions import Conditions
    from torchlint.semantics.constructors import Constructors
    from torchlint.semantics.creations import Creations
    from torchlint.semantics.datasets import Datasets
    from torchlint.semantics.decisions import Decisions
    from torchlint.semantics.detached import DetachedForwards
    from torchlint.semantics.detours import Detours
    from torchlint.semantics.elementwise import Elementwise
    from torchlint.semantics.environment import Environment
    from torchlint.semantics.epochs import Epochs
    from torchlint.semantics.foreseen import Foreseen
    from torchlint.semantics.generators import Generators
    from torchlint.semantics.growth import Growths
    from torchlint.semantics.guards import Guards
    from torchlint.semantics.heat import Hotness
    from torchlint.semantics.host_reads import HostReads
    from torchlint.semantics.inference import Inference
    from torchlint.semantics.invariants import Invariants
    from torchlint.semantics.layers.norms import Norms
    from torchlint.semantics.layers.successors import Layers
    from torchlint.semantics.lists import Lists
    from torchlint.semantics.loaders import Loaders
    from torchlint.semantics.local_graph import LocalGraph
    from torchlint.semantics.modes import Modes
    from torchlint.semantics.moves import Moves
    from torchlint.semantics.parameter_loops import ParameterLoops
    from torchlint.semantics.pinned import Pinned
    from torchlint.semantics.precision import Precision
    from torchlint.semantics.retention import Retentions
    from torchlint.semantics.steps import Steps
    from torchlint.semantics.switches import Switches
    from torchlint.semantics.tensor_functions import TensorFunctions
    from torchlint.semantics.trains import Trains
    from torchlint.semantics.unbounded import Unbounded
    from torchlint.semantics.wide import Wide
    from torchlint.semantics.writes import Writes


class Parts:
    """What answers the special questions about one file. Most files need few of them, and importing all takes long."""

    evaluator: Evaluator

    @cached_property
    def called(self) -> Called:
        """Which calls go by certain names."""
        from torchlint.semantics.called import Called

        return Called(self.evaluator.tree, self.evaluator.scopes)

    @cached_property
    def guards(self) -> Guards:
        """Why a node does not run whenever the code around it does."""
        from torchlint.semantics.guards import Guards

        return Guards(self.evaluator)

    @cached_property
    def tensor_functions(self) -> TensorFunctions:
        """The functions of a library that compute tensors from tensors."""
        from torchlint.semantics.tensor_functions import TensorFunctions

        return TensorFunctions(self.evaluator, self.guards)

    @cached_property
    def hotness(self) -> Hotness:
        """What runs on every step."""
        from torchlint.semantics.heat import Hotness

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
    def choices(self) -> Choices:
        """What only runs if it is asked for."""
        from torchlint.semantics.choices import Choices

        return Choices(self.evaluator)

    @cached_property
    def clearing(self) -> Clearing:
        """Where gradients are cleared."""
        from torchlint.semantics.clearing import Clearing

        return Clearing(self.evaluator)

    @cached_property
    def steps(self) -> Steps:
        """The order in which training steps do what they do."""
        from torchlint.semantics.steps import Steps

        return Steps(self.evaluator)

    @cached_property
    def switches(self) -> Switches:
        """Switches of the whole process."""
        from torchlint.semantics.switches import Switches

        return Switches(self.evaluator)

    @cached_property
    def environment(self) -> Environment:
        """Who may read a variable of the environment."""
        from torchlint.semantics.environment import Environment

        return Environment(self.evaluator, self.switches)

    @cached_property
    def training_code(self) -> Trains:
        """Whether code trains."""
        from torchlint.semantics.trains import Trains

        return Trains(self.evaluator)

    @cached_property
    def local_graph(self) -> LocalGraph:
        """Graphs that one pass makes and uses up."""
        from torchlint.semantics.local_graph import LocalGraph

        return LocalGraph(self.evaluator)

    @cached_property
    def modes(self) -> Modes:
        """Whether modules compute as in training."""
        from torchlint.semantics.modes import Modes

        return Modes(self.evaluator, self.training_code)

    @cached_property
    def writes(self) -> Writes:
        """What is written in place."""
        from torchlint.semantics.writes import Writes

        return Writes(self.evaluator)

    @cached_property
    def foreseen(self) -> Foreseen:
        """What is known before a loop begins."""
        from torchlint.semantics.foreseen import Foreseen

        return Foreseen(self.evaluator, self.writes)

    @cached_property
    def invariants(self) -> Invariants:
        """What stays the same from pass to pass."""
        from torchlint.semantics.invariants import Invariants

        return Invariants(self.evaluator, self.writes)

    @cached_property
    def backward(self) -> Backward:
        """The backward passes."""
        from torchlint.semantics.backward import Backward

        return Backward(self.evaluator)

    @cached_property
    def host_reads(self) -> HostReads:
        """Where the host waits for a value."""
        from torchlint.semantics.host_reads import HostReads

        return HostReads(self.evaluator)

    @cached_property
    def constructors(self) -> Constructors:
        """Calls that make tensors."""
        from torchlint.semantics.constructors import Constructors

        return Constructors(self.evaluator)

    @cached_property
    def moves(self) -> Moves:
        """Moves to a device or type."""
        from torchlint.semantics.moves import Moves

        return Moves(self.evaluator)

    @cached_property
    def parameter_loops(self) -> ParameterLoops:
        """Loops that change one parameter after the other."""
        from torchlint.semantics.parameter_loops import ParameterLoops

        return ParameterLoops(self.evaluator)

    @cached_property
    def pinned(self) -> Pinned:
        """Which memory is not pinned."""
        from torchlint.semantics.pinned import Pinned

        return Pinned(self.evaluator)

    @cached_property
    def unbounded(self) -> Unbounded:
        """Results with as many elements as the values say."""
        from torchlint.semantics.unbounded import Unbounded

        return Unbounded(self.evaluator)

    @cached_property
    def wide(self) -> Wide:
        """Tensors of 64-bit floats."""
        from torchlint.semantics.wide import Wide

        return Wide(self.evaluator, self.arrays, self.moves)

    @cached_property
    def precision(self) -> Precision:
        """Autocast blocks."""
        from torchlint.semantics.precision import Precision

        return Precision(self.evaluator)

    @cached_property
    def arrays(self) -> Arrays:
        """NumPy arrays and what becomes of them."""
        from torchlint.semantics.arrays import Arrays

        return Arrays(self.evaluator)

    @cached_property
    def datasets(self) -> Datasets:
        """Datasets and loaders."""
        from torchlint.semantics.datasets import Datasets

        return Datasets(self.evaluator, self.moves)

    @cached_property
    def loaders(self) -> Loaders:
        """Calls that make loaders."""
        from torchlint.semantics.loaders import Loaders

        return Loaders(self.evaluator, self.moves, self.datasets)

    @cached_property
    def epochs(self) -> Epochs:
        """Loaders that are iterated over again and again."""
        from torchlint.semantics.epochs import Epochs

        return Epochs(self.evaluator)

    @cached_property
    def creations(self) -> Creations:
        """Tensors that are made and then moved."""
        from torchlint.semantics.creations import Creations

        return Creations(self.evaluator, self.moves)

    @cached_property
    def generators(self) -> Generators:
        """Random number generators that objects carry."""
        from torchlint.semantics.generators import Generators

        return Generators(self.evaluator)

    @cached_property
    def casts(self) -> Casts:
        """Tensors that are made and then cast."""
        from torchlint.semantics.casts import Casts

        return Casts(self.evaluator, self.constructors)

    @cached_property
    def elementwise(self) -> Elementwise:
        """Loops over the elements of a tensor."""
        from torchlint.semantics.elementwise import Elementwise

        return Elementwise(self.evaluator)

    @cached_property
    def lists(self) -> Lists:
        """What lists hold that become tensors."""
        from torchlint.semantics.lists import Lists

        return Lists(self.evaluator, self.constructors)

    @cached_property
    def decisions(self) -> Decisions:
        """What becomes of values that are read."""
        from torchlint.semantics.decisions import Decisions

        return Decisions(self.evaluator)

    @cached_property
    def detours(self) -> Detours:
        """Tensors that NumPy makes."""
        from torchlint.semantics.detours import Detours

        return Detours(self.evaluator)

    @cached_property
    def growths(self) -> Growths:
        """Variables that grow by concatenation."""
        from torchlint.semantics.growth import Growths

        return Growths(self.evaluator, self.hotness)

    @cached_property
    def inference(self) -> Inference:
        """Where models are run without training."""
        from torchlint.semantics.inference import Inference

        return Inference(self.evaluator, self.backward)

    @cached_property
    def detached(self) -> DetachedForwards:
        """Forward passes of which only the values are kept."""
        from torchlint.semantics.detached import DetachedForwards

        return DetachedForwards(self.evaluator, self.inference)

    @cached_property
    def retentions(self) -> Retentions:
        """Values that keep their graph."""
        from torchlint.semantics.retention import Retentions

        return Retentions(self.evaluator, self.hotness, self.backward, self.inference)

    @cached_property
    def conditions(self) -> Conditions:
        """What tests test."""
        from torchlint.semantics.conditions import Conditions

        return Conditions(self.evaluator)

    @cached_property
    def accumulations(self) -> Accumulations:
        """Numbers that a loop sums up."""
        from torchlint.semantics.accumulation import Accumulations

        return Accumulations(self.evaluator)
