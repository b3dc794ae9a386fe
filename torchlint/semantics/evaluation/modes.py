"""Whether modules compute as in training or in evaluation: where ``eval()`` and ``train()`` are called or missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS, last_statement
from torchlint.semantics.binding.scopes import FUNCTIONS, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.evaluation_loops import holds_batch
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.training.training_code import TrainingCode
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_MAX_DEPTH = 4
_SETS_MODE = re.compile(r"train|(^|_)(modes?|fit|eval|evaluate|validate|learn)(_|$)", re.IGNORECASE)
_DIFFERS = re.compile(r"(^|_)(drop|dropout|bn|norm|batchnorm)|Dropout|BatchNorm|InstanceNorm|Norm\b|DropPath")
_DIFFERING = re.compile(r"^(\w*Dropout\w*|(Sync|Lazy)?BatchNorm\w*|Transformer(En|De)coderLayer|Transformer)$")
_OF_TORCHVISION = re.compile(
    r"^torchvision\.models\.(resne|wide_resnet|densenet|mobilenet|efficientnet|regnet|shufflenet|mnasnet|googlenet|"
    r"inception|vgg|alexnet|squeezenet|convnext)"
)


_WITHOUT_MODES = frozenset(
    (
        *(f"torch.nn.{name}" for name in ("Linear", "Bilinear", "Embedding", "EmbeddingBag")),
        *("torch_geometric.nn.MetaPath2Vec", "torch_geometric.nn.Node2Vec"),
    )
)


class Modes:
    """Follows modes through the loops and functions of a file."""

    def __init__(self, evaluator: Evaluator, trains: TrainingCode) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._trains = trains

    # Training that goes on in evaluation mode

    def unresumed(self, call: cst.Call) -> cst.For | cst.While | None:
        """Return the training loop in which ``model.eval()`` is never undone, None if nothing shows one."""
        method = method_call(call, "eval")
        if method is None or call.args or not isinstance(method.value, (cst.Name, cst.Attribute)):
            return None
        found = next(self._training_loops(call, frozenset((identifier(method.value),)), 0), None)
        if found is None:
            return None
        loop, names = found
        if not self._is_optimized(loop, names) or self._lacks_modes(method.value) or not self._begins_evaluation(call):
            return None
        return None if self._may_resume(loop, names) else loop

    def _begins_evaluation(self, call: cst.Call) -> bool:
        """Whether an evaluation follows: something without gradients, or the rest of a function that does not train.

        So does a checkpoint that is written before training goes on.

        Otherwise the model may be trained in this mode on purpose, with the statistics that it has.
        """
        disabled = self._evaluator.gradients.disabled
        for statement in self._evaluator.flow.following(call):
            calls = [node for node in self._tree.descendants(statement) if isinstance(node, cst.Call)]
            if any(disabled(node) or self._saves(node) for node in calls):
                return True
            if self._trains.trains(statement):
                return False
        function = self._evaluator.definitions.enclosing_function(call)
        return disabled(call) or (function is not None and not self._trains.trains(function.body))

    def _saves(self, call: cst.Call) -> bool:
        return self._evaluator.names.qualified(call.func) == "torch.save" or method_call(call, "state_dict") is not None

    def _training_loops(
        self, node: cst.CSTNode, names: frozenset[str], depth: int
    ) -> Iterator[tuple[cst.For | cst.While, frozenset[str]]]:
        """Yield the loops that train and in each pass of which a node may run, with all names of the model."""
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, cst.FunctionDef) and child is ancestor.body:
                for caller in self._evaluator.callers(ancestor) if depth < _MAX_DEPTH else ():
                    given = frozenset(identifier(argument.value) for argument in caller.args)
                    yield from self._training_loops(caller, names | given, depth + 1)
                return
            if isinstance(ancestor, (*FUNCTIONS, cst.ClassDef)):
                return
            if isinstance(ancestor, cst.If) and child is not ancestor.test and _is_once(ancestor.test):
                return
            if isinstance(ancestor, cst.IndentedBlock) and self._ends(ancestor):
                return
            if isinstance(ancestor, LOOPS) and child is ancestor.body and self._trains.trains(ancestor.body):
                yield ancestor, names
            child = ancestor

    def _ends(self, block: cst.IndentedBlock) -> bool:
        """Whether a block that is no function's body leaves the loop or function around it."""
        inner = not isinstance(self._tree.parent(block), FUNCTIONS)
        return inner and isinstance(last_statement(block), (cst.Break, cst.Return, cst.Raise))

    def _is_optimized(self, loop: cst.CSTNode, names: frozenset[str]) -> bool:
        """Whether an optimizer of torch that the loop can see is given the parameters of a module of such a name."""
        frames = self._frames(loop)
        owners = [self._evaluator.definitions.owner(frame) for frame in frames if frame is not None]
        for call in self._tree.nodes(cst.Call):
            value = self._evaluator.value(call)
            if value.kind is not Kind.OPTIMIZER or value.evidence < Evidence.INFERRED:
                continue
            made_in = self._evaluator.definitions.enclosing_function(call)
            owner = self._evaluator.definitions.owner(made_in) if made_in is not None else None
            is_seen = any(made_in is frame for frame in (*frames, None)) or (owner is not None and owner in owners)
            if is_seen and not names.isdisjoint(self._owners(call, 0)):
                return True
        return False

    def _frames(self, node: cst.CSTNode, depth: int = 0) -> list[cst.FunctionDef | None]:
        """The function that a node runs in, and those that call it."""
        function = self._evaluator.definitions.enclosing_function(node)
        found: list[cst.FunctionDef | None] = [function]
        if function is not None and depth < _MAX_DEPTH:
            for caller in self._evaluator.callers(function):
                found += self._frames(caller, depth + 1)
        return found

    def _owners(self, expression: cst.CSTNode, depth: int) -> Iterator[str]:
        for node in (expression, *self._tree.descendants(expression)):
            method = method_call(node, "parameters", "named_parameters")
            if method is not None:
                yield identifier(method.value)
            elif isinstance(node, cst.Name) and depth < 2:
                bindings = self._evaluator.flow.definitions(node)
                if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and bindings[0].value is not None:
                    yield from self._owners(bindings[0].value, depth + 1)

    def _may_resume(self, loop: cst.For | cst.While, names: frozenset[str]) -> bool:
        """Whether something in a loop sets a module back to training, or may do so out of sight."""
        return any(self._resumes(node, names) for node in self._reached(loop, set(), 0))

    def _reached(self, root: cst.CSTNode, seen: set[int], depth: int) -> Iterator[cst.CSTNode]:
        """Yield what runs below a node, through the functions of the file."""
        for node in self._tree.descendants(root):
            yield node
            if isinstance(node, cst.Call) and depth < _MAX_DEPTH:
                function = self._called(node)
                if function is not None and id(function) not in seen:
                    seen.add(id(function))
                    yield from self._reached(function.body, seen, depth + 1)

    def _called(self, call: cst.Call) -> cst.FunctionDef | None:
        found = self._evaluator.definitions.definition(call.func)
        return found if isinstance(found, cst.FunctionDef) else None

    def _resumes(self, node: cst.CSTNode, names: frozenset[str]) -> bool:
        if isinstance(node, cst.AssignTarget):
            return identifier(node.target) == "training"
        if not isinstance(node, cst.Call):
            return False
        name = identifier(node.func)
        if name == "train":
            return not (node.args and literal(node.args[0].value) is False)
        if name == "eval" or self._called(node) is not None:
            return False
        qualified = self._evaluator.names.qualified(node.func)
        if qualified is not None and qualified.startswith(("torch.", "builtins.")):
            return False
        given = {identifier(argument.value) for argument in node.args}
        return bool(_SETS_MODE.search(name)) or (not given.isdisjoint(names) and qualified is not None)

    def _lacks_modes(self, module: cst.BaseExpression) -> bool:
        """Whether a module is of a class, known or of the file, in which nothing computes otherwise in evaluation."""
        value = self._evaluator.value(module)
        definition = value.definition
        if not isinstance(definition, cst.ClassDef):
            return value.name in _WITHOUT_MODES
        names = (
            node.value
            for class_def in (definition, *self._evaluator.definitions.bases(definition))
            for node in self._tree.descendants(class_def)
            if isinstance(node, cst.Name)
        )
        return not any(_DIFFERS.search(name) for name in names) and not self.differs(definition)

    # Evaluation in training mode

    def evaluated(self, call: cst.Call) -> bool:
        """Return whether a call runs a model on data that nobody trains with, although its class knows two modes.

        The mode is what a new module has: nothing in the file sets another one.
        """
        if not isinstance(call.func, (cst.Name, cst.Attribute)):
            return False
        if self._is_in_module(call) or not self._evaluator.gradients.disabled(call):
            return False
        value = self._evaluator.value(call.func)
        if value.kind is not Kind.MODULE or value.evidence < Evidence.INFERRED:
            return False
        known = bool(_OF_TORCHVISION.match(value.name or ""))
        if not known and not (isinstance(value.definition, cst.ClassDef) and self.differs(value.definition)):
            return False
        loop = next((a for a in self._tree.ancestors(call) if isinstance(a, cst.For)), None)
        if loop is not None and holds_batch(self._evaluator, loop):
            return not self._trains.trains(loop.body)
        return not self._trains.anywhere() and self._is_loaded(call.func)

    @cached_property
    def shows_evaluation(self) -> bool:
        """Whether a loop is given batches outside of any module, or a module is given weights."""
        if any(method_call(call) is not None for call in self._tree.calls_named("load_state_dict")):
            return True
        loops = (loop for loop in self._tree.nodes(cst.For) if not self._is_in_module(loop))
        return any(holds_batch(self._evaluator, loop) for loop in loops)

    def _is_loaded(self, module: cst.Name | cst.Attribute) -> bool:
        """Whether a module is given weights from a file."""
        loads = map(method_call, self._tree.calls_named("load_state_dict"))
        return any(load is not None and is_same(load.value, module) for load in loads)

    def _is_in_module(self, node: cst.CSTNode) -> bool:
        function = self._evaluator.definitions.enclosing_function(node)
        owner = self._evaluator.definitions.owner(function) if function is not None else None
        return owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE

    def differs(self, class_def: cst.ClassDef, depth: int = 0) -> bool:
        """Return whether a class of the file makes layers that compute otherwise in evaluation."""
        for node in self._tree.descendants(class_def):
            if not isinstance(node, cst.Call):
                continue
            name = self._evaluator.names.qualified(node.func) or ""
            if name.startswith("torch.nn.") and _DIFFERING.match(name.rpartition(".")[2]) and not _is_off(node):
                return True
            made = self._evaluator.definitions.definition(node.func)
            if isinstance(made, cst.ClassDef) and depth < _MAX_DEPTH and self.differs(made, depth + 1):
                return True
        return False


def _is_once(test: cst.BaseExpression) -> bool:
    """Whether a test holds in one pass of a loop only: ``epoch == last``, rather than ``epoch % 5 == 0``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    periodic = isinstance(test.left, cst.BinaryOperation)
    return isinstance(test.comparisons[0].operator, cst.Equal) and not periodic


def _is_off(dropout: cst.Call) -> bool:
    """Whether a dropout layer is made with the probability 0."""
    first = dropout.args[0] if dropout.args else None
    is_chance = first is not None and (first.keyword is None or first.keyword.value == "p")
    return first is not None and is_chance and literal(first.value) == 0
