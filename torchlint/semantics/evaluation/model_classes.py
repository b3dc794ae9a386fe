"""What the classes of a file do when their models compute: whether they differentiate, also by their parts."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import is_none, literal, method_call
from torchlint.syntax.remembered import remembered

AUTOGRAD = (
    *("torch.autograd.grad", "torch.autograd.backward", "torch.autograd.functional.", "torch.autograd.forward_ad."),
    *("torch.func.", "torch.enable_grad"),
)
"""What differentiates, or switches gradients on."""

_COMPUTE = ("torch.", "torchvision.", "builtins.", "math.", "numpy.", "einops.", "collections.", "tqdm.", "time.")
_UNSEEN = ("torch.jit.", "torch.load", "torch.hub.", "torch.package.", "torch.export.")
_LOADED = ("torchvision.models.", "timm.create_model", "timm.models.")
_CONTAINERS = tuple(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict", "DataParallel"))
_PLAIN = frozenset((Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.TENSOR, Kind.DTYPE, Kind.DEVICE))
_FORWARD = ("forward", "__call__")
_REGISTER = ("add_module", "register_module")
_MAX_DEPTH = 6
_BASES = ("torch.nn.", "builtins.object")


class ModelClasses:
    """Looks into them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def may_differentiate(self, model: Value, method: str) -> bool:
        """Return whether a model of the file differentiates in a method, or whether one that may be it does."""
        made = model.definition
        if not isinstance(made, cst.ClassDef):
            return self._some_model_differentiates
        reachable = self._reachable(made)
        if any(map(self.computes_gradients, self._run_by(made, method))):
            return True
        is_shown = all(self._shows_all_parts(each) for each in reachable if isinstance(each, cst.ClassDef))
        return not is_shown and self._some_model_differentiates

    @cached_property
    def _some_model_differentiates(self) -> bool:
        """Whether the forward pass of a class of the file computes gradients, other than of models it is given."""
        forwards = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == "forward")
        return any(self.computes_gradients(each) and not self._holds_only_values(each) for each in forwards)

    def _holds_only_values(self, forward: cst.FunctionDef) -> bool:
        """Whether a class is no model itself: its objects hold nothing but numbers."""
        owner = self._evaluator.definitions.owner(forward)
        if owner is None or set(self._evaluator.definitions.ancestry(owner)) != {"torch.nn.Module"}:
            return False
        if any(method_call(call, *_REGISTER) is not None for call in self._tree.below(owner, cst.Call)):
            return False
        return all(value is not None and self._is_plain_value(value) for _, value in self._attributes(owner))

    def _attributes(self, owner: cst.ClassDef) -> list[tuple[cst.Attribute, cst.BaseExpression | None]]:
        """What a class gives its objects, None for what is taken apart or counted."""
        found: list[tuple[cst.Attribute, cst.BaseExpression | None]] = []
        for target in self._tree.below(owner, cst.AssignTarget):
            statement, place = self._tree.parent(target), target.target
            parts = [place] if isinstance(place, cst.Attribute) else self._tree.below(place, cst.Attribute)
            value = statement.value if isinstance(statement, cst.Assign) and isinstance(place, cst.Attribute) else None
            found += [(part, value) for part in parts if self._is_own(part)]
        annotated = ((each.target, each.value) for each in self._tree.below(owner, cst.AnnAssign))
        found += [(part, made) for part, made in annotated if isinstance(part, cst.Attribute) and self._is_own(part)]
        return found

    def _is_own(self, attribute: cst.Attribute) -> bool:
        of = attribute.value
        return isinstance(of, cst.Name) and self._evaluator.definitions.receiver(of) is not None

    def _is_plain_value(self, value: cst.BaseExpression) -> bool:
        return literal(value) is not None or is_none(value) or self._evaluator.value(value).kind in _PLAIN

    def _run_attributes(self, owner: cst.ClassDef) -> set[str]:
        """The attributes that a class may run: called, gone over or handed on."""
        own = [each for each in self._tree.below(owner, cst.Attribute) if self._is_own(each)]
        return {each.attr.value for each in own if self._is_run(each)}

    def _is_run(self, attribute: cst.Attribute) -> bool:
        node: cst.CSTNode = attribute
        for ancestor in self._tree.ancestors(attribute):
            if isinstance(ancestor, (cst.For, cst.CompFor)):
                return node is ancestor.iter
            if isinstance(ancestor, cst.Call) and node is ancestor.func:
                return True
            if isinstance(ancestor, cst.Arg) and ancestor.value is attribute:
                return True
            if isinstance(ancestor, (cst.BaseStatement, cst.BaseSmallStatement, cst.BinaryOperation)):
                return False
            node = ancestor
        return False

    @remembered
    def _reachable(self, made: cst.ClassDef | cst.FunctionDef) -> list[cst.ClassDef | cst.FunctionDef]:
        """A class with all classes and functions of the file that its objects may be of or that they may run."""
        definitions = self._evaluator.definitions
        found: list[cst.ClassDef | cst.FunctionDef] = [made, *self._heirs.get(id(made), ())]
        seen = set(map(id, found))
        for each in found:
            bases = definitions.bases(each) if isinstance(each, cst.ClassDef) else []
            named = [definitions.definition(name) for name in self._tree.below(each, cst.Name)]
            for one in (*bases, *named):
                if isinstance(one, (cst.ClassDef, cst.FunctionDef)) and id(one) not in seen:
                    seen.add(id(one))
                    found.append(one)
        return found

    def _run_by(self, made: cst.ClassDef, method: str) -> list[cst.FunctionDef]:
        """The functions of the file that a method of a class may run, by the names that each of them speaks of.

        So a method for derivatives, which only others ask for, is left out: ``sdf.gradient(points)``.
        """
        definitions = self._evaluator.definitions
        classes = [each for each in self._reachable(made) if isinstance(each, cst.ClassDef)]
        starts = {method, "__init__", *_FORWARD}
        found = [one for each in classes for name, one in definitions.methods(each).items() if name in starts]
        seen = set(map(id, found))
        for function in found:
            named = [definitions.definition(name) for name in self._tree.below(function, cst.Name)]
            for attribute in self._tree.below(function, cst.Attribute):
                named += definitions.functions_by_name.get(attribute.attr.value, ())
            for one in named:
                if isinstance(one, cst.FunctionDef) and id(one) not in seen:
                    seen.add(id(one))
                    found.append(one)
        return found

    @cached_property
    def _heirs(self) -> dict[int, list[cst.ClassDef]]:
        """The classes of the file that derive from one of it."""
        found: dict[int, list[cst.ClassDef]] = {}
        for each in self._tree.nodes(cst.ClassDef):
            for base in self._evaluator.definitions.family(each)[1:] if each.bases else ():
                found.setdefault(id(base), []).append(each)
        return found

    @remembered
    def computes_gradients(self, node: cst.ClassDef | cst.FunctionDef) -> bool:
        """Return whether a class or one of its methods computes gradients; a backward pass counts in a forward pass."""
        calls = self._tree.below(node, cst.Call)
        if any((self._evaluator.names.qualified(inner.func) or "").startswith(AUTOGRAD) for inner in calls):
            return True
        if any(map(self._asks_for_graph, calls)):
            return True
        passes = (inner for inner in calls if method_call(inner, "backward") is not None)
        around = (self._tree.enclosing(inner, cst.FunctionDef) for inner in passes)
        if any(method is not None and method.name.value in _FORWARD for method in around):
            return True
        methods = [node] if isinstance(node, cst.FunctionDef) else self._evaluator.definitions.methods(node).values()
        return any(self._hands_to_pass(method) for method in methods if method.name.value in _FORWARD)

    def _hands_to_pass(self, forward: cst.FunctionDef) -> bool:
        """Whether a forward pass calls functions of the file, of no class, that take a backward pass: it adapts."""
        functions = [each for each in self._reachable(forward) if isinstance(each, cst.FunctionDef)]
        others = (each for each in functions if self._evaluator.definitions.owner(each) is None)
        calls = (call for each in others for call in self._tree.below(each.body, cst.Call))
        return any(method_call(call, "backward") is not None for call in calls)

    def _asks_for_graph(self, call: cst.Call) -> bool:
        """Whether a forward pass does to a tensor, in any case, what torch refuses without a graph: ``retain_grad``.

        Or computes something else where gradients are on.
        """
        if self._evaluator.names.qualified(call.func) == "torch.is_grad_enabled":
            return True
        if method_call(call, "register_hook", "retain_grad") is None:
            return False
        around = self._tree.enclosing(call, cst.If, cst.FunctionDef)
        return isinstance(around, cst.FunctionDef) and around.name.value == "forward"

    @remembered
    def never_differentiates(self, made: cst.ClassDef) -> bool:
        """Return whether the file shows all that a model runs, and nothing of that differentiates."""
        reachable = self._reachable(made)
        if any(map(self.computes_gradients, reachable)):
            return False
        return all(self._shows_all_parts(each) for each in reachable if isinstance(each, cst.ClassDef)) and all(
            self.only_computes(call) for each in reachable for call in self._tree.below(each, cst.Call)
        )

    @remembered
    def _shows_all_parts(self, made: cst.ClassDef) -> bool:
        """Whether a class derives from modules of torch only, and the file shows all parts that it may run."""
        others = (a.value for a in made.bases if self._evaluator.definitions.definition(a.value) is None)
        if not all((self._evaluator.names.qualified(base) or "").startswith(_BASES) for base in others):
            return False
        run = {name for each in self._evaluator.definitions.family(made) for name in self._run_attributes(each)}
        return all(
            value is not None and self._is_shown(value, 0)
            for place, value in self._attributes(made)
            if place.attr.value in run
        )

    def _is_shown(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether the file shows what something is: a number, a layer of torch, an object of its classes, a list."""
        if depth > _MAX_DEPTH or self._is_plain_value(value):
            return depth <= _MAX_DEPTH
        if isinstance(value, (cst.List, cst.Tuple)):
            return all(self._is_shown(element.value, depth + 1) for element in value.elements)
        if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
            return self._is_shown(value.elt, depth + 1)
        if isinstance(value, cst.Name):
            held = self._evaluator.held_by(value)
            return bool(held) and all(each is not None and self._is_shown(each, depth + 1) for each in held)
        if not isinstance(value, cst.Call):
            return False
        if isinstance(self._evaluator.definitions.definition(value.func), cst.ClassDef):
            return True
        name = self._evaluator.names.qualified(value.func) or ""
        if name.startswith(_LOADED):
            return True
        if name in _CONTAINERS and not value.args:
            return False  # what is put into it later
        modules = (a.value for a in value.args if name in _CONTAINERS or self._may_be_module(a.value))
        return name.startswith("torch.nn.") and all(self._is_shown(each, depth + 1) for each in modules)

    def _may_be_module(self, argument: cst.BaseExpression) -> bool:
        return self._evaluator.value(argument).kind is Kind.MODULE

    def only_computes(self, call: cst.Call) -> bool:
        """Return whether a call computes values: by torch and the like, as a method, by what the file shows."""
        name = self._evaluator.names.qualified(call.func)
        if name is not None and (not name.startswith(_COMPUTE) or name.startswith(_UNSEEN)):
            return False
        if name is not None:
            return not name.startswith(AUTOGRAD)
        made = self._evaluator.definitions.definition(call.func)
        if isinstance(made, cst.FunctionDef):
            return not any(map(self.computes_gradients, self._reachable(made)))
        if isinstance(made, cst.ClassDef) or isinstance(call.func, cst.Attribute):
            return True
        bindings = self._evaluator.flow.definitions(call.func) if isinstance(call.func, cst.Name) else []
        return bool(bindings) and all(binding.kind is not BindingKind.PARAMETER for binding in bindings)
