"""Which values gradients are computed from."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.differentiated import Differentiated, starts
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.grad_mode import FRAMEWORK_STEP_METHODS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import element_at, identifier, literal, method_call
from torchlint.syntax.walk import children

_GRADIENT_FUNCTIONS = frozenset(("torch.autograd.backward", "torch.autograd.grad"))


# A variable: its scope and name, 0 and the name for an attribute; of a name that a statement binds only that binding.
_Key = tuple[int, str]
_Assignment = tuple[set[_Key], cst.CSTNode]


class Backward:
    """Follows values to the backward passes of a file."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._upstream = Differentiated(evaluator)
        self._calls: list[cst.Call] | None = None
        self._assigned: dict[int, list[_Assignment]] = {}
        self._returned: list[tuple[cst.FunctionDef, cst.BaseExpression]] | None = None

    def passes(self, root: cst.CSTNode | None = None) -> list[cst.Call]:
        """Return the calls that compute gradients, those below ``root`` if one is given."""
        if self._calls is None:
            self._calls = [call for call in self._tree.nodes(cst.Call) if self._is_pass(call)]
        if root is None:
            return self._calls
        return [call for call in self._calls if any(ancestor is root for ancestor in self._tree.ancestors(call))]

    def _is_pass(self, call: cst.Call) -> bool:
        name = identifier(call.func)
        if isinstance(call.func, cst.Attribute):
            if name in ("backward", "manual_backward"):
                return True
            if name not in ("grad", "backward") and not name.endswith("scaler"):
                return False
        if name.endswith("scaler"):  # `loss_scaler(loss, optimizer)` of apex and timm
            return bool(call.args) and self._evaluator.value(call.func).kind is Kind.SCALER
        return self._evaluator.names.qualified(call.func) in _GRADIENT_FUNCTIONS

    def reaches(self, variable: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a variable (``x``, ``self.x``, ``x[i]``) flows into a backward pass below ``root``.

        The function of the file that it is given to may run that pass.
        """
        reached = {self._key(variable)}
        for _ in range(4):
            before = len(reached)
            for targets, value in self._assignments(root):
                if not targets <= reached and self._mentions(value, reached):
                    reached |= targets
            if len(reached) == before:
                break
        handed = [*self.passes(root), *self._handed_over(root)]
        if any(self._mentions(expression, reached) for expression in handed):
            return True
        variables = {key for key in reached if key[0]}
        return any(self._mentions(call, variables) for call in self.passes())

    def differentiates(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a value below ``root`` is part of what a backward pass there differentiates."""
        return self._upstream.includes(value, root, self._losses(root)) or self._is_result_of_step(value)

    def _losses(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """The values from which the backward passes below ``root`` start."""
        return [*(start for call in self.passes(root) for start in starts(call)), *self._handed_over(root)]

    def _handed_over(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """The losses that step methods below ``root``, or ``root`` itself, return to a framework."""
        return [
            loss
            for function, loss in self.framework_losses()
            if function is root or any(ancestor is root for ancestor in self._tree.ancestors(function))
        ]

    def framework_losses(self) -> list[tuple[cst.FunctionDef, cst.BaseExpression]]:
        """Return what Lightning's ``training_step`` and the ``compute_loss`` of Hugging Face's trainers return."""
        if self._returned is None:
            self._returned = [
                (function, loss)
                for function in self._tree.nodes(cst.FunctionDef)
                if function.name.value in FRAMEWORK_STEP_METHODS and self._is_step_method(function)
                for statement in self._tree.nodes(cst.Return)
                if self._belongs(statement, function) and statement.value is not None
                for loss in _loss_of(statement.value)
            ]
        return self._returned

    def _is_step_method(self, function: cst.FunctionDef) -> bool:
        owner = self._evaluator.definitions.owner(function)
        base = FRAMEWORK_STEP_METHODS[function.name.value]
        return owner is not None and any(base in name for name in self._evaluator.definitions.ancestry(owner))

    def _is_result_of_step(self, value: cst.BaseExpression) -> bool:
        """Whether a value is what a function of the file returns after it has differentiated just that."""
        call: cst.BaseExpression = value
        path: tuple[int, ...] = ()
        if isinstance(value, cst.Name):
            definitions = self._evaluator.flow.definitions(value)
            if (
                len(definitions) != 1
                or definitions[0].kind is not BindingKind.ASSIGNMENT
                or definitions[0].value is None
            ):
                return False
            call, path = definitions[0].value, definitions[0].path
        if not isinstance(call, cst.Call):
            return False
        function = self._evaluator.definitions.definition(call.func) or self._method(call.func)
        if not isinstance(function, cst.FunctionDef):
            return False
        losses = self._losses(function)
        returned = [element_at(r.value, path) for r in self._tree.nodes(cst.Return) if self._belongs(r, function)]
        return bool(losses and returned) and all(
            part is not None and self._upstream.includes(part, function, losses) for part in returned
        )

    def _method(self, called: cst.BaseExpression) -> cst.FunctionDef | None:
        """The method of a class of the file that ``agent.learn`` is."""
        if not isinstance(called, cst.Attribute):
            return None
        holder = self._evaluator.value(called.value)
        owner = holder.definition if holder.kind is not Kind.CLASS else None
        if not isinstance(owner, cst.ClassDef) or self._is_overridden(owner, called.attr.value):
            return None
        return self._evaluator.definitions.method(owner, called.attr.value)

    def _is_overridden(self, owner: cst.ClassDef, name: str) -> bool:
        """Whether a class of the file that derives from another has a method of its own by this name."""
        definitions = self._evaluator.definitions
        derived = (c for c in self._tree.nodes(cst.ClassDef) if any(base is owner for base in definitions.bases(c)))
        return any(definitions.method(each, name) is not definitions.method(owner, name) for each in derived)

    def _belongs(self, node: cst.CSTNode, function: cst.FunctionDef) -> bool:
        return self._evaluator.definitions.enclosing_function(node) is function

    def _assignments(self, root: cst.CSTNode) -> list[_Assignment]:
        if id(root) not in self._assigned:
            self._assigned[id(root)] = list(self._find_assignments(root))
        return self._assigned[id(root)]

    def _find_assignments(self, root: cst.CSTNode) -> Iterator[_Assignment]:
        for node in self._tree.descendants(root):
            if isinstance(node, cst.Assign):
                yield {key for t in node.targets for key in self._bound(t.target)}, node.value
            elif isinstance(node, cst.AugAssign):
                yield self._keys(node.target), node.value
            elif isinstance(node, cst.For):
                yield self._keys(node.target), node.iter
            elif isinstance(node, cst.WithItem) and node.asname is not None:
                yield self._keys(node.asname.name), node.item
            elif isinstance(node, cst.Return) and node.value is not None:
                function = self._evaluator.definitions.enclosing_function(node)
                if function is not None:
                    yield {self._called_by(function)}, node.value
            elif isinstance(node, cst.Call):
                yield from self._passed(node)

    def _passed(self, call: cst.Call) -> Iterator[_Assignment]:
        """Yield what a call puts into a container, and what it gives to the parameters of a function of the file."""
        method = method_call(call, "append", "extend", "add")
        if method is not None:
            yield from (({self._key(method.value)}, argument.value) for argument in call.args)
        function = self._evaluator.definitions.definition(call.func) if call.args else None
        if isinstance(function, cst.FunctionDef):
            given = {self._key(parameter.name) for parameter in parameters(function)}
            for argument in call.args:
                named = {key for key in given if argument.keyword is None or key[1] == argument.keyword.value}
                yield named or given, argument.value

    def _called_by(self, function: cst.FunctionDef) -> _Key:
        """The key of what a call of a function gives."""
        is_method = self._evaluator.definitions.owner(function) is not None
        return (0, function.name.value) if is_method else self._key(function.name)

    def _keys(self, target: cst.BaseExpression) -> set[_Key]:
        if isinstance(target, (cst.Tuple, cst.List)):
            return {key for element in target.elements for key in self._keys(element.value)}
        return {self._key(target)}

    def _bound(self, target: cst.BaseExpression) -> set[_Key]:
        """The keys of what an assignment binds: a name counts only where this binding of it can be read."""
        if isinstance(target, (cst.Tuple, cst.List)):
            return {key for element in target.elements for key in self._bound(element.value)}
        return {(id(target), target.value)} if isinstance(target, cst.Name) else {self._key(target)}

    def _is_one_of(self, name: cst.Name, keys: set[_Key]) -> bool:
        """Whether a name stands for one of some variables, or reads one of their bindings."""
        if self._key(name) in keys:
            return True
        return any((id(binding.node), name.value) in keys for binding in self._evaluator.flow.definitions(name))

    def _key(self, variable: cst.CSTNode) -> _Key:
        """A variable by the scope that binds it, an attribute by its name, ``x[i]`` as ``x``."""
        while isinstance(variable, cst.Subscript):
            variable = variable.value
        if not isinstance(variable, cst.Name):
            return 0, identifier(variable)
        scopes = self._evaluator.scopes
        return id(scopes.deciding(variable.value, scopes.scope(variable))), variable.value

    def _mentions(self, node: cst.CSTNode, keys: set[_Key]) -> bool:
        """Whether one of some variables is read in an expression; not through ``.item()`` or ``.detach()``."""
        names = {name for _, name in keys}
        stack = [node]
        while stack:
            current = stack.pop()
            if method_call(current, "item", "detach", "tolist") is not None:
                continue
            if isinstance(current, cst.Name):
                if current.value in names and self._is_one_of(current, keys):
                    return True
            elif isinstance(current, cst.Attribute):
                if (0, current.attr.value) in keys:
                    return True
                stack.append(current.value)
            elif isinstance(current, cst.Arg):
                stack.append(current.value)
            else:
                stack += children(current)
        return False


def _loss_of(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the loss in what a step method returns: the value itself, ``{"loss": loss}``, ``(loss, outputs)``."""
    if isinstance(value, cst.Dict):
        elements = (element for element in value.elements if isinstance(element, cst.DictElement))
        yield from (element.value for element in elements if literal(element.key) == "loss")
    elif isinstance(value, cst.IfExp):
        yield from (*_loss_of(value.body), *_loss_of(value.orelse))
    elif isinstance(value, cst.Tuple):
        yield from (element.value for element in value.elements[:1])
    else:
        yield value
