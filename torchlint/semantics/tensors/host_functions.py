"""Functions of the file that make a tensor on the host of nothing but numbers: ``grid(height, width)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.tables.torch_api import RESHAPING_METHODS, SIZED_FACTORIES
from torchlint.semantics.tensors.host_values import HostValues
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier
from torchlint.syntax.remembered import remembered

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_PLAIN = (Kind.NUMBER, Kind.DTYPE, Kind.STRING, Kind.NONE)
_DECORATORS = frozenset(("torch.no_grad", "torch.inference_mode", "builtins.staticmethod"))
_AROUND_SIZES = (cst.Arg, cst.BinaryOperation, cst.Tuple, cst.List, cst.Element)
_TEXTS = (cst.SimpleString, cst.ConcatenatedString)
_HARMLESS = (cst.Return, cst.Assert, cst.Raise, cst.Pass, cst.Import, cst.ImportFrom)
_MOST_STATEMENTS = 8
"""So many kernels on the device cost no more than to wait for a copy."""


class HostFunctions:
    """Tells calls of them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._values = HostValues(evaluator)

    @remembered
    def may_make(self, function: cst.FunctionDef) -> bool:
        """Return whether a function calls any factory: asked before it is looked for what moves its results."""
        calls = self._tree.below(function.body, cst.Call)
        return any(self._evaluator.names.qualified(call.func) in SIZED_FACTORIES for call in calls)

    @remembered
    def makes(self, call: cst.Call) -> bool:
        """Return whether a call runs a function of the file that computes a tensor on the host of numbers alone."""
        function = self._evaluator.definitions.definition(call.func)
        if (
            not isinstance(function, cst.FunctionDef)
            or not self._runs_each_time(function)
            or function.params.star_kwarg
        ):
            return False
        if any(argument.star for argument in call.args) or isinstance(function.params.star_arg, cst.Param):
            return False
        results, given = self._evaluator.definitions.results(function), [*self._given(function, call)]
        statements = [*self._statements(function.body)]
        if not results or None in given or len(statements) > _MOST_STATEMENTS:
            return False
        with self._values.given([name for name in given if name is not None]):
            return all(map(self._values.is_fresh, results)) and all(map(self._only_computes, statements))

    def _runs_each_time(self, function: cst.FunctionDef) -> bool:
        """Whether a function runs whenever it is called, and is no method that another file may write anew."""
        definitions, qualified = self._evaluator.definitions, self._evaluator.names.qualified
        named = [getattr(each.decorator, "func", each.decorator) for each in function.decorators]
        if function.asynchronous or not all(qualified(each) in _DECORATORS for each in named):
            return False
        if definitions.owner(function) is None:
            return True
        same = [f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == function.name.value]
        return len(same) == 1 and (definitions.is_static(function) or function.name.value.startswith("_"))

    def _given(self, function: cst.FunctionDef, call: cst.Call) -> Iterator[cst.Name | None]:
        """Yield the parameters for which a call gives numbers or a shape, None for every other."""
        taken = parameters(function)
        is_method = self._evaluator.definitions.owner(function) is not None
        for parameter in taken[1:] if is_method and not self._evaluator.definitions.is_static(function) else taken:
            argument = argument_for(function, parameter, call, self._evaluator.definitions)
            argument = parameter.default if argument is None else argument
            is_number = argument is not None and self._is_plain(argument)
            yield parameter.name if is_number or self._is_size(parameter, argument) else None

    def _is_plain(self, argument: cst.BaseExpression) -> bool:
        """Whether an argument is a number, a dtype or a shape, and no tensor."""
        value = self._evaluator.value(argument)
        if value.kind is Kind.SEQUENCE:
            return value.iterated().kind in _PLAIN
        return value.kind in _PLAIN or (self._values.is_own(argument) and not self._values.is_fresh(argument))

    def _is_size(self, parameter: cst.Param, argument: cst.BaseExpression | None) -> bool:
        """Whether a function takes for a size, or a dtype, what else nothing is known of."""
        if argument is None or self._evaluator.value(argument).known:
            return False
        if parameter.name.value.endswith("dtype"):
            return True
        function = self._tree.enclosing(parameter, cst.FunctionDef)
        named = self._tree.named(parameter.name.value)
        return any(self._sizes(n) for n in named if self._evaluator.definitions.enclosing_function(n) is function)

    def _sizes(self, name: cst.Name) -> bool:
        """Whether a name stands where a factory or a method that reshapes takes a size."""
        child: cst.CSTNode = name
        for ancestor in self._tree.ancestors(name):
            if isinstance(ancestor, cst.Call):
                is_factory = self._evaluator.names.qualified(ancestor.func) in SIZED_FACTORIES
                if child is ancestor.func:
                    return False
                is_filling = identifier(ancestor.func) == "full" and ancestor.args[0] is not child
                return not is_filling and (is_factory or self._reshapes(ancestor))
            if not isinstance(ancestor, _AROUND_SIZES):
                return False
            child = ancestor
        return False

    def _reshapes(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in RESHAPING_METHODS

    def _statements(self, block: cst.BaseSuite) -> Iterator[cst.CSTNode]:
        """Yield the statements of a block and of its branches, of a branch also its test; no texts."""
        for line in block.body:
            if isinstance(line, cst.SimpleStatementLine):
                yield from (each for each in line.body if not isinstance(getattr(each, "value", None), _TEXTS))
            elif isinstance(line, cst.If):
                yield from self._branches(line)
            else:
                yield line

    def _branches(self, branch: cst.If) -> Iterator[cst.CSTNode]:
        yield branch.test
        yield from self._statements(branch.body)
        if isinstance(branch.orelse, cst.If):
            yield from self._branches(branch.orelse)
        elif branch.orelse is not None:
            yield from self._statements(branch.orelse.body)

    def _only_computes(self, statement: cst.CSTNode) -> bool:
        """Whether a statement of a function computes on the host, and neither loops nor asks for an element."""
        values = self._values
        if isinstance(statement, cst.Expr):
            return values.is_fresh(statement.value)
        if isinstance(statement, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            targets = (
                [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
            )
            return (
                statement.value is not None and values.is_own(statement.value) and all(map(self._is_own_place, targets))
            )
        if isinstance(statement, cst.BaseExpression):
            return not any(map(values.is_fresh, self._tree.below(statement, cst.Name)))
        return isinstance(statement, _HARMLESS)

    def _is_own_place(self, target: cst.BaseExpression) -> bool:
        if isinstance(target, (cst.Tuple, cst.List)):
            return all(self._is_own_place(element.value) for element in target.elements)
        if isinstance(target, cst.Subscript):
            return self._values.is_fresh(target.value) and self._values.is_own_index(target)
        return isinstance(target, cst.Name)
