"""Whether the input of a layer is a matrix: a batch of vectors, and nothing with more dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.layers.constructors import Constructors
from torchlint.semantics.layers.deep_inputs import SAME_RANK, SAME_RANK_FUNCTIONS, SAME_RANK_METHODS, DeepInputs
from torchlint.semantics.layers.values import Tail
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import Arguments, bind, literal

_POOLING = frozenset(("mean", "amax", "sum"))
_SIZED = frozenset("randn rand zeros ones empty normal uniform FloatTensor Tensor full randint standard_normal".split())


class Ranks:
    """Follows inputs back to where their shape is written down."""

    def __init__(
        self,
        evaluator: Evaluator,
        constructors: Constructors,
        roots: dict[cst.Call, Tail],
        fed: dict[cst.CSTNode, set[cst.CSTNode]],
        outputs: dict[cst.Call, frozenset[cst.Call]],
    ) -> None:
        self._evaluator = evaluator
        self._constructors = constructors
        self._outputs = outputs
        self._fed: dict[cst.CSTNode, set[cst.CSTNode]] = {node: set(found) for node, found in fed.items()}
        self._creates: set[cst.CSTNode] = set(roots)
        pending = list(roots.values())
        while pending:
            tail = pending.pop()
            pending += tail.derived.values()
            for consumers in tail.consumers.values():
                for consumer in consumers:
                    self._fed.setdefault(consumer, set()).add(tail.site)
        self._deep = DeepInputs(evaluator, constructors, self._fed, outputs, self._callers)

    def takes_matrix(self, layer: cst.Call) -> bool:
        """Return whether all that is visible to go into a layer has two dimensions."""
        return self._all(self._fed.get(layer, ()), {layer})

    def takes_more(self, layer: cst.Call) -> bool:
        """Return whether something that goes into a layer is written to have three dimensions or more."""
        return self._deep.takes_more(layer)

    def _all(self, found: Iterable[cst.CSTNode], seen: set[cst.CSTNode]) -> bool:
        found = list(found)
        return bool(found) and all(self._is_matrix(node, seen) for node in found)

    def _is_matrix(self, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
        if node in seen:
            return True  # a cycle adds nothing to what comes into it
        seen = seen | {node}
        if len(seen) > 60:
            return False
        if isinstance(node, cst.Name):
            bindings = self._evaluator.flow.definitions(node)
            return bool(bindings) and all(self._bound(binding, seen) for binding in bindings)
        if isinstance(node, cst.Attribute):
            return self._is_kept(node, seen)
        if isinstance(node, cst.BinaryOperation):
            sides = [side for side in (node.left, node.right) if not isinstance(literal(side), (int, float))]
            return self._all(sides, seen)
        if isinstance(node, cst.IfExp):
            return self._all((node.body, node.orelse), seen)
        if not isinstance(node, cst.Call):
            return False
        if node in self._creates:
            return self._of_layer(node, seen)
        if node in self._outputs:
            return self._all(self._outputs[node], seen)
        return self._of_function(node, seen)

    def _bound(self, binding: Binding, seen: set[cst.CSTNode]) -> bool:
        if binding.kind is BindingKind.ASSIGNMENT and binding.value is not None and not binding.path:
            return self._is_matrix(binding.value, seen)
        function = binding.scope.node
        if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return False
        param = next((p for p in parameters(function) if p.name is binding.node), None)
        if param is None:
            return False
        passed = [argument_for(function, param, call, self._evaluator.definitions) for call in self._callers(function)]
        return bool(passed) and all(a is not None and self._is_matrix(a, seen) for a in passed)

    def _is_kept(self, attribute: cst.Attribute, seen: set[cst.CSTNode]) -> bool:
        """Whether all that the class assigns to ``self.noise`` are matrices."""
        owner = self._evaluator.definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
        if owner is None:
            return False
        bindings = self._evaluator.definitions.attribute(owner, attribute.attr.value)
        values = [binding.value if not binding.path else None for binding in bindings]
        return bool(values) and all(value is not None and self._is_matrix(value, seen) for value in values)

    def _callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        if function.name.value != "forward":
            return self._evaluator.callers(function)
        found = list(self._evaluator.callers(function))  # self.forward(x)
        for call in self._evaluator.tree.nodes(cst.Call):
            module = self._evaluator.value(call.func)
            owner = module.definition if module.kind is Kind.MODULE else None
            if isinstance(owner, cst.ClassDef) and self._evaluator.definitions.method(owner, "forward") is function:
                found.append(call)
        return found

    def _of_layer(self, layer: cst.Call, seen: set[cst.CSTNode]) -> bool:
        names = {constructor.name for constructor in self._constructors.of(layer.func)}
        if names == {"torch.nn.Flatten"}:
            given = bind(layer.args, ("start_dim", "end_dim"))
            return given.absent("end_dim") and literal(given.get("start_dim")) in (None, 1)
        return names <= SAME_RANK and self._all(self._fed.get(layer, ()), seen)

    def _of_function(self, call: cst.Call, seen: set[cst.CSTNode]) -> bool:
        given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
        starred = any(argument.star for argument in call.args)
        name = self._evaluator.names.qualified(call.func)
        if name is None and isinstance(call.func, cst.Attribute):
            return not starred and self._of_method(call, call.func, given, seen)
        last = name.rpartition(".")[2] if name is not None else getattr(call.func, "value", "")
        if last == "flatten":
            return _is_one(call, 1)
        if last in ("cat", "concat", "hstack") and given and isinstance(given[0], (cst.Tuple, cst.List)):
            return self._all([element.value for element in given[0].elements], seen)
        if last in _SIZED and not starred and _has_two_sizes(call, given):
            return True
        return last in SAME_RANK_FUNCTIONS and bool(given) and self._is_matrix(given[0], seen)

    def _of_method(
        self, call: cst.Call, method: cst.Attribute, given: Sequence[cst.BaseExpression], seen: set[cst.CSTNode]
    ) -> bool:
        name = method.attr.value
        if name in ("view", "reshape"):
            return _two(given)
        if name == "flatten":
            return _is_one(call, 0)
        if name in _POOLING:
            return _pools_images(bind(call.args, ("dim", "keepdim")))
        return name in SAME_RANK_METHODS and self._is_matrix(method.value, seen)


def _pools_images(given: Arguments) -> bool:
    """Whether a reduction takes the height and width of images away: ``x.mean((2, 3))``."""
    sizes = given.get("dim")
    elements = sizes.elements if isinstance(sizes, (cst.Tuple, cst.List)) else ()
    return {literal(e.value) for e in elements} == {2, 3} and given.absent("keepdim")


def _two(sizes: Sequence[cst.BaseExpression]) -> bool:
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        elements = sizes[0].elements
        return len(elements) == 2 and not any(isinstance(element, cst.StarredElement) for element in elements)
    return len(sizes) == 2


def _has_two_sizes(call: cst.Call, given: Sequence[cst.BaseExpression]) -> bool:
    """Whether ``randn(n, m)``, ``normal(0, 1, (n, m))`` or ``size=(n, m)`` makes a matrix."""
    sizes = [a.value for a in call.args if a.keyword is not None and a.keyword.value in ("size", "shape")]
    sizes += [argument for argument in given if isinstance(argument, (cst.Tuple, cst.List))]
    if sizes:
        return len(sizes) == 1 and _two(sizes)
    return len(given) == 2 and all(not isinstance(argument, cst.Call) or _counts(argument) for argument in given)


def _counts(call: cst.Call) -> bool:
    return (isinstance(call.func, cst.Attribute) and call.func.attr.value == "size") or (
        isinstance(call.func, cst.Name) and call.func.value in ("len", "int")
    )


def _is_one(call: cst.Call, position: int) -> bool:
    """Whether ``flatten`` starts at dimension 1 and goes to the end."""
    given = bind(call.args, ("input", "start_dim", "end_dim")[1 - position :])
    return literal(given.get("start_dim")) == 1 and given.absent("end_dim")
