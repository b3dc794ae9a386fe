"""What stays the same while a loop or a function runs again and again."""

from __future__ import annotations

from itertools import takewhile

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import COMPREHENSIONS, FUNCTIONS, BindingKind
from torchlint.semantics.dataflow.held import Held
from torchlint.semantics.dataflow.reads import Reads
from torchlint.semantics.dataflow.writes import Writes
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import canonical, is_same

_ASKED = frozenset("device dtype shape size dim ndim numel is_cuda requires_grad to cuda".split())
_BRANCHES = (
    cst.If, cst.IfExp, cst.BooleanOperation, cst.Try, cst.TryStar, cst.ExceptHandler, cst.Match, cst.Assert, cst.Raise,
)  # fmt: skip
_REPEATS = (*LOOPS, *FUNCTIONS, *COMPREHENSIONS)
_SHARING = frozenset(("share_memory_", "memmap", "from_file", "from_buffer"))
_LEAVES = ("requires_grad_", "Parameter")
_CONTAINERS = (cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Dict)
_WRAPPERS = frozenset(("torch.from_numpy", "torch.as_tensor"))
_CASTS = frozenset("float double half bfloat16 long int bool".split())
_VIEWS = frozenset(("from_numpy", "as_tensor", "frombuffer"))


class Invariants:
    """Answers whether expressions have the same value each time."""

    def __init__(self, evaluator: Evaluator, writes: Writes) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._writes = writes
        self._reads = Reads(evaluator, writes)
        self._held = Held(evaluator, writes)

    def is_constant(self, data: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether Python data is written out, of numbers and of variables that stay the same below ``root``."""
        if literal(data) is not None:
            return True
        if isinstance(data, (cst.List, cst.Tuple)):
            return all(isinstance(part, cst.Element) and self.is_constant(part.value, root) for part in data.elements)
        if isinstance(data, cst.BinaryOperation):
            return self.is_constant(data.left, root) and self.is_constant(data.right, root)
        if isinstance(data, cst.UnaryOperation):
            return self.is_constant(data.expression, root)
        if isinstance(data, cst.Call) and self._evaluator.names.qualified(data.func) == "builtins.float":
            return all(literal(argument.value) is not None for argument in data.args)  # infinity
        if not isinstance(data, (cst.Name, cst.Attribute)):
            return False
        value = self._evaluator.value(data)
        is_data = value.kind is Kind.NUMBER or (
            value.kind in (Kind.SEQUENCE, Kind.NDARRAY) and not value.iterated().is_tensor
        )
        return is_data and self.is_kept(data, root)

    def is_kept(self, variable: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a variable is bound and written outside ``root`` only, and shown to nobody who might write."""
        if isinstance(variable, cst.Name):
            return self._is_kept_name(variable, root)
        if not isinstance(variable, cst.Attribute) or not self._held.is_kept(variable):
            return False
        return not self._is_given_to_others(variable, root)

    def _is_given_to_others(self, attribute: cst.Attribute, root: cst.CSTNode) -> bool:
        """Whether something below ``root`` is handed an attribute, which it may write to: ``anneal(self.weight)``.

        Or it has another name there, by which that may happen.
        """
        same = (use for use in self._tree.attributes_named(attribute.attr.value) if is_same(use, attribute))
        here = [use for use in same if self._tree.within(use, root)]
        return any(isinstance(self._tree.parent(use), cst.Assign) or self._is_given_away(use) for use in here)

    def _is_kept_name(self, name: cst.Name, root: cst.CSTNode) -> bool:
        bindings = self._evaluator.scopes.bindings(name)
        kinds = (BindingKind.ASSIGNMENT, BindingKind.PARAMETER)
        if not bindings or any(self._tree.within(b.node, root) for b in bindings):
            return False
        if any(b.kind not in kinds for b in self._evaluator.flow.definitions(name)):
            return False
        if self._is_lent(name, root):
            return False
        uses = (use for use in self._tree.below(root, cst.Name) if use.value == name.value and use is not name)
        if not all(self._only_asks(use) for use in uses if self._evaluator.scopes.bindings(use) is bindings):
            return False
        written = (place for place in self._writes.places() if self._tree.within(place, root))
        return not any(isinstance(place, cst.Name) and self._may_share(name, place, root) for place in written)

    def _is_lent(self, name: cst.Name, root: cst.CSTNode) -> bool:
        """Whether somebody else may write to a variable meanwhile: who was given it, or other processes and scopes."""
        elsewhere: list[cst.Global | cst.Nonlocal] = [*self._tree.nodes(cst.Global), *self._tree.nodes(cst.Nonlocal)]
        if any(item.name.value == name.value for statement in elsewhere for item in statement.names):
            return True
        bindings = self._evaluator.scopes.bindings(name)
        made_of = [b.value for b in bindings if b.value is not None and not self._tree.within(b.node, root)]
        calls = [call for value in made_of for call in self._tree.below(value, cst.Call)]
        if any(identifier(call.func) in _SHARING for call in calls) or self._is_leaf(name, calls):
            return True
        if any(isinstance(value, cst.Attribute) and self._is_given_to_others(value, root) for value in made_of):
            return True
        views = (
            call
            for call in calls
            if identifier(call.func) in _VIEWS
            for a in call.args
            if a.value.__class__ is cst.Name
        )
        shared = {name.value, *(identifier(call.args[0].value) for call in views)}
        return any(
            use.value in shared
            and (use.value != name.value or not self._tree.within(use, root))
            and self._is_given_away(use)
            for use in self._tree.nodes(cst.Name)
        )

    def _is_leaf(self, name: cst.Name, makers: list[cst.Call]) -> bool:
        """Whether a variable asks for a gradient: an optimizer then writes to it."""
        flags = (bind(call.args).get("requires_grad") for call in makers)
        if any(flag is not None and literal(flag) is not False for flag in flags):
            return True
        if any(identifier(call.func) in _LEAVES for call in makers):
            return True
        asked = (node for node in self._tree.nodes(cst.Attribute) if node.attr.value in ("requires_grad", *_LEAVES))
        return any(isinstance(node.value, cst.Name) and node.value.value == name.value for node in asked)

    def _is_given_away(self, use: cst.Name | cst.Attribute) -> bool:
        """Whether a variable is handed to a call that may keep it: to none of torch's, and to none that only reads."""
        argument = self._tree.parent(use)
        while isinstance(argument, _CONTAINERS):
            argument = self._tree.parent(argument)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        name = self._evaluator.names.qualified(call.func) or ""
        if name.partition(".")[0] in ("torch", "numpy", "builtins"):
            return False
        return self._evaluator.value(call.func).kind is not Kind.MODULE

    def _may_share(self, name: cst.Name, other: cst.Name, root: cst.CSTNode) -> bool:
        """Return whether one of two variables is made of the other outside ``root``: a view, or an array's tensor."""
        return other.value in self._made_of(name, root) or name.value in self._made_of(other, root)

    def _made_of(self, name: cst.Name, root: cst.CSTNode) -> frozenset[str]:
        """Return the names in what is bound to a variable outside ``root``."""
        bindings = self._evaluator.scopes.bindings(name)
        values = [b.value for b in bindings if b.value is not None and not self._tree.within(b.node, root)]
        nodes = (node for value in values for node in self._tree.descendants(value))
        return frozenset(node.value for node in nodes if isinstance(node, cst.Name))

    def _only_asks(self, use: cst.Name) -> bool:
        """Whether nothing that is done with a variable here can change it."""
        parent = self._tree.parent(use)
        return isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value in _ASKED

    def repeated(self, node: cst.CSTNode, step: cst.CSTNode) -> cst.CSTNode | None:
        """Return what runs again with each step and holds a node: ``step``, or the function that is called from there.

        None if what the function gives is kept for the next call.
        """
        function = self._evaluator.definitions.enclosing_function(node)
        decorators = (d.decorator for d in function.decorators) if function is not None else ()
        called = (d.func if isinstance(d, cst.Call) else d for d in decorators)
        if any("cache" in identifier(decorator) for decorator in called):
            return None
        return step if self._tree.within(node, step) else function

    def variable(self, expression: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return the variable that an expression is, or whose array it makes a tensor of: ``from_numpy(x).float()``."""
        while isinstance(expression, cst.Call) and isinstance(expression.func, cst.Attribute):
            is_wrapped = len(expression.args) == 1 and self._wraps(expression)
            if not is_wrapped and expression.func.attr.value not in _CASTS:
                return None
            expression = expression.args[0].value if is_wrapped else expression.func.value
        return expression if isinstance(expression, (cst.Name, cst.Attribute)) else None

    def _wraps(self, call: cst.Call) -> bool:
        """Whether a call makes a tensor of an array: ``as_tensor`` hands back a tensor where it is given one."""
        name = self._evaluator.names.qualified(call.func)
        return name in _WRAPPERS and (
            name != "torch.as_tensor" or self._evaluator.value(call.args[0].value).kind is Kind.NDARRAY
        )

    def is_same(self, variable: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a variable, or what all calls pass for it to a function, stays the same."""
        sources = self._held.sources(variable, root)
        return bool(sources) and all(self.is_kept(each, root) for each in sources)

    def apart(self, variable: cst.BaseExpression, function: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return what a variable stands for in a function, if nothing moves that with an object; else nothing."""
        found = self._held.sources(variable, function)
        return found if all(map(self._held.lies_apart, found)) else []

    def in_module(self, variable: cst.BaseExpression) -> bool:
        """Return whether an attribute belongs to a module, which can hold it as a buffer."""
        return self._held.in_module(variable)

    def is_changed(self, made: cst.Call, root: cst.CSTNode) -> bool:
        """Return whether something below ``root`` may write into what a call gives, keep it, or make a leaf of it."""
        return not self._reads.only_reads(made, root)

    def is_settled(self, expression: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether all variables of an expression are bound outside ``root`` only, attributes included."""
        names = [node for node in self._tree.descendants(expression) if isinstance(node, cst.Name)]
        attributes = {canonical(n) for n in self._tree.descendants(expression) if isinstance(n, cst.Attribute)}
        if any(canonical(target.target) in attributes for target in self._tree.below(root, cst.AssignTarget)):
            return False
        moved = (method_call(call, "to", "cuda") for call in self._tree.below(root, cst.Call) if attributes)
        if any(identifier(m.value) == name.value for m in moved if m is not None for name in names):
            return False
        return not any(self._tree.within(b.node, root) for name in names for b in self._evaluator.scopes.bindings(name))

    def is_only_copy(self, copy: cst.Call, moved: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether all moves of what has this name below ``root`` are the same: they would share one variable."""
        for call in self._tree.below(root, cst.Call):
            method = method_call(call, "to", "cuda")
            named = method is not None and identifier(method.value) == identifier(moved)
            if named and canonical(call) != canonical(copy):
                return False
        return True

    def is_unconditional(self, node: cst.CSTNode, root: cst.CSTNode, step: cst.CSTNode) -> bool:
        """Return whether no branch may leave a node out in some passes, also on the way from ``step`` to ``root``."""
        if not self._is_reached(node, root):
            return False
        return root is step or (isinstance(root, cst.FunctionDef) and self._is_called_each_time(root, ()))

    def _is_reached(self, node: cst.CSTNode, root: cst.CSTNode) -> bool:
        """Whether ``root`` comes to a node each time, as far as tests that may change from time to time decide it."""
        function = root if isinstance(root, cst.FunctionDef) else None
        exits = self._tree.below(function.body, cst.Return) if function is not None else []
        early = [one for one in exits if self._tree.order(one) < self._tree.order(node)]
        return all(self._is_free_of(_BRANCHES, one, root, settled=True) for one in (node, *early))

    def _is_called_each_time(self, function: cst.FunctionDef, seen: tuple[cst.FunctionDef, ...]) -> bool:
        """Whether no branch leaves out one of the calls of a function, up to a loop or to who calls first."""
        for call in self._evaluator.callers(function) if function not in seen else ():
            around = self._tree.enclosing(call, *LOOPS, cst.FunctionDef)
            caller = self._evaluator.definitions.enclosing_function(call)
            if around is None or caller is None or caller.name.value == "__init__":
                continue
            is_first = around is not caller or not self._evaluator.callers(caller) or caller.name.value == "forward"
            is_first = is_first or self._is_called_each_time(caller, (*seen, function))
            if is_first and self._is_reached(call, around):
                return True
        return False

    def runs_once(self, node: cst.CSTNode, loop: cst.For | cst.While) -> bool:
        """Return whether nothing between a loop and a node may leave it out, repeat it in a pass or postpone it."""
        return self._is_free_of((*_BRANCHES, *_REPEATS), node, loop)

    def _is_free_of(
        self, kinds: tuple[type[cst.CSTNode], ...], node: cst.CSTNode, root: cst.CSTNode, *, settled: bool = False
    ) -> bool:
        """Whether no node of these kinds is between two, ``settled``: but for tests of what never changes."""
        between = takewhile(lambda ancestor: ancestor is not root, self._tree.ancestors(node))
        found = [ancestor for ancestor in between if isinstance(ancestor, kinds)]
        tests = [each.test if settled and isinstance(each, (cst.If, cst.IfExp)) else None for each in found]
        return all(test is not None and self._held.is_settled(test) for test in tests)
