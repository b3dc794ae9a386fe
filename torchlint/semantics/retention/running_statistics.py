"""Running statistics that a module computes of its input with gradients on: each carries the graph of all before it."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.input_graphs import InputGraphs, assigned_places
from torchlint.semantics.retention.stores import Store, added, combined, summed
from torchlint.semantics.training.phases import in_evaluation
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered
from torchlint.syntax.walk import Tree

_CUTS = frozenset(("detach", "detach_", "data", "item", "tolist", "numpy", "shape", "dtype", "device", "ndim", "size"))
_OBSERVED = re.compile(r"^_?(obs|observations?|rewards?|returns?)$")
_READS = frozenset(("float", "int", "bool", "len", "item", "tolist"))


class RunningStatistics:
    """Finds them, where the module itself shows that what it averages carries a graph, and that nobody wants it."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._names: Names = evaluator.names
        self._input_graphs = InputGraphs(evaluator)

    @cached_property
    def occur(self) -> bool:
        """Whether a module of the file tells training from evaluation, or cuts graphs off."""
        return any(each.attr.value in ("training", "detach") for each in self._tree.nodes(cst.Attribute))

    @remembered
    def kept(self, node: cst.Assign | cst.Call) -> Store | None:
        """Return what a module keeps of the input of a forward pass: ``self.mean = 0.9 * self.mean + 0.1 * x.mean(0)``.

        ``self.mean.mul_(0.9).add_(0.1 * x.mean(0))``
        """
        if isinstance(node, cst.Call):
            found = added(node)
        else:
            found = summed(node) or combined(node, self._names) or _mixed(node)
        attribute = found.variable if found is not None else None
        if found is None or not isinstance(attribute, cst.Attribute):
            return None
        method = self._evaluator.definitions.enclosing_function(node)
        if method is None:
            return None
        owner = self._evaluator.definitions.owner(method)
        if owner is None or self._evaluator.definitions.class_kind(owner) is not Kind.MODULE:
            return None
        if not isinstance(attribute.value, cst.Name) or self._evaluator.definitions.receiver(attribute.value) is None:
            return None
        if self._evaluator.gradients.disabled(node) or self._evaluator.gradients.left_open(node):
            return None
        if observes(owner, self._tree):
            return None
        carrying = tuple(value for value in found.values if self._input_graphs.follows(value, method))
        is_called = method.name.value == "forward" or self._evaluator.definitions.is_buffer(owner, attribute.attr.value)
        if not carrying or not is_called or not self._is_for_nothing(attribute, owner):
            return None
        if method.name.value != "forward" and self._is_read_elsewhere(attribute, owner):
            return None
        shown = self._shows_graph(attribute, owner, method)
        return Store(attribute, carrying, found.is_stored) if shown else None

    # What shows that there is a graph, and that nobody wants it

    def _is_for_nothing(self, attribute: cst.Attribute, owner: cst.ClassDef) -> bool:
        """Whether a class reads an attribute only detached, as a number, in evaluation, or to carry it on."""
        written = assigned_places(owner, self._tree)
        same = [each for each in self._tree.below(owner, cst.Attribute) if is_same(each, attribute)]
        reads = [each for each in same if not any(each is target for target in written)]
        return all(self._is_harmless(read, attribute) for read in reads)

    def _is_read_elsewhere(self, attribute: cst.Attribute, owner: cst.ClassDef) -> bool:
        """Whether code outside of a class reads an attribute of this name with its graph: ``bank.p @ z``."""
        same = self._tree.attributes_named(attribute.attr.value)
        others = [each for each in same if not self._tree.within(each, owner)]
        above = [self._tree.parent(each) for each in others]
        return any(
            not (isinstance(parent, cst.Attribute) and parent.attr.value in _CUTS)
            and not self._evaluator.gradients.disabled(each)
            for each, parent in zip(others, above, strict=True)
        )

    def _is_harmless(self, read: cst.Attribute, attribute: cst.Attribute) -> bool:
        whole: cst.CSTNode = read
        while isinstance(parent := self._tree.parent(whole), cst.BinaryOperation):
            whole = parent
        statement = self._evaluator.flow.statement(read)
        if isinstance(statement, cst.Assign) and any(is_same(t.target, attribute) for t in statement.targets):
            return not any(self._is_cut(call, attribute) for call in self._tree.below(statement.value, cst.Call))
        if isinstance(parent, cst.Attribute) and (
            parent.attr.value in _CUTS - {"detach_"} or _is_write(statement, attribute)
        ):
            return True
        test = self._tree.enclosing(read, cst.If)
        if test is not None and self._tree.within(read, test.test):
            return True
        if isinstance(statement, cst.Assign) and self._is_only_cut(statement):
            return True
        argument = self._tree.parent(parent) if isinstance(parent, cst.Arg) else None
        if isinstance(argument, cst.Call) and identifier(argument.func) in _READS:
            return True
        return in_evaluation(read, self._evaluator.definitions.enclosing_function(read) or read, self._tree)

    def _is_only_cut(self, statement: cst.Assign) -> bool:
        """Whether what is computed is only read detached: ``d = (m - self.mean) / self.std``, ``y + d.detach()``."""
        target = statement.targets[0].target
        method = self._evaluator.definitions.enclosing_function(statement)
        if len(statement.targets) > 1 or not isinstance(target, cst.Name) or method is None:
            return False
        names = [n for n in self._tree.below(method.body, cst.Name) if n.value == target.value and n is not target]
        above = [self._tree.parent(name) for name in names]
        return bool(above) and all(isinstance(each, cst.Attribute) and each.attr.value == "detach" for each in above)

    def _is_cut(self, call: cst.Call, attribute: cst.Attribute) -> bool:
        """Whether a call cuts off the graph that an attribute has got: ``self.mean = self.mean.detach()``."""
        receiver = method_call(call, "detach")
        return receiver is not None and is_same(receiver.value, attribute)

    def _shows_graph(self, attribute: cst.Attribute, owner: cst.ClassDef, method: cst.FunctionDef) -> bool:
        """Whether the class detaches the attribute or the input elsewhere, or normalises within a network.

        What has weights of its own, and statistics in a buffer that only training updates, stands behind other layers.
        """
        inputs = {parameter.name.value for parameter in parameters(method)[1:]}
        for call in self._tree.below(owner, cst.Call):
            cut = method_call(call, "detach")
            if cut is not None and (is_same(cut.value, attribute) or identifier(cut.value) in inputs):
                return True
            is_here = cut is not None and isinstance(cut.value, cst.Name) and self._tree.within(cut, method.body)
            if cut is not None and is_here and self._input_graphs.follows(cut.value, method):
                return True
        if method.name.value != "forward":
            return False
        if not self._evaluator.definitions.is_buffer(owner, attribute.attr.value) or not self._has_weights(owner):
            return False
        if self._stands_first(owner):
            return False
        tests = (each.test for each in self._tree.ancestors(attribute) if isinstance(each, cst.If))
        return any(identifier(test) == "training" for test in tests)

    def _stands_first(self, owner: cst.ClassDef) -> bool:
        """Whether all modules of the file that hold one give it what they are given themselves, as whole networks."""
        made = [
            call for call in self._tree.nodes(cst.Call) if self._evaluator.definitions.definition(call.func) is owner
        ]
        holders = [self._tree.enclosing(call, cst.ClassDef) for call in made]
        runs = [
            call
            for holder in holders
            for call in (self._tree.below(holder, cst.Call) if holder is not None else ())
            if self._evaluator.value(call.func).definition is owner and call not in made
        ]
        return bool(runs) and all(map(self._is_given_input, runs))

    def _is_given_input(self, call: cst.Call) -> bool:
        """Whether a network, that is no part of another one of the file, gives a layer what it is given itself."""
        forward = self._evaluator.definitions.enclosing_function(call)
        owner = self._evaluator.definitions.owner(forward) if forward is not None else None
        given = call.args[0].value if call.args else None
        bindings = self._evaluator.flow.definitions(given) if isinstance(given, cst.Name) else []
        if owner is None or [binding.kind for binding in bindings] != [BindingKind.PARAMETER]:
            return False
        made = (
            c for c in self._tree.calls_named(owner.name.value) if self._tree.enclosing(c, cst.ClassDef) is not None
        )
        return not any(True for _ in made)

    def _has_weights(self, owner: cst.ClassDef) -> bool:
        calls = (call for call in self._tree.below(owner, cst.Call) if identifier(call.func) == "Parameter")
        return any((self._names.qualified(call.func) or "").startswith("torch.nn.") for call in calls)


def observes(owner: cst.ClassDef, tree: Tree) -> bool:
    """Return whether a class is about observations or rewards: what an environment gives has no graph."""
    return any(_OBSERVED.match(name.value) for name in tree.below(owner, cst.Name))


def _is_write(statement: cst.CSTNode, attribute: cst.Attribute) -> bool:
    """Return whether a statement only writes into a tensor: ``self.mean.zero_()``, ``self.mean.mul_(m).add_(x)``."""
    written = statement.value if isinstance(statement, cst.Expr) else None
    while written is not None and (method := method_call(written)) is not None and method.attr.value.endswith("_"):
        written = method.value
    return isinstance(written, cst.Attribute) and is_same(written, attribute)


def _mixed(node: cst.Assign) -> Store | None:
    """Return what ``self.mean = has * (m * self.mean + (1 - m) * x) + (1 - has) * self.mean`` keeps."""
    target = node.targets[0].target
    if (
        len(node.targets) > 1
        or not isinstance(target, cst.Attribute)
        or not isinstance(node.value, cst.BinaryOperation)
    ):
        return None
    waiting: list[cst.BaseExpression] = [node.value]
    parts: list[cst.BaseExpression] = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, cst.BinaryOperation):
            waiting += [part.right, part.left]
        else:
            parts.append(part)
    rest = tuple(part for part in parts if not is_same(part, target))
    return Store(target, rest, False) if rest and len(rest) < len(parts) else None
