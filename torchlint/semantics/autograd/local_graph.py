"""Whether the graph of a loss is made in the very pass that computes its gradients, and is of no use afterwards."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.names import unpack
from torchlint.semantics.tables.container_methods import STORES
from torchlint.semantics.values import UNKNOWN, Graph, Kind, Origin, Value
from torchlint.syntax.calls import identifier, method_call

_MAX_DEPTH = 12
_CONSTANTS = (cst.BaseNumber, cst.BaseString)
_WITHOUT_GRAPH = frozenset((Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DTYPE, Kind.DEVICE, Kind.NDARRAY))
_OF_MODULES = ("torch.nn.", "torchvision.models.")
_UNSEEN = (
    "torch.utils.",
    "torch.autograd.",
    "torch.func.",
    "torch.compile",
    "torch.load",
    "torch.jit.",
    "torch.library.",
)


class LocalGraph:
    """Follows a loss upstream to modules and tensors without graph."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._pure: dict[int, bool] = {}
        self._carriers: set[str] = set()

    def is_made_for(self, loss: cst.BaseExpression, backward: cst.Call) -> bool:
        """Return whether all that a loss is computed from is made in the pass that holds its backward pass."""
        root: cst.CSTNode = self._tree.module
        child: cst.CSTNode = backward
        for ancestor in self._tree.ancestors(backward):
            if isinstance(ancestor, (*LOOPS, cst.FunctionDef, cst.Lambda)) and child is ancestor.body:
                root = ancestor
                break
            child = ancestor
        if isinstance(root, cst.Lambda):
            return False
        self._carriers = {loss.value} if isinstance(loss, cst.Name) else set()
        return self._is_local(loss, root, 0) and not any(map(self._is_handed_on, self._uses(backward)))

    def _uses(self, backward: cst.Call) -> list[cst.Name]:
        """The names in the function of a backward pass that can hold a part of the graph of its loss."""
        function = self._evaluator.definitions.enclosing_function(backward)
        return [
            name
            for name in self._tree.nodes(cst.Name)
            if name.value in self._carriers and self._evaluator.definitions.enclosing_function(name) is function
        ]

    def _is_handed_on(self, name: cst.Name) -> bool:
        """Whether a tensor with its graph is returned, kept, given another name, or given to something unknown."""
        parent = self._tree.parent(name)
        if any(binding.node is name for binding in self._evaluator.scopes.bindings(name)):
            return False
        while isinstance(parent, cst.BinaryOperation):
            parent = self._tree.parent(parent)
        if isinstance(parent, cst.Arg):
            call = self._tree.parent(parent)
            return not isinstance(call, cst.Call) or not self._is_known(call)
        keeping = (cst.Return, cst.Yield, cst.Element, cst.DictElement, cst.Assign, cst.AnnAssign, cst.IfExp)
        return isinstance(parent, keeping)

    def _is_known(self, call: cst.Call) -> bool:
        """Whether a call computes something of what it is given, and keeps none of it."""
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            return name.startswith(("torch.", "builtins.")) and not name.startswith(_UNSEEN)
        return self._evaluator.value(call.func).kind is Kind.MODULE and self._is_pure(call.func)

    def _is_local(self, expression: cst.CSTNode, root: cst.CSTNode, depth: int) -> bool:
        """Whether an expression carries no graph but what its own pass through ``root`` makes."""
        if depth > _MAX_DEPTH:
            return False
        if isinstance(expression, _CONSTANTS):
            return True
        if isinstance(expression, cst.Name):
            return self._is_local_name(expression, root, depth + 1)
        if isinstance(expression, cst.Attribute):
            value = self._evaluator.value(expression)
            return value.kind in _WITHOUT_GRAPH or (value.is_tensor and value.graph is Graph.DETACHED)
        if isinstance(expression, cst.Call):
            return method_call(expression, "detach") is not None or self._is_local_call(expression, root, depth + 1)
        if isinstance(expression, cst.BinaryOperation):
            return all(self._is_local(side, root, depth + 1) for side in (expression.left, expression.right))
        if isinstance(expression, cst.UnaryOperation):
            return self._is_local(expression.expression, root, depth + 1)
        if isinstance(expression, cst.Subscript):
            return self._is_local(expression.value, root, depth + 1)
        if isinstance(expression, (cst.Tuple, cst.List)):
            return all(self._is_local(element.value, root, depth + 1) for element in expression.elements)
        return False

    def _is_local_name(self, name: cst.Name, root: cst.CSTNode, depth: int) -> bool:
        bindings = self._evaluator.flow.definitions(name)
        if not bindings:
            return self._evaluator.value(name).kind in _WITHOUT_GRAPH  # `True`
        return all(self._is_local_binding(b, name, root, depth) for b in bindings)

    def _is_local_binding(self, binding: Binding, name: cst.Name, root: cst.CSTNode, depth: int) -> bool:
        value = self._bound(binding, name)
        if value.kind in _WITHOUT_GRAPH or value.origin is Origin.BATCH:
            return True
        if value.is_tensor and value.graph is Graph.DETACHED:
            return True
        body = root if isinstance(root, cst.Module) else getattr(root, "body", root)
        if not self._tree.within(binding.node, body):
            return False  # its graph may be that of another pass
        if self._tree.order(binding.node) > self._tree.order(name) or binding.value is None:
            return False  # left by the pass before
        if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.Name):
            before = [b for b in self._evaluator.flow.definitions(binding.node) if b.node is not binding.node]
            earlier = all(self._is_local_binding(b, binding.node, root, depth + 1) for b in before)
            return bool(before) and earlier and self._is_local(binding.value, root, depth)
        self._carriers.add(name.value)
        return binding.kind is BindingKind.ASSIGNMENT and self._is_local(binding.value, root, depth)

    def _bound(self, binding: Binding, name: cst.Name) -> Value:
        """What one of the bindings of a name gives it; together they hide what a loop carries on."""
        if len(self._evaluator.flow.definitions(name)) == 1:
            return self._evaluator.value(name)
        loop = self._evaluator.flow.statement(binding.node)
        if binding.kind is BindingKind.ITERATION and isinstance(loop, cst.For):
            return unpack(self._evaluator.iterated(loop), binding.path)
        is_plain = binding.kind is BindingKind.ASSIGNMENT and binding.value is not None and not binding.path
        return self._evaluator.value(binding.value) if is_plain and binding.value is not None else UNKNOWN

    def _is_local_call(self, call: cst.Call, root: cst.CSTNode, depth: int) -> bool:
        if any(argument.star for argument in call.args):
            return False
        if not all(self._is_local(argument.value, root, depth) for argument in call.args):
            return False
        is_module = self._evaluator.value(call.func).kind is Kind.MODULE
        if is_module or self._evaluator.names.qualified(call.func) is not None:
            return self._is_known(call)
        method = method_call(call)
        return method is not None and self._is_local(method.value, root, depth)

    def _is_pure(self, module: cst.BaseExpression) -> bool:
        """Whether a module is of torch, or of a class of the file that keeps nothing from one call to the next."""
        value = self._evaluator.value(module)
        if isinstance(value.definition, cst.ClassDef):
            return self._is_pure_class(value.definition)
        return value.name is not None and value.name.startswith(_OF_MODULES)

    def _is_pure_class(self, class_def: cst.ClassDef) -> bool:
        if id(class_def) not in self._pure:
            self._pure[id(class_def)] = True  # a class that makes others of its own adds nothing
            self._pure[id(class_def)] = self._keeps_nothing(class_def)
        return self._pure[id(class_def)]

    def _keeps_nothing(self, class_def: cst.ClassDef) -> bool:
        if self._evaluator.definitions.ancestry(class_def) != ("torch.nn.Module",):
            return False
        for method in self._tree.descendants(class_def):
            if isinstance(method, cst.FunctionDef) and method.name.value != "__init__" and self._stores(method):
                return False
        return all(
            self._is_known_layer(call)
            for call in self._tree.descendants(class_def)
            if isinstance(call, cst.Call) and isinstance(self._tree.parent(call), cst.Assign)
        )

    def _stores(self, method: cst.FunctionDef) -> bool:
        """Whether a method keeps something beyond its call, or takes the place of those that torch calls."""
        for node in self._tree.descendants(method.body):
            target = node.target if isinstance(node, (cst.AssignTarget, cst.AugAssign)) else None
            if target is not None and not isinstance(target, (cst.Name, cst.Tuple)):
                return True
            if isinstance(node, (cst.Global, cst.Nonlocal)):
                return True
            if method_call(node, *STORES) is not None:
                return True
        return method.name.value in ("__call__", "__getattr__", "__setattr__")

    def _is_known_layer(self, call: cst.Call) -> bool:
        """Whether what a class assigns is a layer of torch, of a class of the file, or something without a graph."""
        statement = self._tree.parent(call)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Attribute):
            return True
        made = self._evaluator.definitions.definition(call.func)
        if isinstance(made, cst.ClassDef):
            return self._is_pure_class(made)
        name = self._evaluator.names.qualified(call.func) or ""
        return name.startswith((*_OF_MODULES, "builtins.")) and identifier(call.func) != "Parameter"
