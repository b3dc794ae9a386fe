"""Code that records the same graph over the same parameters every time it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.scopes import Binding, BindingKind
from torchlint.semantics.tables.uniform_api import (
    CONTAINERS,
    PLAIN_FUNCTIONS,
    PLAIN_METHODS,
    VARYING_FUNCTIONS,
    VARYING_MODULES,
)
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import identifier, literal

_STATIC_CALLS = frozenset(("builtins.len", "builtins.isinstance", "builtins.hasattr", "torch.cuda.is_available"))
_PASSED_THROUGH = frozenset(
    ("builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.list", "builtins.range")
)
_FILLING = frozenset("append extend insert pop update clear popitem setdefault __setitem__ __delitem__".split())
"""Methods that change what a container of modules holds."""

_PARTS = frozenset("children named_children modules named_modules get_submodule".split())


class Uniform:
    """Answers whether code has no say in which parameters take part. Whatever is not understood may vary."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._names = evaluator.names
        self._definitions = evaluator.definitions
        self._known: dict[int, bool] = {}
        self._plain: dict[int, bool] = {}
        self._assigned: frozenset[str] | None = None

    # Modules

    def module(self, value: Value) -> bool:
        """Return whether calling a module always runs the same layers of it."""
        if value.kind is not Kind.MODULE or value.evidence < Evidence.INFERRED:
            return False
        if isinstance(value.definition, cst.ClassDef):
            return self.module_class(value.definition)
        name = value.name or ""
        return name.startswith("torch.nn.") and name not in VARYING_MODULES

    def module_class(self, class_def: cst.ClassDef) -> bool:
        """Return whether the modules of a class run all that their ``forward`` names, and hold only such modules."""
        return self._once(class_def, lambda: self._module_class(class_def))

    def _module_class(self, class_def: cst.ClassDef) -> bool:
        if not self._derives_plainly(class_def):
            return False
        if any(self._definitions.method(class_def, name) for name in ("__call__", "__getattr__", "__getattribute__")):
            return False
        forward = self._definitions.method(class_def, "forward")
        return forward is not None and self.function(forward)

    def _is_plain_base(self, base: cst.BaseExpression) -> bool:
        if self._names.qualified(base) == "torch.nn.Module":
            return True
        definition = self._definitions.definition(base)
        return isinstance(definition, cst.ClassDef) and self._derives_plainly(definition)

    def _derives_plainly(self, class_def: cst.ClassDef) -> bool:
        key = id(class_def)
        if key not in self._plain:
            self._plain[key] = False  # nothing derives from itself
            bases = [base.value for base in class_def.bases]
            self._plain[key] = not class_def.decorators and all(map(self._is_plain_base, bases))
        return self._plain[key]

    def containers_are_visible(self) -> bool:
        """Return whether all that the file puts into ``Sequential`` and its like is made by calls that it shows."""
        calls = (c for c in self._tree.nodes(cst.Call) if self._names.qualified(c.func) in CONTAINERS)
        return all(self._items_are_visible(call) for call in calls) and not self._adds_modules() and not self._refills()

    def _refills(self) -> bool:
        """Whether something may be put into a container of an object, or taken out of it, once the object is made."""
        made = (assign for assign in self._tree.nodes(cst.Assign) if self._is_container(assign.value))
        names = frozenset(identifier(target.target) for assign in made for target in assign.targets)
        calls = (c.func for c in self._tree.nodes(cst.Call) if isinstance(c.func, cst.Attribute))
        filled: list[cst.BaseExpression] = [method.value for method in calls if method.attr.value in _FILLING]
        targets: list[cst.AssignTarget | cst.Del] = [*self._tree.nodes(cst.AssignTarget), *self._tree.nodes(cst.Del)]
        filled += [target.target.value for target in targets if isinstance(target.target, cst.Subscript)]
        bound = (attribute for attribute in self._tree.nodes(cst.Attribute) if self._is_bound_aside(attribute))
        changed = (*bound, *(each for each in filled if self._may_be_part(each, names)))
        return any(not self._is_making(each) for each in changed)

    def _may_be_part(self, held: cst.BaseExpression, names: frozenset[str]) -> bool:
        """Whether an expression may be a container of modules that an object holds under one of these names."""
        while isinstance(held, cst.Subscript):
            held = held.value
        if isinstance(held, cst.Attribute):
            return held.attr.value in names
        if not isinstance(held, cst.Name):
            return self._reveals(held)
        return any(self._is_part(binding) for binding in self._evaluator.scopes.bindings(held))

    def _is_part(self, binding: Binding) -> bool:
        value = binding.value
        if binding.kind not in (BindingKind.ASSIGNMENT, BindingKind.AUGMENTED) or binding.path or value is None:
            return binding.kind is not BindingKind.IMPORT
        is_held = isinstance(value, (cst.Attribute, cst.Subscript, cst.Name))
        return is_held or self._evaluator.value(value).kind is Kind.MODULE or self._reveals(value)

    def _reveals(self, expression: cst.BaseExpression) -> bool:
        """Whether a method that gives the parts of a module is called below an expression."""
        return any(isinstance(n, cst.Attribute) and n.attr.value in _PARTS for n in self._tree.descendants(expression))

    def _is_bound_aside(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute is set by a loop, by ``with`` or together with others."""
        child: cst.CSTNode = attribute
        parent = self._tree.parent(child)
        while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            child, parent = parent, self._tree.parent(parent)
        if isinstance(parent, cst.AssignTarget):
            return child is not attribute
        return isinstance(parent, cst.AsName) or (isinstance(parent, cst.For) and parent.target is child)

    def _is_container(self, expression: cst.BaseExpression) -> bool:
        return isinstance(expression, cst.Call) and self._names.qualified(expression.func) in CONTAINERS

    def _is_making(self, node: cst.CSTNode) -> bool:
        function = self._definitions.enclosing_function(node)
        return function is not None and function.name.value == "__init__"

    def _adds_modules(self) -> bool:
        methods = (c.func for c in self._tree.nodes(cst.Call) if isinstance(c.func, cst.Attribute))
        return any(m.attr.value in ("add_module", "register_module", "__setattr__") for m in methods)

    def _items_are_visible(self, call: cst.Call) -> bool:
        return all(self._item_is_visible(argument.value) for argument in call.args if argument.keyword is None)

    def _item_is_visible(self, item: cst.BaseExpression) -> bool:
        if isinstance(item, (cst.List, cst.Tuple)):
            return all(self._item_is_visible(element.value) for element in item.elements)
        if isinstance(item, (cst.ListComp, cst.GeneratorExp)):
            return self._item_is_visible(item.elt)
        if isinstance(item, cst.Name):
            return self._list_is_visible(item)
        return self.module(self._evaluator.value(item))

    def _list_is_visible(self, name: cst.Name) -> bool:
        """Whether a local variable is a module that is seen, or a list to which only such modules are added."""
        found = self._evaluator.scopes.bindings(name)
        if not found or any(b.kind not in (BindingKind.ASSIGNMENT, BindingKind.AUGMENTED) or b.path for b in found):
            return False
        values = [binding.value for binding in found if binding.value is not None]
        lists = [value for value in values if isinstance(value, (cst.List, cst.ListComp, cst.Tuple))]
        if len(lists) < len(values):
            return not lists and all(self.module(self._evaluator.value(value)) for value in values)
        return all(map(self._item_is_visible, lists)) and all(map(self._item_is_visible, self._added(name)))

    def _added(self, name: cst.Name) -> Iterable[cst.BaseExpression]:
        scope = self._evaluator.scopes.deciding(name.value, self._evaluator.scopes.scope(name))
        for call in self._tree.nodes(cst.Call):
            method = call.func
            if not isinstance(method, cst.Attribute) or not isinstance(method.value, cst.Name) or not call.args:
                continue
            adds = method.value.value == name.value and method.attr.value in ("append", "extend", "insert")
            if adds and self._evaluator.scopes.deciding(name.value, self._evaluator.scopes.scope(call)) is scope:
                yield call.args[-1].value

    # Functions and statements

    def function(self, function: cst.FunctionDef) -> bool:
        """Return whether a function of the file always does the same to its arguments."""
        return self._once(function, lambda: self._function(function))

    def _function(self, function: cst.FunctionDef) -> bool:
        if function.asynchronous is not None or isinstance(function.body, cst.SimpleStatementSuite):
            return False
        decorators = (self._names.qualified(d.decorator) or "" for d in function.decorators)
        if not all(name == "builtins.staticmethod" or name.startswith("torch.jit.") for name in decorators):
            return False
        return self.block(function.body.body)

    def _once(self, definition: cst.CSTNode, decide: Callable[[], bool]) -> bool:
        key = id(definition)
        if key not in self._known:
            self._known[key] = False  # recursion depends on something
            self._known[key] = decide()
        return self._known[key]

    def block(self, statements: Sequence[cst.CSTNode]) -> bool:
        """Return whether statements run the same way every time."""
        return all(self.statement(statement) for statement in statements)

    def statement(self, statement: cst.CSTNode) -> bool:
        """Return whether one statement runs the same way every time."""
        if isinstance(statement, cst.SimpleStatementLine):
            return all(map(self.small, statement.body))
        if isinstance(statement, cst.If):
            return self._branch(statement)
        if isinstance(statement, cst.For):
            return self._loop(statement)
        if isinstance(statement, cst.With):
            return self.context(statement) and self.block(statement.body.body)
        return False

    def small(self, small: cst.BaseSmallStatement) -> bool:
        """Return whether a small statement runs the same way every time."""
        if isinstance(small, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Return, cst.Assert)):
            return self.expression(small)
        return isinstance(small, cst.Pass)

    def _branch(self, statement: cst.If) -> bool:
        if statement.orelse is None and isinstance(statement.body, cst.IndentedBlock):
            last = statement.body.body[-1]
            if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise):
                return self.expression(statement.test)
        if not self._is_static(statement.test) or not self.block(statement.body.body):
            return False
        other = statement.orelse
        if isinstance(other, cst.Else):
            return self.block(other.body.body)
        return other is None or self._branch(other)

    def _loop(self, loop: cst.For) -> bool:
        return loop.orelse is None and self._is_static(loop.iter) and self.block(loop.body.body)

    def context(self, statement: cst.With) -> bool:
        """Return whether the contexts of a ``with`` are torch's own, with arguments that never change."""
        for item in statement.items:
            call = item.item
            if not isinstance(call, cst.Call) or not all(self._is_static(argument.value) for argument in call.args):
                return False
            name = self._names.qualified(call.func) or ""
            if not name.startswith("torch.") or name == "torch.set_grad_enabled":
                return False
        return True

    # Expressions

    def _is_static(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression has one value for each module, however often it is evaluated."""
        if isinstance(expression, (cst.BaseNumber, cst.BaseString)) or literal(expression) is not None:
            return True
        if isinstance(expression, cst.Name):
            return expression.value == "None" or self._is_constant(expression) or self._counts(expression)
        if isinstance(expression, cst.Attribute):
            return self._is_constant(expression) or self._is_static_attribute(expression)
        if isinstance(expression, cst.UnaryOperation):
            return self._is_static(expression.expression)
        if isinstance(expression, (cst.BooleanOperation, cst.BinaryOperation)):
            return self._is_static(expression.left) and self._is_static(expression.right)
        if isinstance(expression, cst.Comparison):
            others = (target.comparator for target in expression.comparisons)
            return self._is_static(expression.left) and all(map(self._is_static, others))
        if isinstance(expression, cst.Call):
            static = self._names.qualified(expression.func) in _STATIC_CALLS | _PASSED_THROUGH
            return static and all(self._is_static(a.value) for a in expression.args)
        return False

    def _is_constant(self, expression: cst.Name | cst.Attribute) -> bool:
        return (self._names.qualified(expression) or "").startswith(("torch.", "math.", "builtins."))

    def _counts(self, name: cst.Name) -> bool:
        """Whether a name is the variable of a loop that runs over the same things every time."""
        found = self._evaluator.flow.definitions(name)
        return bool(found) and all(
            b.kind is BindingKind.ITERATION and b.value is not None and self._is_static(b.value) for b in found
        )

    def _is_static_attribute(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute of ``self`` is set by ``__init__`` only."""
        name = attribute.attr.value
        if not isinstance(attribute.value, cst.Name) or name in ("training", "grad"):
            return False
        owner = self._definitions.receiver(attribute.value)
        if owner is None or name in self._assigned_later():
            return False
        found = self._definitions.attribute(owner, name)
        return bool(found) and all(b.method is not None and b.method.name.value == "__init__" for b in found)

    def _assigned_later(self) -> frozenset[str]:
        """Names of the attributes that the file assigns to anywhere but through ``self`` in ``__init__``."""
        if self._assigned is None:
            targets: list[cst.CSTNode] = [t.target for t in self._tree.nodes(cst.AssignTarget)]
            targets += [augmented.target for augmented in self._tree.nodes(cst.AugAssign)]
            targets += [annotated.target for annotated in self._tree.nodes(cst.AnnAssign)]
            attributes = (t for t in targets if isinstance(t, cst.Attribute) and not self._in_init(t))
            self._assigned = frozenset(attribute.attr.value for attribute in attributes)
        return self._assigned

    def _in_init(self, attribute: cst.Attribute) -> bool:
        function = self._definitions.enclosing_function(attribute)
        is_own = isinstance(attribute.value, cst.Name) and self._definitions.receiver(attribute.value) is not None
        return is_own and function is not None and function.name.value == "__init__"

    def expression(self, node: cst.CSTNode) -> bool:
        """Return whether nothing in an expression chooses what it computes with."""
        return all(self._node(below) for below in self._tree.descendants(node))

    def _node(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.IfExp):
            return self._is_static(node.test)
        if isinstance(node, cst.BooleanOperation):
            return self._is_static(node)
        if isinstance(node, cst.CompFor):
            return not node.ifs and node.inner_for_in is None and self._is_static(node.iter)
        if isinstance(node, cst.Subscript):
            return all(self._index(element.slice) for element in node.slice)
        return not isinstance(node, (cst.Lambda, cst.Yield, cst.Await, cst.NamedExpr))

    def _index(self, index: cst.BaseSlice) -> bool:
        if isinstance(index, cst.Index):
            return isinstance(index.value, cst.Ellipsis) or self._is_static(index.value)
        parts = (index.lower, index.upper, index.step) if isinstance(index, cst.Slice) else ()
        return all(part is None or self._is_static(part) for part in parts)

    def _call(self, call: cst.Call) -> bool:
        name = self._names.qualified(call.func)
        if name is not None:
            return name.startswith(PLAIN_FUNCTIONS) and not name.startswith(VARYING_FUNCTIONS)
        definition = self._definitions.definition(call.func)
        if isinstance(definition, cst.FunctionDef):
            return self.function(definition)
        if definition is not None:
            return False
        called = self._evaluator.value(call.func)
        if called.kind is Kind.MODULE:
            return self.module(called) and self._is_stable(call.func)
        if called.definition is not None or not isinstance(call.func, cst.Attribute):
            return False
        return self._method(call.func)

    def _is_stable(self, function: cst.BaseExpression) -> bool:
        """Whether the module that is called is the same one each time: an attribute, a local one, a fixed item."""
        if isinstance(function, cst.Subscript):
            return self._is_stable(function.value) and all(self._index(element.slice) for element in function.slice)
        if isinstance(function, cst.Attribute):
            return function.attr.value not in self._assigned_later()
        return isinstance(function, (cst.Name, cst.Call))

    def _method(self, method: cst.Attribute) -> bool:
        receiver = self._evaluator.value(method.value)
        if receiver.kind is Kind.MODULE:
            if isinstance(receiver.definition, cst.ClassDef):
                definition = self._definitions.method(receiver.definition, method.attr.value)
                return definition is not None and self.function(definition)
            return method.attr.value in ("flatten_parameters", "size")
        return method.attr.value in PLAIN_METHODS
