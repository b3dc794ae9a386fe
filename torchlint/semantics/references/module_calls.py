"""What tells whether an object is a module of torch, and whether calling it is the same as calling its ``forward``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate import type_hints
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import element_at, identifier, literal, method_call
from torchlint.syntax.canonical import is_same

# What only modules of torch have, of all that has a `forward`.
_OF_TORCH = frozenset("state_dict load_state_dict zero_grad requires_grad_ named_parameters named_modules half".split())
# What networks written in NumPy, wrappers around several networks, and models of other libraries have.
_OF_OTHERS = frozenset("backward set_input setup setInput optimize_parameters fit".split())
_REGISTERS = ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_hook")
_TAKES_MODULES = ("DistributedDataParallel", "DDP", "DataParallel", "compile", "prepare")
_HOOKED = frozenset(("module", "mod", "m", "layer"))
_RESULTS = frozenset(("output", "outputs", "out", "result"))
_CALLED_OTHERWISE = ("gpytorch", "botorch", "pyro")


class ModuleCalls:
    """Asks about the object whose ``forward`` is called."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def is_of_torch(self, receiver: cst.BaseExpression, value: Value) -> bool:
        """Return whether an object is certainly a module of torch: by its class, or by what the file does with it."""
        known = value.definition is not None or (value.name or "").startswith("torch.")
        if known or value.evidence is Evidence.PROVEN:
            return True
        if isinstance(receiver, cst.Subscript):
            return self.is_of_torch(receiver.value, self._evaluator.value(receiver.value))
        if not self._evaluator.scopes.imports("torch"):
            return False
        if isinstance(receiver, cst.Name) and self._is_declared(receiver):
            return True
        if self.is_kept(receiver):
            return True
        attributes = self._evaluator.usage.attributes(receiver)
        return bool(attributes & _OF_TORCH or self._is_moved(receiver)) and not attributes & _OF_OTHERS

    def differs(self, call: cst.Call, receiver: cst.BaseExpression) -> bool:
        """Return whether a function runs an object on the same in both ways, or calls have a meaning of their own."""
        if any(map(self._evaluator.scopes.imports, _CALLED_OTHERWISE)):
            return True
        function = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        others = (other for other in self._tree.below(function, cst.Call) if is_same(other.func, receiver))
        return any(_takes_same(other, call) for other in others)

    def is_in_hook(self, call: cst.Call) -> bool:
        """Return whether a call stands in a hook of a module, where calling the module would run the hook again."""
        return any(isinstance(node, cst.FunctionDef) and self._is_hook(node) for node in self._tree.ancestors(call))

    def _is_declared(self, name: cst.Name) -> bool:
        """Whether a name is a parameter that is annotated as a module, or goes through a container that is one."""
        found = []
        for binding in self._evaluator.flow.definitions(name):
            parameter = self._tree.parent(binding.node)
            if binding.kind is BindingKind.PARAMETER and isinstance(parameter, cst.Param):
                found.append(type_hints.of_parameter(parameter, self._evaluator).kind is Kind.MODULE)
            elif binding.kind is BindingKind.ITERATION and binding.value is not None:
                container = method_call(binding.value, "values", "items", "children", "modules")
                root = container.value if container is not None else binding.value
                found.append(isinstance(root, cst.Name) and self._is_declared(root))
            else:
                return False
        return bool(found) and all(found)

    def is_kept(self, receiver: cst.BaseExpression) -> bool:
        """Return whether a class keeps there a parameter that is declared a module, or what it sets to evaluate."""
        if not isinstance(receiver, cst.Attribute) or not isinstance(receiver.value, cst.Name):
            return False
        owner = self._evaluator.definitions.receiver(receiver.value)
        bindings = self._evaluator.definitions.attribute(owner, receiver.attr.value) if owner is not None else []
        made = [element_at(binding.value, binding.path) for binding in bindings]
        return bool(made) and all(map(self._is_told, made))

    def _is_told(self, made: cst.BaseExpression | None) -> bool:
        is_set = method_call(made, "eval") is not None
        return is_set or (isinstance(made, cst.Name) and self._is_declared(made))

    def _is_hook(self, function: cst.FunctionDef) -> bool:
        names = [parameter.name.value for parameter in parameters(function)]
        if len(names) > 1 and names[-1] in _RESULTS and not _HOOKED.isdisjoint(names[:2]):
            return True
        registered = (c for c in self._tree.calls_named(*_REGISTERS) if method_call(c) is not None)
        return any(identifier(a.value) == function.name.value for call in registered for a in call.args)

    def _is_moved(self, receiver: cst.BaseExpression) -> bool:
        """Whether the file moves an object to a device, or hands it or its parameters to what takes modules."""
        for call in self._tree.nodes(cst.Call):
            owner = method_call(call, "parameters")
            if owner is not None and is_same(owner.value, receiver):
                taken = self._tree.enclosing(call, cst.Call)
                if taken is not None and (self._evaluator.names.qualified(taken.func) or "").startswith("torch."):
                    return True
            moved = method_call(call, "to", "cuda", "train", "eval", "share_memory")
            if moved is not None and is_same(moved.value, receiver):
                if moved.attr.value in ("cuda", "share_memory") or (moved.attr.value == "to" and call.args):
                    return True
                if moved.attr.value == "train" and [literal(a.value) for a in call.args] in ([True], [False]):
                    return True
            given = call.args if identifier(call.func) in _TAKES_MODULES else ()
            if any(is_same(argument.value, receiver) for argument in given):
                return True
        return False


def _takes_same(other: cst.Call, call: cst.Call) -> bool:
    """Return whether two calls are given the same first argument, or stars hide what they are given."""
    if not other.args or not call.args or other.args[0].star or call.args[0].star:
        return True
    return is_same(other.args[0].value, call.args[0].value)
