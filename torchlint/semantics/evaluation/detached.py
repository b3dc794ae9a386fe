"""Forward passes whose graph nobody can use: all that goes on from them are detached values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.gradient_uses import AUTOGRAD
from torchlint.semantics.evaluation.inference import Inference
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Value
from torchlint.syntax.calls import identifier

# Modules of torch that hold other modules, or are a network by themselves.
_NETWORKS = re.compile(r"\.(Sequential|DataParallel|DistributedDataParallel|Transformer\w*|LSTM|GRU|RNN)$")
# What a tensor says of itself without being computed with.
_SHAPES = frozenset(("shape", "device", "dtype", "ndim", "size", "dim", "numel"))
# Networks that differentiate by their input while they compute.
_DIFFERENTIATES = re.compile(r"energy|energies|force|hamiltonian|lagrangian|potential|jacobian|hessian", re.IGNORECASE)
# What gives values without a graph: of these the last three give no tensor.
_DETACHES = frozenset(("detach", "item", "tolist", "numpy"))


class DetachedForward(NamedTuple):
    """A forward pass of a model, and where its result loses the graph."""

    variable: cst.Name | None
    """The variable that holds the result and is only read detached; None where it is detached in place."""

    is_network: bool
    """Whether the model is more than one layer."""

    is_frozen: bool
    switches_off: bool
    """Whether the model computes without gradients, whoever calls it."""

    differentiates: bool
    """Whether the model may need a graph for what it computes."""


class DetachedForwards:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, inference: Inference) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._inference = inference

    def forward(self, call: cst.Call) -> DetachedForward | None:
        """Return the detached forward pass that a call of a model is, None if its graph can be used."""
        if not isinstance(call.func, (cst.Name, cst.Attribute)):
            return None
        is_detached = self._is_detached(call)
        if not is_detached and not self._may_be_read_detached(call):
            return None
        model = self._inference.called_model(call.func)
        if model is None or (model.evidence < Evidence.INFERRED and not self._inference.takes_batch(call)):
            return None
        variables = () if is_detached else self._only_detached(call)
        if variables is None:
            return None
        return DetachedForward(
            variables[0] if variables else None,
            model.name is None or not model.name.startswith("torch.nn.") or bool(_NETWORKS.search(model.name)),
            self._inference.frozen.holds(call.func),
            self._inference.switches_off(call.func, model),
            self._differentiates(call, model),
        )

    def _may_be_read_detached(self, call: cst.Call) -> bool:
        """Whether something of the name of a variable that holds the result is detached: asked before all else."""
        statement = self._tree.parent(call)
        if not isinstance(statement, cst.Assign):
            return False
        targets = (name for target in statement.targets for name in _names(target.target))
        return any(name is not None and name.value in self._detached_names for name in targets)

    @cached_property
    def _detached_names(self) -> frozenset[str]:
        detached = (node for node in self._tree.nodes(cst.Attribute) if node.attr.value in _DETACHES)
        return frozenset(name.value for node in detached for name in self._tree.below(node, cst.Name))

    def _is_detached(self, expression: cst.BaseExpression) -> bool:
        """Whether all that an expression goes into is ``(...).detach()``, ``(...).item()`` or ``(...).numpy()``."""
        node: cst.CSTNode = expression
        parent = self._tree.parent(node)
        while parent is not None:
            if isinstance(parent, cst.Attribute) and parent.attr.value in _DETACHES:
                taken = self._tree.parent(parent)
                return isinstance(taken, cst.Call) and taken.func is parent
            if not self.carries(parent, node):
                return False
            node, parent = parent, self._tree.parent(parent)
        return False

    def carries(self, parent: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Return whether an expression computes its value from a part of it, and does nothing else with that part."""
        if isinstance(parent, (cst.Attribute, cst.Subscript)):
            return parent.value is node
        if isinstance(parent, cst.Call):
            if parent.func is node:
                return isinstance(node, cst.Attribute) and not node.attr.value.endswith("_")
            name = self._evaluator.names.qualified(parent.func) or ""
            return name.startswith("torch.") and not name.startswith(AUTOGRAD)
        return isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)) or self._is_argument(parent)

    def _is_argument(self, node: cst.CSTNode) -> bool:
        call = self._tree.parent(node) if isinstance(node, cst.Arg) else None
        return isinstance(call, cst.Call) and call.func is not node

    def _only_detached(self, call: cst.Call) -> tuple[cst.Name, ...] | None:
        """The variables that hold a result, if each use of them is detached or asks for a shape; else None."""
        statement = self._tree.parent(call)
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            return None
        targets = list(_names(statement.targets[0].target))
        names = tuple(target for target in targets if target is not None)
        if not names or len(names) < len(targets):
            return None
        uses = [use for name in names for use in self.uses(name)]
        detached = [use for use in uses if self._is_detached(use)]
        return names if detached and all(use in detached or self._asks_for_shape(use) for use in uses) else None

    def uses(self, name: cst.Name) -> Iterator[cst.Name]:
        """Every name that can read what an assignment puts into a variable."""
        scopes, function = self._evaluator.scopes, self._evaluator.definitions.enclosing_function(name)
        scope = scopes.deciding(name.value, scopes.scope(name))
        for use in self._tree.named(name.value):
            if use is name or scopes.deciding(use.value, scopes.scope(use)) is not scope:
                continue
            bindings = scopes.bindings(use)
            if own := next((binding for binding in bindings if binding.node is use), None):
                if own.kind is BindingKind.AUGMENTED:  # `fake += noise` reads it with its graph
                    yield use
                continue
            if self._evaluator.definitions.enclosing_function(use) is function:
                bindings = self._evaluator.flow.definitions(use)
            if any(binding.node is name for binding in bindings):
                yield use

    def keeps_no_graph(self, use: cst.Name) -> bool:
        """Return whether a use of a variable detaches its value, or only asks for its shape."""
        return self._is_detached(use) or self._asks_for_shape(use)

    def _asks_for_shape(self, use: cst.Name) -> bool:
        parent = self._tree.parent(use)
        return isinstance(parent, cst.Attribute) and parent.attr.value in _SHAPES

    def _differentiates(self, call: cst.Call, model: Value) -> bool:
        """Whether a model may compute gradients itself, or somebody may look at what its layers compute."""
        if isinstance(model.definition, cst.ClassDef):
            return self._inference.gradient_uses.of_class(model.definition)
        statement = self._tree.parent(call)
        targets = [target.target for target in statement.targets] if isinstance(statement, cst.Assign) else []
        said = [call.func, *(name for target in targets for name in _names(target) if name is not None)]
        return any(_DIFFERENTIATES.search(identifier(name)) for name in said)


def _names(target: cst.BaseExpression) -> Iterator[cst.Name | None]:
    """Yield the variables that a target binds, None for what is no variable."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _names(element.value)
    else:
        yield target if isinstance(target, cst.Name) else None
