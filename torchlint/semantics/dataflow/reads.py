"""Whether what an expression gives is only read: nothing writes to it, keeps it, or makes a parameter of it."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.dataflow.writes import Writes
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import canonical

_DEPTH = 4
# What keeps a value, or makes a leaf of it.
_KEEPING = re.compile(
    r"^(append|appendleft|extend|insert|add|put|push|update|setdefault|dict|list|register_\w+|[A-Z]\w*)$|[a-z]_$"
)
_LEAVES = frozenset("torch.nn.Parameter torch.nn.parameter.Parameter torch.autograd.Variable torch.nn.Buffer".split())
# Methods and attributes that give a view, or the tensor itself: all others give something new.
_VIEWING = frozenset(
    "view reshape unsqueeze squeeze expand expand_as view_as transpose permute t T mT flatten unflatten detach "
    "contiguous to cuda cpu float double half bfloat16 long int bool type type_as narrow select unbind chunk split "
    "diagonal real imag movedim swapaxes numpy as_strided".split()
)
_SETTINGS = frozenset(("requires_grad", "grad", "data"))
_ARITHMETIC = (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.UnaryOperation, cst.BooleanOperation)
_PASSED_ON = (
    cst.Element,
    cst.List,
    cst.Tuple,
    cst.Index,
    cst.SubscriptElement,
    cst.IfExp,
    cst.FormattedStringExpression,
)


class Reads:
    """Follows a value to where it is used."""

    def __init__(self, evaluator: Evaluator, writes: Writes) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._writes = writes

    def only_reads(self, made: cst.BaseExpression, root: cst.CSTNode, depth: int = 0) -> bool:
        """Return whether all that is done below ``root`` with what an expression gives leaves it as it is."""
        node: cst.CSTNode = made
        for parent in self._tree.ancestors(made):
            if isinstance(parent, _ARITHMETIC):
                return True
            if isinstance(parent, cst.Attribute) and parent.value is node:
                if parent.attr.value.endswith("_") or parent.attr.value in _SETTINGS:
                    return False
                if parent.attr.value not in _VIEWING:
                    return True
            elif isinstance(parent, cst.Call) and parent.func is not node:
                return self._call_reads(parent)
            elif isinstance(parent, (cst.Assign, cst.AnnAssign)):
                return depth < _DEPTH and self._targets_read(parent, node, made, root, depth)
            elif isinstance(parent, (cst.AugAssign, cst.Return)) or (
                isinstance(parent, cst.Subscript) and parent.value is not node
            ):
                return True
            elif not isinstance(parent, (cst.Arg, cst.Call, cst.Subscript, cst.Attribute, *_PASSED_ON)):
                return False
            node = parent
        return False

    def _call_reads(self, call: cst.Call) -> bool:
        """Whether a call only reads what it is given."""
        name = self._evaluator.names.qualified(call.func)
        if name in _LEAVES or (name or "").startswith("torch.nn.init."):
            return False
        if any(a.keyword is not None and a.keyword.value in ("inplace", "out") and _is_on(a.value) for a in call.args):
            return False
        if self._evaluator.value(call.func).kind is Kind.MODULE or (name or "").startswith("torch."):
            return True
        return _KEEPING.search(identifier(call.func)) is None

    def _targets_read(
        self,
        statement: cst.Assign | cst.AnnAssign,
        value: cst.CSTNode,
        made: cst.CSTNode,
        root: cst.CSTNode,
        depth: int,
    ) -> bool:
        """Whether the variable that an assignment binds is only read below ``root``."""
        targets = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        for target in targets:
            part: cst.CSTNode = target
            if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List)):
                index = next((i for i, e in enumerate(value.elements) if self._tree.within(made, e)), None)
                if index is None or index >= len(target.elements):
                    return False
                part = target.elements[index].value
            if isinstance(part, cst.Subscript) and self._evaluator.value(part.value).is_tensor:
                continue  # which copies the numbers
            if not isinstance(part, cst.Name) or not self._name_reads(part, root, depth):
                return False
        return True

    def _name_reads(self, bound: cst.Name, root: cst.CSTNode, depth: int) -> bool:
        text = canonical(bound)
        if any(canonical(place) == text for place in self._writes.places() if self._tree.within(place, root)):
            return False
        definitions = self._evaluator.flow.definitions
        for use in self._tree.below(root, cst.Name):
            if use.value != bound.value or isinstance(self._tree.parent(use), (cst.AssignTarget, cst.AnnAssign)):
                continue
            is_use = use is not bound and any(b.node is bound for b in definitions(use))
            if is_use and not self.only_reads(use, root, depth + 1):
                return False
        return True


def _is_on(value: cst.BaseExpression) -> bool:
    return literal(value) is not False and identifier(value) != "None"
