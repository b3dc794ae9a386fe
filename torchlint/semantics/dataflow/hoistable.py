"""Values that are known before a loop begins, so that one read before it could serve all passes."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics import roles
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.dataflow.writes import Writes
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import ITERATION_WRAPPERS, RANDOM_FACTORIES
from torchlint.semantics.values import Value
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import canonical, is_same

_METADATA = frozenset(("shape", "dtype", "device", "ndim"))
_SETTINGS = frozenset(("config", "cfg", "hparams", "args", "opt"))
_ASKED = frozenset(("size", "dim", "numel", "element_size"))
_DRAWS = frozenset(
    "bernoulli multinomial poisson rand_like randn_like randint_like gumbel_softmax dropout dropout1d dropout2d "
    "dropout3d alpha_dropout feature_alpha_dropout rrelu".split()
)
_ELSEWHERE = ("torch.cuda.", "torch.distributed.", "torch.distributions.", "torch.ops.", "torch.utils.", "torch.load")
"""Names of torch whose functions answer by more than what they are given."""

_PASSED_THROUGH = (ITERATION_WRAPPERS | {"builtins.enumerate"}) - {"builtins.iter"}
_RANGES = frozenset(("builtins.range", "tqdm.trange", "tqdm.auto.trange"))
_COUNTING = frozenset(("builtins.len", "builtins.int", "builtins.float", "builtins.max", "builtins.min"))
_PARTS = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.IfExp, cst.Tuple, cst.List)
_MAX_DEPTH = 12


class Hoistable:
    """Follows expressions in a loop back to what was there before it."""

    def __init__(self, evaluator: Evaluator, writes: Writes) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._writes = writes
        self._known: dict[tuple[cst.BaseExpression, cst.CSTNode], bool] = {}

    def is_known(self, read: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        """Return whether nothing that a loop computes goes into an expression in it."""
        if (read, loop) not in self._known:
            self._known[read, loop] = self._is_known_in(read, loop)
        return self._known[read, loop]

    def _is_known_in(self, read: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        return (
            isinstance(loop, (cst.For, cst.While))
            and self._tree.within(read, loop.body)
            and self._evaluator.definitions.enclosing_function(read)
            is self._evaluator.definitions.enclosing_function(loop)
            and self._is_known(read, loop, 0)
        )

    def is_known_within(self, read: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        """Return whether an expression is known before a loop, or before the innermost one in it that is around."""
        inner = next((node for node in self._tree.ancestors(read) if isinstance(node, cst.For)), None)
        is_below = inner is not None and inner is not loop and self._tree.within(inner, loop)
        return self.is_known(read, loop) or (inner is not None and is_below and self.is_known(read, inner))

    def _is_known(self, node: cst.BaseExpression, loop: cst.For | cst.While, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            return False
        if literal(node) is not None or _is_setting(node):
            return True
        if isinstance(node, cst.Name):
            return self._is_known_name(node, loop, depth)
        if isinstance(node, cst.Attribute):
            asks = node.attr.value in _METADATA and isinstance(node.value, cst.Name)
            return asks or self._evaluator.names.qualified(node) is not None
        if isinstance(node, cst.Subscript):
            return self._is_known(node.value, loop, depth + 1) and self._are_known_indices(node, loop, depth + 1)
        if isinstance(node, cst.Call):
            return self._is_known_call(node, loop, depth + 1)
        if isinstance(node, _PARTS) and not self._may_be_filled(node):
            return all(self._is_known(part, loop, depth + 1) for part in _operands(node))
        return False

    def _may_be_filled(self, node: cst.BaseExpression) -> bool:
        """Whether a node is a list that has a name, and so may hold something else later."""
        return isinstance(node, cst.List) and not isinstance(self._tree.parent(node), cst.Arg)

    def _is_known_name(self, name: cst.Name, loop: cst.For | cst.While, depth: int) -> bool:
        definitions = self._evaluator.flow.definitions(name)
        if not definitions:
            return self._evaluator.names.qualified(name) is not None
        written = (place for place in self._writes.places() if self._tree.within(place, loop))
        if any(_root(canonical(place)) == name.value for place in written):
            return False
        if len(definitions) > 1 and not all(self._is_settled(binding, loop, depth + 1) for binding in definitions):
            return False
        return all(self._is_known_binding(binding, loop, depth + 1) for binding in definitions)

    def _is_settled(self, binding: Binding, loop: cst.For | cst.While, depth: int) -> bool:
        """Whether what a pass computes has no say in whether it binds a name."""
        for ancestor in self._tree.ancestors(binding.node):
            if ancestor is loop:
                return True
            if isinstance(ancestor, (cst.For, cst.While, cst.Try, cst.TryStar, cst.Match)):
                return False
            if isinstance(ancestor, cst.If) and not self._is_known(ancestor.test, loop, depth):
                return False
        return True

    def _is_known_binding(self, binding: Binding, loop: cst.For | cst.While, depth: int) -> bool:
        if not self._tree.within(binding.node, loop):
            return True
        if binding.kind is BindingKind.ASSIGNMENT and binding.value is not None:
            return self._is_known(binding.value, loop, depth)
        if binding.kind is BindingKind.PARAMETER:
            given = self._mapped(binding.scope.node)
            return given is not None and self._is_known(given, loop, depth)
        is_step = isinstance(loop, cst.For) and self._tree.within(binding.node, loop.target)
        return is_step and isinstance(loop, cst.For) and self._is_taken_from_known(loop, binding.node)

    def _mapped(self, function: cst.CSTNode) -> cst.BaseExpression | None:
        """What a lambda is given one by one: ``map(lambda t: t.item(), (a, b))``."""
        argument = self._tree.parent(function) if isinstance(function, cst.Lambda) else None
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or len(call.args) != 2 or call.args[1].star:
            return None
        is_map = self._evaluator.names.qualified(call.func) == "builtins.map"
        return call.args[1].value if is_map and call.args[0] is argument else None

    def _is_taken_from_known(self, loop: cst.For, target: cst.CSTNode) -> bool:
        """Whether each pass takes an element of a tensor, or a time of a diffusion process, that was there before."""
        return self._gives_known(loop.iter, loop, target)

    def _gives_known(self, source: cst.BaseExpression, loop: cst.For, target: cst.CSTNode) -> bool:
        while isinstance(source, cst.Call) and source.args:
            name = self._evaluator.names.qualified(source.func)
            given = [argument.value for argument in source.args if not argument.star and argument.keyword is None]
            if name in _RANGES:
                return all(self._is_known(bound, loop, 1) for bound in given)
            if name == "builtins.zip":
                return len(given) == len(source.args) and all(self._gives_known(g, loop, target) for g in given)
            if name not in _PASSED_THROUGH:
                break
            source = source.args[0].value
        if self._is_generated(source) or not (self._are_times(source, loop) or self._is_known(source, loop, 0)):
            return False
        value = self._evaluator.value(source)
        if _holds_tensors(value):
            return True
        steps = (call for call in self._tree.below(loop.body, cst.Call) if roles.denoises(call))
        return not value.known and any(
            isinstance(argument.value, cst.Name) and argument.value.value == identifier(target)
            for call in steps
            for argument in call.args
        )

    def _is_generated(self, source: cst.BaseExpression) -> bool:
        """Whether a function of the file makes the items, each when the loop asks for it."""
        bindings = self._evaluator.flow.definitions(source) if isinstance(source, cst.Name) else []
        made = [binding.value for binding in bindings] or [source]
        called = (self._evaluator.definitions.definition(call.func) for call in made if isinstance(call, cst.Call))
        functions = (function for function in called if isinstance(function, cst.FunctionDef))
        return any(self._evaluator.definitions.yielded(function) for function in functions)

    def _are_times(self, source: cst.BaseExpression, loop: cst.For) -> bool:
        """Whether a loop goes over the times that a scheduler holds: ``self.scheduler.timesteps``."""
        if not isinstance(source, cst.Attribute) or source.attr.value != "timesteps":
            return False
        return not any(is_same(place, source) and self._tree.within(place, loop) for place in self._writes.places())

    def _are_known_indices(self, node: cst.Subscript, loop: cst.For | cst.While, depth: int) -> bool:
        for element in node.slice:
            index = element.slice
            if isinstance(index, cst.Slice):
                parts = [part for part in (index.lower, index.upper, index.step) if part is not None]
            else:
                parts = [index.value] if isinstance(index, cst.Index) else []
            if not all(self._is_known(part, loop, depth) for part in parts):
                return False
        return True

    def _is_known_call(self, call: cst.Call, loop: cst.For | cst.While, depth: int) -> bool:
        """Whether a call computes the same again: a function or method of torch that draws nothing."""
        last = identifier(call.func)
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            is_plain = name.startswith("torch.") and not name.startswith(_ELSEWHERE)
            computes = name in _COUNTING or (is_plain and name not in RANDOM_FACTORIES)
            owner: tuple[cst.BaseExpression, ...] = ()
        elif isinstance(call.func, cst.Attribute):
            if last in _ASKED:
                return True
            owner = (call.func.value,)
            computes = self._evaluator.value(call.func.value).is_tensor
        else:
            return False
        if not computes or last in _DRAWS or last.endswith("_") or any(argument.star for argument in call.args):
            return False
        given = (argument.value for argument in call.args)
        return all(self._is_known(part, loop, depth) for part in (*owner, *given))


def _holds_tensors(value: Value) -> bool:
    """Whether going through a value gives tensors, or several at a time: ``list(zip(a, b))``."""
    if value.is_tensor:
        return value.evidence >= Evidence.INFERRED
    parts = value.element.elements if value.element is not None else None
    return bool(parts) and all(part.is_tensor and part.evidence >= Evidence.INFERRED for part in parts or ())


def _operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    if isinstance(node, cst.Comparison):
        return [node.left, *(target.comparator for target in node.comparisons)]
    if isinstance(node, cst.IfExp):
        return [node.test, node.body, node.orelse]
    assert isinstance(node, (cst.Tuple, cst.List))
    return [element.value for element in node.elements]


def _is_setting(node: cst.BaseExpression) -> bool:
    """Return whether an expression is an option of the program: ``self.config.steps``, ``args.size``."""
    if not isinstance(node, cst.Attribute):
        return False
    owner = node.value
    while isinstance(owner, (cst.Attribute, cst.Name)):
        if identifier(owner) in _SETTINGS:
            return True
        if isinstance(owner, cst.Name):
            return False
        owner = owner.value
    return False


def _root(place: str | None) -> str:
    return (place or "").partition(".")[0].partition("[")[0]
