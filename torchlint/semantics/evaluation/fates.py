"""What becomes of a result: whether anything can still use its graph."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import libcst as cst

from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.model_classes import AUTOGRAD
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.container_methods import ADDS_TO_LIST
from torchlint.semantics.tables.torch_api import FACTORIES
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import element_at, identifier, literal, method_call
from torchlint.syntax.remembered import remembered

_DEPTH = 4
"""Through how many variables a result is followed."""

# What a tensor says of itself without being computed with.
_SHAPES = frozenset("shape device dtype ndim size dim numel element_size requires_grad is_cuda".split())
_VALUES = frozenset(("data", "indices"))
# Methods whose result carries no graph; that of `numpy` there is only where the graph is gone already.
_READS = frozenset(
    "detach item tolist argmax argmin argsort multinomial bool long int eq ne gt lt ge le isnan isfinite".split()
)
_OF_LISTS = frozenset((*ADDS_TO_LIST, "clear"))
_PAIRS = frozenset("max min topk sort kthvalue median mode".split())
"""What gives values, and the places where they were."""
_NUMBERS = frozenset(f"builtins.{name}" for name in "float int bool".split())
# What shows a tensor proves little: it may stand in any loop, to try something out.
_LOOKS = frozenset(f"builtins.{name}" for name in "len isinstance type id print str repr".split())
_IS_IN = (cst.In, cst.NotIn, cst.Is, cst.IsNot)


class Fate(IntEnum):
    """What becomes of a result, the worst of it."""

    DROPPED = 0
    """Nobody looks at more than its shape."""
    VALUES = 1
    """It is read detached, or as numbers."""
    ARRAY = 2
    """It becomes an array, which it can only where it has no graph."""
    USED = 3
    """Its graph may be used, for all that is known."""


class Fates:
    """Follows results through expressions and variables."""

    def __init__(self, evaluator: Evaluator, *, packed: bool = False) -> None:
        """``packed``: a result may be a packed sequence, whose ``data`` has its graph."""
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._packed = packed
        self._open: set[int] = set()
        self._entered: set[int] = set()
        """The functions that a result is followed into; what they return is followed where they are called."""

    def of(self, expression: cst.CSTNode, depth: int = 0) -> Fate:
        """Return what becomes of an expression."""
        node, parent = expression, self._tree.parent(expression)
        worst = Fate.DROPPED
        while parent is not None:
            end = self._settled(parent, node, depth)
            if isinstance(parent, cst.Expr):  # `loss.backward()` uses it, `model(x)` as a statement does not
                end = Fate.DROPPED if node is expression else Fate.USED
            if end is not None:
                return max(end, worst)
            inside = self._inside(parent, node, depth)
            worst = max(worst, inside or Fate.DROPPED)
            if worst is Fate.USED or (inside is None and not self._goes_on(parent, node)):
                return Fate.USED
            node, parent = parent, self._tree.parent(parent)
        return Fate.USED

    def _settled(self, parent: cst.CSTNode, node: cst.CSTNode, depth: int) -> Fate | None:
        """What becomes of a part of an expression by what is around it; None if that gives a value that goes on."""
        end = self._end(parent, node)
        if end is not None:
            return end
        if isinstance(parent, (cst.Assign, cst.AugAssign)):
            return self._of_bound(parent, node, depth)
        if isinstance(parent, (cst.For, cst.CompFor)) and node is parent.iter:
            return self._of_names(parent, list(names_bound(parent.target)), depth)
        if isinstance(parent, cst.Return) and id(self._tree.enclosing(parent, cst.FunctionDef)) in self._entered:
            return Fate.DROPPED  # the call is followed on
        collected = self.collecting(parent, node) if isinstance(parent, cst.Call) else None
        return self._of_names(parent, [collected], depth) if collected is not None else None

    def _inside(self, call: cst.CSTNode, argument: cst.CSTNode, depth: int) -> Fate | None:
        """What a function of the file does with what it is given, but for what it returns; None for other calls."""
        if not isinstance(call, cst.Call) or not isinstance(argument, cst.Arg) or depth >= _DEPTH:
            return None
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef) or function.decorators or function.asynchronous is not None:
            return None
        if id(function) in self._entered or self._tree.below(function.body, cst.Yield):
            return None
        taken = parameter_for(function, argument, call, self._evaluator.definitions)
        if taken is None:
            return None
        self._entered.add(id(function))
        fates = [self.of(use, depth + 1) for use in self.uses(taken.name)]
        self._entered.discard(id(function))
        return max(fates, default=Fate.DROPPED)

    def carries(self, parent: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Return whether an expression computes its value from a part of it, and does nothing else with that part."""
        if isinstance(parent, (cst.Attribute, cst.Subscript)):
            return parent.value is node
        if isinstance(parent, cst.Call):
            if parent.func is node:
                return isinstance(node, cst.Attribute) and not node.attr.value.endswith("_")
            name = self._evaluator.names.qualified(parent.func) or ""
            return name == "builtins.sum" or (name.startswith("torch.") and not name.startswith(AUTOGRAD))
        return isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)) or self._is_argument(parent)

    @remembered
    def uses(self, name: cst.Name) -> list[cst.Name]:
        """Return every name that can read what an assignment puts into a variable."""
        return list(self._uses(name))

    def _uses(self, name: cst.Name) -> Iterator[cst.Name]:
        scopes, function = self._evaluator.scopes, self._evaluator.definitions.enclosing_function(name)
        scope = scopes.deciding(name.value, scopes.scope(name))
        for use in self._tree.named(name.value):
            if use is name or scopes.deciding(use.value, scopes.scope(use)) is not scope:
                continue
            if own := scopes.made_by(use):
                if own.kind is BindingKind.AUGMENTED:  # `fake += noise` reads it with its graph
                    yield use
                continue
            is_here = self._evaluator.definitions.enclosing_function(use) is function
            bindings = self._evaluator.flow.definitions(use) if is_here else scopes.bindings(use)
            if any(binding.node is name for binding in bindings):
                yield use

    def _goes_on(self, parent: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether what an expression gives is made of its part, also by a module, or holds it."""
        if isinstance(parent, (cst.List, cst.Tuple)):
            return isinstance(self._tree.parent(parent), cst.Arg)  # `torch.cat([x, y])`
        if isinstance(parent, cst.Element) or self.carries(parent, node):
            return True
        if isinstance(parent, cst.IfExp):
            return parent.test is not node
        if isinstance(parent, (cst.ListComp, cst.GeneratorExp)):
            return parent.elt is node
        if not isinstance(parent, cst.Call):
            return False
        module = self._evaluator.value(parent.func)
        is_known = module.origin is Origin.LOSS or module.evidence >= Evidence.INFERRED
        return module.kind is Kind.MODULE and is_known

    def _is_argument(self, node: cst.CSTNode) -> bool:
        call = self._tree.parent(node) if isinstance(node, cst.Arg) else None
        return isinstance(call, cst.Call) and call.func is not node

    def _end(self, parent: cst.CSTNode, node: cst.CSTNode) -> Fate | None:
        """What an expression makes of its part that has no graph; None if it may have one."""
        if isinstance(parent, cst.Attribute):
            return self._of_attribute(parent) if parent.value is node else None
        if isinstance(parent, cst.Subscript):
            if isinstance(self._tree.parent(parent), cst.AssignTarget):
                return Fate.DROPPED  # `scores[mask] = 0`
            index = parent.slice[0].slice if len(parent.slice) == 1 else None
            places = isinstance(index, cst.Index) and literal(index.value) == 1 and _gives_pair(node)
            return Fate.VALUES if places else None
        if isinstance(parent, cst.Comparison):
            tests = any(isinstance(each.operator, _IS_IN) for each in parent.comparisons)
            return Fate.DROPPED if tests else Fate.VALUES
        if isinstance(parent, (cst.FormattedStringExpression, cst.Del)):
            return Fate.DROPPED
        return self._of_argument(node) if isinstance(parent, cst.Call) and parent.func is not node else None

    def _of_attribute(self, attribute: cst.Attribute) -> Fate | None:
        name, taken = attribute.attr.value, self._tree.parent(attribute)
        is_called = isinstance(taken, cst.Call) and taken.func is attribute
        if name in _SHAPES:
            return Fate.DROPPED
        if name in _VALUES and not is_called:
            return Fate.USED if self._packed or isinstance(taken, cst.AssignTarget) else Fate.VALUES
        if not is_called:
            return None
        if name in _OF_LISTS:
            return Fate.DROPPED  # what is appended is followed for itself
        return Fate.ARRAY if name == "numpy" else Fate.VALUES if name in _READS else None

    def _of_argument(self, argument: cst.CSTNode) -> Fate | None:
        call = self._tree.parent(argument)
        name = (self._evaluator.names.qualified(call.func) or "") if isinstance(call, cst.Call) else ""
        if name in _NUMBERS:
            return Fate.VALUES
        if name in _LOOKS:
            return Fate.DROPPED
        if name.startswith("numpy."):
            return Fate.ARRAY
        library, _, last = name.rpartition(".")
        return Fate.VALUES if library == "torch" and last in _READS else None

    def _of_bound(self, statement: cst.Assign | cst.AugAssign, value: cst.CSTNode, depth: int) -> Fate:
        """What becomes of what a statement binds: also of a sum, ``total += loss``, to what it adds to."""
        if isinstance(statement, cst.AugAssign):
            if statement.target is not value and not self._starts_fresh(statement.target):
                return Fate.USED  # others may see what is added in place
            return self._of_names(statement, list(names_bound(statement.target)), depth)
        if statement.value is not value or len(statement.targets) != 1:
            return Fate.USED
        targets = list(names_bound(statement.targets[0].target))
        if _gives_pair(value) and len(targets) > 1:
            targets = targets[:1]
        read = len(targets) == 1 and _gives_pair(value)
        return self._of_names(statement, targets, depth, Fate.VALUES if read else Fate.DROPPED)

    def _starts_fresh(self, total: cst.BaseExpression) -> bool:
        """Whether a sum is a variable that starts as a number, or as a tensor that a function of torch makes for it."""
        bindings = self._evaluator.scopes.bindings(total) if isinstance(total, cst.Name) else []
        started = [binding for binding in bindings if binding.kind is not BindingKind.AUGMENTED]
        return bool(started) and all(
            binding.kind is BindingKind.ASSIGNMENT and self._is_fresh(element_at(binding.value, binding.path))
            for binding in started
        )

    def _is_fresh(self, value: cst.BaseExpression | None) -> bool:
        if isinstance(value, cst.Call):
            return self._evaluator.names.qualified(value.func) in FACTORIES
        return value is not None and literal(value) is not None

    def _of_names(
        self, binder: cst.CSTNode, names: list[cst.Name | None], depth: int, unread: Fate = Fate.DROPPED
    ) -> Fate:
        if id(binder) in self._open:
            return Fate.DROPPED  # followed already, around a loop
        if depth >= _DEPTH or any(name is None for name in names):
            return Fate.USED
        self._open.add(id(binder))
        fates = [self.of(use, depth + 1) for name in names if name is not None for use in self.uses(name)]
        self._open.discard(id(binder))
        return max(fates, default=unread)

    def collecting(self, call: cst.Call, argument: cst.CSTNode) -> cst.Name | None:
        """Return the variable whose list, made in the same function, a call appends something to."""
        method = method_call(call, "append") if call.func is not argument else None
        if method is None or not isinstance(method.value, cst.Name):
            return None
        bindings = self._evaluator.flow.definitions(method.value)
        made = element_at(bindings[0].value, bindings[0].path) if len(bindings) == 1 else None
        here = self._evaluator.definitions.enclosing_function(call)
        if not isinstance(made, cst.List) or any(literal(each.value) is not None for each in made.elements):
            return None
        statement = self._evaluator.flow.statement(made)
        if isinstance(statement, cst.Assign) and len(statement.targets) > 1:
            return None  # it has another name
        is_own = self._evaluator.definitions.enclosing_function(made) is here
        return bindings[0].node if is_own and isinstance(bindings[0].node, cst.Name) else None


def _gives_pair(node: cst.CSTNode) -> bool:
    """Return whether a call gives values and the places where they were: ``scores.max(1)``, not ``scores.max()``."""
    if not isinstance(node, cst.Call) or identifier(node.func) not in _PAIRS or not node.args:
        return False
    given = [argument for argument in node.args if not argument.star]
    return any(isinstance(literal(argument.value), int) or argument.keyword is not None for argument in given)


def names_bound(target: cst.BaseExpression) -> Iterator[cst.Name | None]:
    """Yield the variables that a target binds, None for what is no variable."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from names_bound(element.value)
    else:
        yield target if isinstance(target, cst.Name) else None
