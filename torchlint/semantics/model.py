"""The model of one file: the questions that rules may ask. Rules ask, the model answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.flow import Flow
from torchlint.semantics.binding.keyword_mappings import spelled_out
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import Binding, BindingKind, Scopes
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.parts import Parts
from torchlint.semantics.process.target import Target
from torchlint.semantics.process.versions import proven_target
from torchlint.semantics.tables.loaders import LOADER_KINDS, TRAINER_SETTINGS
from torchlint.semantics.tables.signatures import METHOD_SIGNATURES, SIGNATURES
from torchlint.semantics.tensors.accelerator import accelerator_evidence, hides_accelerators, trains_what_it_is_given
from torchlint.semantics.values import Device, Value
from torchlint.syntax.calls import Arguments, bind, code, literal
from torchlint.syntax.remembered import remembered
from torchlint.syntax.statements import is_main_guard
from torchlint.syntax.walk import Tree, walk

if TYPE_CHECKING:
    from torchlint.semantics.heat.guards import Guard
    from torchlint.semantics.heat.hotness import Heat
    from torchlint.semantics.loading.loaders import LoaderCall
    from torchlint.semantics.operators.attention import Attention
    from torchlint.semantics.retention.totals import Accumulation
    from torchlint.semantics.synchronization.host_reads import ScalarRead
    from torchlint.semantics.tensors.creations import Creation
    from torchlint.semantics.tensors.moves import Move, TensorType
    from torchlint.semantics.training.gradient_clearing import ClearedGradients

NodeType = TypeVar("NodeType", bound=cst.CSTNode)
_PARTIAL = "functools.partial"
_SECOND_DERIVATIVES = ("hessian", "hvp", "vhp", "jvp", "jacfwd", "forward_ad", "gradgradcheck")


class Options(NamedTuple):
    """The few settings that rules read."""

    num_workers: int = 4


class Model(Parts):
    """Answers about one file. Every answer is total: what cannot be known is None or UNKNOWN."""

    def __init__(self, tree: Tree, target: Target, options: Options) -> None:
        self.tree = tree
        self.options = options
        self.scopes = Scopes(tree)
        self.names = Names(tree, self.scopes)
        self.target = proven_target(tree, self.names, target)
        self.flow = Flow(tree, self.scopes)
        self.definitions = Definitions(tree, self.scopes, self.names)
        self.evaluator = Evaluator(tree, self.scopes, self.names, self.flow, self.definitions)
        self._reads: dict[int, list[tuple[cst.Call, tuple[str, frozenset[int]]]]] = {}
        self.vocabulary = self.evaluator.vocabulary
        self._heats: dict[tuple[int, frozenset[Guard]], Heat | None] = {}
        self._accelerator: tuple[Evidence | None] | None = None

    def release(self) -> None:
        """Break the cycles of the model, so that the tree is freed at once; afterwards the model answers nothing.

        The garbage collector would have to walk all objects of the process to find that out.
        """
        self.scopes.release()
        self.evaluator.release()

    # Structure

    def nodes(self, node_type: type[NodeType]) -> list[NodeType]:
        """Return all nodes of exactly this type in document order."""
        return self.tree.nodes(node_type)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the parent of a node; white space and punctuation aside."""
        return self.tree.parent(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the parents of a node, innermost first."""
        return self.tree.ancestors(node)

    def enclosing(self, node: cst.CSTNode, *node_types: type[NodeType]) -> NodeType | None:
        """Return the innermost proper ancestor of one of these types."""
        return self.tree.enclosing(node, *node_types)

    def within(self, node: cst.CSTNode, ancestor: cst.CSTNode) -> bool:
        """Return whether a node is ``ancestor`` or stands below it."""
        return self.tree.within(node, ancestor)

    def descendants(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield a node and everything below it in document order."""
        return self.tree.descendants(node)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the innermost statement, small or compound, that holds a node."""
        return self.flow.statement(node)

    def following(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the statements that come after a node's statement in its own block."""
        return self.flow.following(node)

    def order(self, node: cst.CSTNode) -> int:
        """Return the place of a node in document order."""
        return self.tree.order(node)

    @remembered
    def code(self, node: cst.CSTNode) -> str:
        """Return the source text of a node."""
        return code(node)

    def shown(self, node: cst.CSTNode | None, otherwise: str) -> str:
        """Return the text of a node as a message quotes it; ``otherwise`` where there is none, or too much of it."""
        text = self.code(node) if node is not None else ""
        return f"`{text}`" if text and "\n" not in text and len(text) <= 60 else otherwise

    # Names and arguments

    def qualified_name(self, expression: cst.CSTNode) -> str | None:
        """Return the canonical dotted name of what an expression refers to, None where that is not certain."""
        return self.names.qualified(expression)

    @remembered
    def callee(self, call: cst.Call) -> str | None:
        """Return the qualified name of what a call runs, through ``functools.partial``."""
        partial = self._partial(call)
        return self.qualified_name(call.func if partial is None else partial.args[0].value)

    def arguments(
        self, call: cst.Call, signature: Sequence[str] | None = None, *, through_names: bool = False
    ) -> Arguments:
        """Return the arguments of a call by name, those of a ``functools.partial`` included.

        The signature is that of the callee in the tables, unless one is given; ``through_names`` looks into the
        mapping behind ``**options`` too.
        """
        if signature is None:
            name = self.callee(call)
            signature = SIGNATURES.get(name, ()) if name is not None else ()
            if name is None and isinstance(call.func, cst.Attribute):
                signature = METHOD_SIGNATURES.get(call.func.attr.value, ())
        partial = self._partial(call)
        given = (*partial.args[1:], *call.args) if partial is not None else call.args
        return bind(spelled_out(given, self.scopes, self.tree) if through_names else given, signature)

    def _partial(self, call: cst.Call) -> cst.Call | None:
        made = call.func
        if isinstance(made, cst.Attribute):
            return None
        if isinstance(made, cst.Name):
            bindings = self.scopes.bindings(made)
            if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGNMENT or bindings[0].path:
                return None
            value = bindings[0].value
        else:
            value = made
        if isinstance(value, cst.Call) and value.args and not value.args[0].star and not value.args[0].keyword:
            return value if self.qualified_name(value.func) == _PARTIAL else None
        return None

    def is_partial(self, call: cst.Call) -> bool:
        """Return whether some of a call's arguments stand in a ``functools.partial`` elsewhere."""
        return self._partial(call) is not None

    def bindings(self, name: cst.Name) -> list[Binding]:
        """Return all bindings that a name can refer to, in document order."""
        return self.scopes.bindings(name)

    def reaching(self, name: cst.Name) -> list[Binding]:
        """Return the bindings whose value a name can have where it is read."""
        return self.flow.definitions(name)

    def uses(self, binding: Binding) -> list[cst.Name]:
        """Return all names that refer to the variable of a binding, reads and writes, in document order."""
        return [
            name
            for name in self.tree.named(binding.name)
            if self.scopes.deciding(name.value, self.scopes.scope(name)) is binding.scope
        ]

    def definition(self, expression: cst.CSTNode) -> cst.FunctionDef | cst.ClassDef | None:
        """Return the function, method or class of this file that an expression names, if it is only one."""
        return self.definitions.definition(expression)

    def ancestry(self, class_def: cst.ClassDef) -> tuple[str, ...]:
        """Return the qualified names of the ancestors of a class from outside the file."""
        return self.definitions.ancestry(class_def)

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """Return the function whose body a node runs in."""
        return self.definitions.enclosing_function(node)

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the calls in this file that run a function."""
        return self.evaluator.callers(function)

    # Values

    def value(self, expression: cst.CSTNode) -> Value:
        """Return what an expression can hold."""
        return self.evaluator.value(expression)

    @property
    def accelerator(self) -> Evidence | None:
        """How certain it is that the file computes on an accelerator; None if nothing says so."""
        if self._accelerator is None:
            self._accelerator = (accelerator_evidence(self.evaluator),)
        return self._accelerator[0]

    def may_be_on_accelerator(self, value: Value, heat: Heat | None = None) -> bool:
        """Return whether a tensor can live on an accelerator, as far as this file shows.

        The forward pass of a model runs where the program that imports it puts it.
        """
        if value.device is Device.CPU:
            return False
        if value.device in (Device.ACCELERATOR, Device.EITHER) or self.accelerator is not None:
            return True
        return heat is not None and heat.is_imported and not self.is_program

    @cached_property
    def is_program(self) -> bool:
        """Whether the file is meant to be run, or trains a model of its own: then it shows itself where it computes."""
        if hides_accelerators(self.evaluator):
            return True
        passes = self.backward.passes()
        if passes and not trains_what_it_is_given(self.evaluator, passes):
            return True
        return any(isinstance(node, cst.If) and is_main_guard(node) for node in self.tree.module.body)

    @remembered
    def loader(self, call: cst.Call) -> LoaderCall | None:
        """Return the loader that a call makes, or the settings by which a trainer makes its own."""
        name = self.callee(call)
        if name is None or (name not in LOADER_KINDS and name not in TRAINER_SETTINGS):
            return None
        return self.loaders.loader(call, name, self.arguments(call, through_names=True))

    @remembered
    def move(self, call: cst.Call) -> Move | None:
        """Return the move between devices that a method call is."""
        return self.moves.move(call)

    def tensor_type(self, expression: cst.CSTNode) -> TensorType | None:
        """Return the legacy tensor type that an expression names, also one chosen at run time."""
        return self.moves.tensor_type(expression)

    @remembered
    def creation(self, call: cst.Call) -> Creation | None:
        """Return the fresh tensor that a factory call makes, if it is moved before anything else happens to it."""
        return self.creations.creation(call, self.callee(call))

    def device_context(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs in a context that decides about devices or streams."""
        return self.moves.in_context(node)

    def on_default_device(self, node: cst.CSTNode) -> bool:
        """Return whether factories at a node work on a default device that the file sets."""
        return self.moves.on_default_device(node)

    @property
    def sets_default_dtype(self) -> bool:
        """Whether the file says which dtype factories of floats make."""
        return self.mentions("set_default_dtype", "set_default_tensor_type")

    def switches_device(self, statement: cst.CSTNode) -> bool:
        """Return whether a statement visibly changes what the current device or the default of factories is."""
        return self.moves.switches_device(statement)

    def is_plain(self, expression: cst.CSTNode) -> bool:
        """Return whether evaluating an expression earlier or twice cannot be noticed."""
        return self.moves.is_plain(expression)

    def spelling(self, name: str, node: cst.CSTNode) -> str | None:
        """Return how the file can write a qualified name at a node, None if its imports do not bring it in."""
        return self.names.spelling(name, node)

    def speaks_of(self, *names: str) -> bool:
        """Return whether an attribute or method of one of these names occurs in the file."""
        return not self.vocabulary.attributes.isdisjoint(names)

    def names_any_of(self, *names: str) -> bool:
        """Return whether one of these names stands in the file by itself."""
        return not self.vocabulary.identifiers.isdisjoint(names)

    def mentions(self, *names: str) -> bool:
        """Return whether a name, an attribute or something imported is called so."""
        return self.vocabulary.mentions(names)

    @remembered
    def scalar_read(self, call: cst.Call) -> ScalarRead | None:
        """Return the read that a call is, if it turns a tensor into a Python number."""
        return self.host_reads.scalar(call)

    def scalar_reads(self, root: cst.CSTNode, read: cst.Call) -> int:
        """Return how many different scalars the hot place ``root`` may read on the passes on which it makes a read."""
        if id(root) not in self._reads:
            reads = [call for call in self.tree.below(root, cst.Call) if self.scalar_read(call) is not None]
            hot = [call for call in reads if (heat := self.heat(call)) is not None and heat.root is root]
            self._reads[id(root)] = [(call, self.host_reads.what_is_read(call)) for call in hot]
        return len({what for call, what in self._reads[id(root)] if not self.evaluator.flow.exclusive(call, read)})

    def accumulation(self, read: cst.Call, loop: cst.For) -> Accumulation | None:
        """Return the total or list that a scalar read feeds, if nobody reads it before the loop is over."""
        found = self.scalar_read(read)
        return self.accumulations.find(found, loop) if found is not None else None

    @remembered
    def is_kept_on_host(self, expression: cst.BaseExpression) -> bool:
        """Return whether an expression reads an attribute that its class brings to the host."""
        from torchlint.semantics.synchronization.host_attributes import is_kept_on_host

        return is_kept_on_host(expression, self.evaluator)

    @remembered
    def attention(self, softmax: cst.Call) -> Attention | None:
        """Return the attention of which a call is the softmax, if its weights are not kept."""
        from torchlint.semantics.operators.attention import attention

        return attention(softmax, self)

    @remembered
    def decides(self, call: cst.Call) -> bool:
        """Return whether a value read on the host goes into the next step of an environment or a program."""
        return self.decisions.decides(call)

    def cleared_gradients(self, node: cst.CSTNode) -> ClearedGradients | None:
        """Return what a call or assignment in a loop over parameters zeroes, None if it is something else."""
        return self.gradient_clearing.cleared(node)

    def buffers_gradients(self, node: cst.CSTNode) -> bool:
        """Return whether the definition around a node computes into the tensors that ``.grad`` holds."""
        return self.gradient_clearing.buffered(node)

    @cached_property
    def differentiates_twice(self) -> bool:
        """Whether the file takes derivatives of derivatives, which fused kernels do not have."""
        kept = (arg for arg in self.nodes(cst.Arg) if arg.keyword is not None and arg.keyword.value == "create_graph")
        return self.mentions(*_SECOND_DERIVATIVES) or any(literal(arg.value) is not False for arg in kept)

    def own_method(self, function: cst.Attribute) -> cst.FunctionDef | None:
        """Return the method that ``receiver.name`` is, where the file defines the class of the receiver."""
        owner = self.value(function.value).definition
        return self.definitions.method(owner, function.attr.value) if isinstance(owner, cst.ClassDef) else None

    # Roles

    def is_traced(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs in a function that ``torch.compile`` visibly traces."""
        function = self.enclosing_function(node)
        return function is not None and id(function) in self._traced

    @cached_property
    def _traced(self) -> dict[int, cst.FunctionDef]:
        from torchlint.semantics.compilers.torch_compile import traced_functions

        return traced_functions(self)

    def heat(self, node: cst.CSTNode, besides: frozenset[Guard] = frozenset()) -> Heat | None:
        """Return what makes a node run on every step, None if it does not (or only every few steps).

        Guards ``besides`` do not count.
        """
        key = id(node), besides
        if key not in self._heats:
            self._heats[key] = self.hotness.heat(node, besides)
        return self._heats[key]

    def guard(self, node: cst.CSTNode, root: cst.CSTNode) -> Guard | None:
        """Return why a node does not run whenever ``root`` (a loop, function or the module) does."""
        return self.guards.guard(node, root)

    def chosen(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs only if a flag, an argument or a caller asks for it, or after an error."""
        return self.choices.chosen(node)

    def in_test(self, node: cst.CSTNode) -> bool:
        """Return whether a node belongs to a test function or a test case."""
        return self.choices.in_test(node)

    def survives_error(self, node: cst.CSTNode) -> bool:
        """Return whether a ``try`` around a node catches a RuntimeError and goes on."""
        return self.choices.survives_error(node)

    def is_backpropagated(self, variable: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a variable flows into a backward pass below ``root``."""
        return self.backward.reaches(variable, root)


def build_model(module: cst.Module, target: Target, options: Options) -> Model:
    """Return the model of a file, given its tree or a draft of it."""
    return Model(walk(module), target, options)
