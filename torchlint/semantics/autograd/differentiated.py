"""Which values the backward passes of a step start from, or come by on their way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from torchlint.semantics.autograd.frozen import Frozen
from torchlint.semantics.autograd.model_outputs import ModelOutputs
from torchlint.semantics.binding.own_keys import is_by_own_key
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Graph, Kind, Origin
from torchlint.syntax.calls import element_at, literal, method_call
from torchlint.syntax.canonical import canonical, is_same
from torchlint.syntax.walk import children

_DETACHES = frozenset(("item", "detach", "tolist", "numpy", "data", "size", "shape"))
PASSES_ON = frozenset(
    ("mean", "sum", "float", "double", "half", "cpu", "cuda", "to", "clone", "squeeze", "view", "reshape", "contiguous")
)
COMPUTES = frozenset(
    (
        "flatten unsqueeze permute transpose t expand repeat gather index_select log log2 log10 exp pow sqrt abs "
        "sigmoid tanh relu softmax log_softmax clamp norm var std neg mul div add sub "
        "matmul mm bmm masked_fill masked_select"
    ).split()
)
"""Methods whose results carry the graph of the tensor that they are called on."""

_SUMS = frozenset(("builtins.sum", "torch.sum", "torch.mean", "torch.stack", "torch.add", "torch.cat"))
_PLAIN = frozenset(("builtins.float", "builtins.int", "builtins.len", "builtins.range", "builtins.str"))
_DEPTH = 5
_FOLLOWED = frozenset((BindingKind.ASSIGNMENT, BindingKind.AUGMENTED, BindingKind.CONTEXT))


@dataclass(frozen=True, slots=True)
class _Sources:
    """Bindings and expressions whose gradients are computed.

    The value is whether it is the loss itself: then it has a graph, whatever else is known about it.
    """

    bindings: dict[int, bool] = field(default_factory=dict)
    expressions: dict[str, bool] = field(default_factory=dict)


class Differentiated:
    """Follows backward passes upstream."""

    def __init__(self, evaluator: Evaluator, frozen: Frozen) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._outputs = ModelOutputs(evaluator, frozen)
        self._known: dict[tuple[int, ...], _Sources] = {}

    def includes(self, value: cst.BaseExpression, root: cst.CSTNode, losses: list[cst.BaseExpression]) -> bool:
        """Return whether a value below ``root`` is part of what gradients start from, given the losses there."""
        sources = self._sources(losses)
        return any(self._is_source(leaf, sources, root) for leaf, _ in self._leaves(value, True, whole=True))

    def starts_from(self, bound: cst.BaseExpression, losses: list[cst.BaseExpression]) -> bool:
        """Return whether what an assignment binds is one of some losses, but for scale."""
        return self._sources(losses).bindings.get(id(bound), False)

    def _sources(self, losses: list[cst.BaseExpression]) -> _Sources:
        """What some losses are computed from."""
        key = tuple(map(id, losses))
        if key not in self._known:
            self._known[key] = sources = _Sources()
            for start in losses:
                self._follow(start, True, sources, 0)
        return self._known[key]

    def _is_source(self, leaf: cst.BaseExpression, sources: _Sources, root: cst.CSTNode) -> bool:
        if self._is_item(leaf, sources, root) and not self._is_detached_below(leaf, root):
            return True
        if written := self._written_out(leaf):
            return all(any(self._is_source(p, sources, root) for p, _ in self._leaves(each, True)) for each in written)
        if isinstance(leaf, cst.Name):
            definitions = [b for last in self._evaluator.flow.definitions(leaf) for b in self._unscaled(last)]
            found = [sources.bindings.get(id(b.node)) for b in definitions]
            if not found or None in found:
                return self._is_computed(leaf, sources, root)
            is_loss = all(found)
        else:
            text = canonical(leaf)
            if text not in sources.expressions or self._is_detached_below(leaf, root):
                return False
            is_loss = sources.expressions[text]
        value = self._evaluator.value(leaf)
        if value.graph is Graph.DETACHED or (value.known and not value.is_tensor):
            return False
        if value.is_tensor and (value.graph is Graph.ATTACHED or value.origin is Origin.LOSS):
            return True
        if isinstance(leaf, cst.Name) and self._is_sum_of_losses(leaf):
            return True
        return is_loss or self._outputs.is_one(leaf)

    def _is_sum_of_losses(self, name: cst.Name) -> bool:
        """Whether a variable starts as a number to which losses are added: ``term = term + F.mse_loss(a, b)``.

        Or is the mean of such: ``entropy = total / steps``.
        """
        made = [binding.part for binding in self._evaluator.flow.definitions(name)]
        scaled = made[0] if len(made) == 1 and isinstance(made[0], cst.BinaryOperation) else None
        if scaled is not None and isinstance(scaled.operator, cst.Divide) and isinstance(scaled.left, cst.Name):
            return scaled.left.value != name.value and self._is_sum_of_losses(scaled.left)
        sums = [each for each in made if each is not None and literal(each) is None]
        if len(sums) == len(made) or not sums:
            return False
        found = [self._evaluator.value(each) for each in sums]
        return all(v.is_tensor and (v.graph is Graph.ATTACHED or v.origin is Origin.LOSS) for v in found)

    def _is_computed(self, name: cst.Name, sources: _Sources, root: cst.CSTNode) -> bool:
        """Whether a variable is computed from what the loss is computed from as well: ``kl = (a - b).mean()``."""
        definitions, value = self._evaluator.flow.definitions(name), self._evaluator.value(name)
        made = definitions[0].value if len(definitions) == 1 and not definitions[0].path else None
        if not isinstance(made, (cst.Call, cst.BinaryOperation)) or definitions[0].kind is not BindingKind.ASSIGNMENT:
            return False
        is_other = value.graph is Graph.DETACHED or (value.known and not value.is_tensor)
        if is_other or self._evaluator.gradients.disabled(made):
            return False
        return any(self._is_source(leaf, sources, root) for leaf, _ in self._leaves(made, True, whole=True))

    def _written_out(self, leaf: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What a variable of a loop is in turn: ``for name, loss in (("a", a), ("b", b))``, ``enumerate((a, b))``."""
        bindings = self._evaluator.flow.definitions(leaf) if isinstance(leaf, cst.Name) else []
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.ITERATION:
            return []
        items, path = bindings[0].value, bindings[0].path
        if isinstance(items, cst.Call) and self._evaluator.names.qualified(items.func) == "builtins.enumerate":
            items, path = (items.args[0].value, path[1:]) if items.args and path[:1] == (1,) else (None, ())
        if not isinstance(items, (cst.Tuple, cst.List)):
            return []
        found = [element_at(element.value, path) for element in items.elements]
        return [each for each in found if each is not None] if None not in found else []

    def _is_item(self, leaf: cst.BaseExpression, sources: _Sources, root: cst.CSTNode) -> bool:
        """Whether a leaf is an item of a dictionary of outputs with a graph: ``losses[k]``, ``v in losses.items()``."""
        iterated = self.iterated(leaf)
        if isinstance(iterated, cst.Attribute):
            return self._is_item_of_attribute(iterated, sources, root)
        held = leaf.value if isinstance(leaf, cst.Subscript) else iterated
        if not isinstance(held, cst.Name) or self._is_filled_detached(held, root):
            return False
        definitions = self._evaluator.flow.definitions(held)
        if len(definitions) == 1 and isinstance(definitions[0].value, cst.Dict) and not definitions[0].path:
            pairs = definitions[0].value.elements
            return bool(pairs) and all(self._is_loss_in(held, pair, sources) for pair in pairs)
        value = self._evaluator.value(held)
        item = value.element if value.element is not None else value
        return (
            bool(definitions)
            and all(id(b.node) in sources.bindings for b in definitions)
            and item.is_tensor
            and item.graph is Graph.ATTACHED
            and item.origin in (Origin.OUTPUT, Origin.LOSS)
        )

    def _is_item_of_attribute(self, held: cst.Attribute, sources: _Sources, root: cst.CSTNode) -> bool:
        """Whether a step fills a dictionary that its object holds and differentiates one of the items as it is."""
        if self._is_filled_detached(held, root):
            return False
        places = [target.target for target in self._tree.below(root, cst.AssignTarget)]
        filled = (p for p in places if isinstance(p, cst.Subscript) and is_same(p.value, held))
        return any(sources.expressions.get(canonical(place), False) for place in filled)

    def is_detached_item(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a loop takes a value out of a dictionary whose items are detached below ``root``."""
        held = self.iterated(value)
        return isinstance(held, (cst.Name, cst.Attribute)) and self._is_filled_detached(held, root)

    def _is_filled_detached(self, held: cst.Name | cst.Attribute, root: cst.CSTNode) -> bool:
        """Whether items of a dictionary are replaced by detached ones: ``losses[k] = losses[k].detach()``."""
        statements = (s for s in self._tree.below(root, cst.Assign) if self.detaches(s.value))
        places = (target.target for statement in statements for target in statement.targets)
        return any(isinstance(place, cst.Subscript) and is_same(place.value, held) for place in places)

    def _is_loss_in(self, held: cst.Name, pair: cst.BaseDictElement, sources: _Sources) -> bool:
        """Whether an element of a dictionary that is written out is differentiated as ``losses["d"]``."""
        if not isinstance(pair, cst.DictElement):
            return False
        place = cst.Subscript(cst.Name(held.value), [cst.SubscriptElement(cst.Index(pair.key))])
        value = self._evaluator.value(pair.value)
        if not value.is_tensor or value.graph is Graph.DETACHED or canonical(place) not in sources.expressions:
            return False
        return value.graph is Graph.ATTACHED or value.origin is Origin.LOSS

    def iterated(self, name: cst.BaseExpression) -> cst.CSTNode | None:
        """Return the dictionary over whose values a loop binds a name, or by whose keys it asks for one."""
        if isinstance(name, cst.Subscript):
            return name.value if is_by_own_key(name, self._evaluator.flow) else None
        definitions = self._evaluator.flow.definitions(name) if isinstance(name, cst.Name) else []
        if len(definitions) != 1 or definitions[0].kind is not BindingKind.ITERATION:
            return None
        items = method_call(definitions[0].value, "items", "values")
        is_value = items is not None and (items.attr.value == "values" or definitions[0].path == (1,))
        return items.value if items is not None and is_value else None

    def _unscaled(self, binding: Binding) -> list[Binding]:
        """What a variable was bound to before ``loss *= n`` or ``loss /= n``."""
        if not self._scales(binding) or not isinstance(binding.node, cst.Name):
            return [binding]
        return self._evaluator.flow.definitions(binding.node)

    def _scales(self, binding: Binding) -> bool:
        statement = self._evaluator.flow.statement(binding.node)
        operators = (cst.MultiplyAssign, cst.DivideAssign)
        return isinstance(statement, cst.AugAssign) and isinstance(statement.operator, operators)

    def detaches(self, value: cst.BaseExpression) -> bool:
        """Return whether something in an expression is detached, other than what a module is given."""
        return _is_detaching(value, self._evaluator)

    def _is_detached_below(self, leaf: cst.BaseExpression, root: cst.CSTNode) -> bool:
        return any(
            isinstance(node, cst.Assign)
            and any(is_same(t.target, leaf) for t in node.targets)
            and self.detaches(node.value)
            for node in self._tree.descendants(root)
        )

    def _follow(self, expression: cst.BaseExpression, is_loss: bool, sources: _Sources, depth: int) -> None:
        """Enter what an expression is computed from."""
        for leaf, same in self._leaves(expression, is_loss):
            if not isinstance(leaf, cst.Name):
                text = canonical(leaf)
                sources.expressions[text] = sources.expressions.get(text, False) or same
                continue
            for binding in self._evaluator.flow.definitions(leaf):
                key = id(binding.node)
                if sources.bindings.get(key, False) or (key in sources.bindings and not same):
                    continue
                sources.bindings[key] = same
                if depth >= _DEPTH or binding.value is None or binding.kind not in _FOLLOWED:
                    continue
                is_factor = self._scales(binding)  # a number mostly: only what it scales is the loss
                self._follow(binding.value, same and not binding.path and not is_factor, sources, depth + 1)
                if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.Name):
                    self._follow(binding.node, False, sources, depth + 1)

    def _leaves(
        self, expression: cst.BaseExpression, is_loss: bool, *, whole: bool = False
    ) -> Iterator[tuple[cst.BaseExpression, bool]]:
        """Yield the variables that an expression is computed from, and whether each is the whole of it but for scale.

        ``whole`` passes over calls of which nobody knows whether the result carries the graphs of the arguments.
        """
        if isinstance(expression, cst.Name):
            yield expression, is_loss
        elif isinstance(expression, (cst.Attribute, cst.Subscript)):
            if not _is_detaching(expression):
                yield expression, is_loss
        elif isinstance(expression, cst.BinaryOperation):
            yield from self._operands(expression, is_loss, whole)
        elif isinstance(expression, cst.UnaryOperation):
            yield from self._leaves(expression.expression, is_loss, whole=whole)
        elif isinstance(expression, cst.IfExp):
            yield from self._leaves(expression.body, is_loss, whole=whole)
            yield from self._leaves(expression.orelse, is_loss, whole=whole)
        elif isinstance(expression, cst.Call):
            yield from self._of_call(expression, is_loss, whole)
        elif isinstance(expression, (cst.List, cst.Tuple)):
            for element in expression.elements:
                yield from self._leaves(element.value, False, whole=whole)
        elif isinstance(expression, cst.Dict):
            for pair in expression.elements:
                yield from self._leaves(pair.value, False, whole=whole)
        elif isinstance(expression, (cst.GeneratorExp, cst.ListComp)):
            made = list(self._leaves(expression.elt, False, whole=whole))
            yield from made
            if made:  # but for `sum(v.item() for v in losses.values())`
                yield from self._leaves(expression.for_in.iter, False, whole=whole)

    def _operands(
        self, operation: cst.BinaryOperation, is_loss: bool, whole: bool
    ) -> Iterator[tuple[cst.BaseExpression, bool]]:
        scaled = is_loss and isinstance(operation.operator, cst.Divide)
        yield from self._leaves(operation.left, scaled, whole=whole)
        if isinstance(operation.operator, (cst.Add, cst.Subtract, cst.Multiply)):
            yield from self._leaves(operation.right, False, whole=whole)

    def _of_call(self, call: cst.Call, is_loss: bool, whole: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
        method = method_call(call)
        name = self._evaluator.names.qualified(call.func)
        if (method is not None and method.attr.value in _DETACHES) or (name or "").startswith("math."):
            return
        if method is not None and method.attr.value in PASSES_ON:
            yield from self._leaves(method.value, is_loss, whole=whole)
            return
        if method is not None and method.attr.value in ("values", "items"):
            yield from self._leaves(method.value, False, whole=whole)
            return
        if method is not None and method.attr.value in COMPUTES:
            yield from self._leaves(method.value, False, whole=whole)
        scales = method is not None and method.attr.value in ("scale", "scale_loss")
        library, _, function = (name or "").rpartition(".")
        is_computed = name in _SUMS or (library == "torch" and function in COMPUTES)
        if name in _PLAIN or (whole and not is_computed):
            return
        for argument in call.args:
            yield from self._leaves(argument.value, is_loss and scales and argument is call.args[0], whole=whole)


def starts(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield what a pass starts from: ``loss.backward()``, ``accelerator.backward(loss)``, ``grad(loss, x)``."""
    method = method_call(call, "backward")
    if call.args and call.args[0].keyword is None and not call.args[0].star:
        yield call.args[0].value
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value in ("loss", "tensors", "outputs"):
            yield argument.value
    if method is not None:
        yield method.value


def _is_detaching(expression: cst.CSTNode, evaluator: Evaluator | None = None) -> bool:
    """Return whether something in an expression is detached; for an evaluator, other than what a module is given."""
    stack: list[cst.CSTNode] = [expression]
    while stack:
        node = stack.pop()
        if evaluator is not None and isinstance(node, cst.Call) and evaluator.value(node.func).kind is Kind.MODULE:
            continue
        if isinstance(node, cst.Attribute) and node.attr.value in _DETACHES:
            return True
        if isinstance(node, cst.Name) and node.value in ("float", "int"):
            return True
        stack += children(node)
    return False
