"""Steps that a class leaves to its heirs, and by which it trains and evaluates: ``self.compute_forward(batch)``."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import identifier
from torchlint.syntax.statements import is_placeholder, plain_statements

_PLAIN = frozenset(("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"))


class AbstractSteps:
    """Finds the calls of them that must run a model."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward

    def model_run_by(self, call: cst.Call) -> Value | None:
        """Return what stands for the model that a routine runs by its first such call, None for other calls.

        What it gives has a graph, since a routine of the file that computes gradients calls the same step.
        """
        function = self._evaluator.definitions.enclosing_function(call)
        if function is None or not self._is_step(call):
            return None
        calls = self._tree.below(function.body, cst.Call)
        return Value(Kind.MODULE, Evidence.INFERRED) if next(filter(self._is_step, calls)) is call else None

    def _is_step(self, call: cst.Call) -> bool:
        called = call.func
        if not isinstance(called, cst.Attribute) or called.attr.value not in self._trained or not call.args:
            return False
        held = called.value
        if not isinstance(held, cst.Name) or self._evaluator.definitions.receiver(held) is None:
            return False
        return id(self._evaluator.definitions.definition(called)) in self._abstract

    @cached_property
    def _trained(self) -> frozenset[str]:
        """The names of the abstract methods that routines call which compute gradients."""
        names = {f.name.value for f in self._tree.nodes(cst.FunctionDef) if id(f) in self._abstract}
        routines = map(self._evaluator.definitions.enclosing_function, self._backward.passes() if names else ())
        calls = (call for f in routines if f is not None for call in self._tree.below(f.body, cst.Call))
        return frozenset(names & {identifier(call.func) for call in calls})

    @cached_property
    def _abstract(self) -> frozenset[int]:
        """The methods without a body, of classes that no class of another file runs."""
        functions = self._tree.nodes(cst.FunctionDef)
        return frozenset(
            id(f) for f in functions if _is_empty(f) and self._is_own(self._evaluator.definitions.owner(f))
        )

    def _is_own(self, owner: cst.ClassDef | None) -> bool:
        return owner is not None and _PLAIN.issuperset(self._evaluator.definitions.ancestry(owner))


def _is_empty(function: cst.FunctionDef) -> bool:
    """Return whether a function only says what it would do: by a text, ``pass`` or ``raise NotImplementedError``."""
    statements = plain_statements(function)
    return statements is not None and all(map(_says_nothing, statements))


def _says_nothing(part: cst.BaseSmallStatement) -> bool:
    if isinstance(part, cst.Raise) and part.exc is not None:
        raised = part.exc.func if isinstance(part.exc, cst.Call) else part.exc
        return identifier(raised) == "NotImplementedError"
    return is_placeholder(part)
