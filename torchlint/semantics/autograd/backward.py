"""Which values gradients are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from torchlint.semantics.autograd.differentiated import Differentiated, starts
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.grad_mode import FRAMEWORK_STEP_METHODS
from torchlint.semantics.evaluate.gradient_scalers import scales_and_steps
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import element_at, identifier, is_none, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import children

_GRADIENT_FUNCTIONS = frozenset(("torch.autograd.backward", "torch.autograd.grad"))


_ALL = "*"
"""The place in a path of whatever a dictionary holds."""

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
            if name != "grad" and not name.endswith("scaler"):
                return False
        if scales_and_steps(call, self._evaluator):
            return True
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
        if self._upstream.includes(value, root, self.losses(root)) or self._is_result_of_step(value):
            return True
        return isinstance(value, cst.Attribute) and self._is_loss_of(self._holder(value), value.attr.value)

    def losses(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return the values from which the backward passes below ``root`` start, or that it hands to a framework."""
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
        if isinstance(value, cst.BinaryOperation):
            return any(self._is_result_of_step(side) for side in _summands(value))
        call, path = self._made(value)
        function = self._evaluator.definitions.definition(call.func) or self._method(call) if call else None
        if not isinstance(function, cst.FunctionDef):
            return False
        losses = self.losses(function)
        returns = [r.value for r in self._tree.nodes(cst.Return) if self._belongs(r, function)]
        returned = [given for given in returns if given is not None and not is_none(given)]
        parts = [part for given in returned for part in self._parts_at(given, path)]
        if len(returned) < len(returns) and not self._is_tested(value):
            return False
        owner = self._evaluator.definitions.owner(function)
        return bool(parts) and all(
            part is not None
            and (
                self._upstream.includes(part, function, losses)
                or (isinstance(part, cst.Attribute) and self._is_loss_of(owner, part.attr.value))
            )
            for part in parts
        )

    def _is_loss_of(self, owner: cst.ClassDef | None, name: str) -> bool:
        """Whether methods of a class differentiate an attribute of its objects: ``self.loss_G.backward()``."""
        bound = self._evaluator.definitions.attribute(owner, name) if owner is not None else []
        held = next((each.node for each in bound if isinstance(each.node, cst.Attribute)), None)
        methods = {id(f): f for f in map(self._evaluator.definitions.enclosing_function, self.passes()) if f}
        if held is None or any(self._upstream.detaches(each.value) for each in bound if each.value is not None):
            return False
        return any(
            self._evaluator.definitions.owner(method) is owner
            and self._upstream.includes(held, method, self.losses(method))
            for method in methods.values()
        )

    def _holder(self, value: cst.Attribute) -> cst.ClassDef | None:
        """The class of the file whose object an attribute is read from, other than by a method of its own."""
        holder = self._evaluator.value(value.value)
        if isinstance(holder.definition, cst.ClassDef):
            return holder.definition
        if holder.evidence > Evidence.NAMED and holder.known:
            return None
        binds = self._evaluator.definitions.attribute
        owners = [c for c in self._tree.nodes(cst.ClassDef) if binds(c, value.attr.value)]
        return owners[0] if len(owners) == 1 else None

    def _parts_at(self, given: cst.BaseExpression, path: tuple[int | str, ...]) -> list[cst.BaseExpression | None]:
        """The parts of what a function returns on a path; None for one that is not written out there."""
        if not isinstance(given, cst.Name) or len(path) != 1 or not isinstance(path[0], str):
            return [_part_at(given, path)]
        definitions = self._evaluator.flow.definitions(given)
        made = definitions[0].value if len(definitions) == 1 and not definitions[0].path else None
        if not isinstance(made, cst.Dict):
            return [None]
        found: dict[object, cst.BaseExpression] = {}
        for element in made.elements:
            found[literal(element.key) if isinstance(element, cst.DictElement) else None] = element.value
        function = self._evaluator.definitions.enclosing_function(given) or self._tree.module
        for place in self._tree.below(function, cst.Subscript):  # where it is read, as a part of the loss, or set
            if is_same(place.value, given):
                target, index = self._tree.parent(place), place.slice[0].slice
                statement = self._tree.parent(target) if isinstance(target, cst.AssignTarget) else None
                key = literal(index.value) if isinstance(index, cst.Index) else None
                found[key] = statement.value if isinstance(statement, cst.Assign) else place
        if None in found:
            return [None]
        return [*found.values()] if path[0] == _ALL else [found.get(path[0])]

    def _made(self, value: cst.BaseExpression) -> tuple[cst.Call | None, tuple[int | str, ...]]:
        """The call that gives a value, and which part of its result it is: ``step(x)``, ``step(x)["loss"]``."""
        if isinstance(value, cst.Subscript):
            call, path = self._made(value.value)
            index = value.slice[0].slice
            key = literal(index.value) if isinstance(index, cst.Index) and len(value.slice) == 1 else None
            return (call, (*path, key)) if isinstance(key, (int, str)) else (None, ())
        if not isinstance(value, cst.Name):
            return (value if isinstance(value, cst.Call) else None), ()
        items = self._upstream.iterated(value)
        if isinstance(items, cst.Name):
            call, path = self._made(items)
            return call, (*path, _ALL)
        definitions = self._evaluator.flow.definitions(value)
        if len(definitions) != 1 or definitions[0].kind is not BindingKind.ASSIGNMENT:
            return None, ()
        given = definitions[0].value
        return (given if isinstance(given, cst.Call) else None), definitions[0].path

    def _is_tested(self, value: cst.BaseExpression) -> bool:
        """Whether a variable is read where a test of it holds: ``if loss is not None: losses.append(loss)``."""
        around = list(self._tree.ancestors(value))
        branches = (a for child, a in pairwise(around) if isinstance(a, cst.If) and child is a.body)
        return any(is_same(value, node) for branch in branches for node in self._tree.descendants(branch.test))

    def _method(self, call: cst.Call) -> cst.FunctionDef | None:
        """The method of a class of the file that ``agent.learn()`` runs."""
        if not isinstance(call.func, cst.Attribute):
            return None
        name = call.func.attr.value
        holder = self._evaluator.value(call.func.value)
        owner = holder.definition if holder.kind is not Kind.CLASS else None
        if owner is None:
            named = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == name)
            callers = self._evaluator.callers
            method = next((f for f in named if any(call is each for each in callers(f))), None)
            owner = self._evaluator.definitions.owner(method) if method is not None else None
        if not isinstance(owner, cst.ClassDef) or self._is_overridden(owner, name):
            return None
        return self._evaluator.definitions.method(owner, name)

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
                yield self._bound(node.target), node.target
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
            for index, argument in enumerate(call.args):
                yield {self._key(name) for name in self._given_to(function, call, index)}, argument.value

    def _given_to(self, function: cst.FunctionDef, call: cst.Call, index: int) -> list[cst.Name]:
        """The parameters that an argument of a call may be given to: one, if what the call is bound to is known."""
        argument, names = call.args[index], [parameter.name for parameter in parameters(function)]
        if argument.keyword is not None:
            return [name for name in names if name.value == argument.keyword.value] or names
        if any(given.star for given in call.args[: index + 1]):
            return names
        is_method = self._evaluator.definitions.owner(function) is not None
        return names[index : index + 1 + is_method] or names  # `C.step(c, x)` and `c.step(x)` look alike

    def _called_by(self, function: cst.FunctionDef) -> _Key:
        """The key of what a call of a function gives; of a property it is that of an attribute."""
        if self._evaluator.definitions.owner(function) is None:
            return self._key(function.name)
        is_property = any(identifier(decorator.decorator).endswith("property") for decorator in function.decorators)
        return 0, function.name.value + "()" * (not is_property)

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
                if not keys.isdisjoint(((0, current.attr.value), (0, f"{current.attr.value}()"))):
                    return True
                stack.append(current.value)
            elif isinstance(current, cst.Call) and isinstance(current.func, cst.Attribute):
                if (0, f"{current.func.attr.value}()") in keys:  # a field of the same name is something else
                    return True
                stack += (current.func.value, *current.args)
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


def _summands(operation: cst.BinaryOperation) -> Iterator[cst.BaseExpression]:
    """Yield the sides of an operation that carry their graph into its result."""
    if isinstance(operation.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)):
        yield operation.left
        if not isinstance(operation.operator, cst.Divide):
            yield operation.right


def _part_at(value: cst.BaseExpression, path: tuple[int | str, ...]) -> cst.BaseExpression | None:
    """Return the part of what is written as a tuple or a dictionary, None where it is not written so."""
    part: cst.BaseExpression | None = value
    for step in path:
        if part is None:
            return None
        if isinstance(step, int):
            part = element_at(part, (step,))
        else:
            pairs = [e for e in part.elements if isinstance(e, cst.DictElement)] if isinstance(part, cst.Dict) else []
            part = next((pair.value for pair in pairs if literal(pair.key) == step), None)
    return part
