"""What the classes of a file do when their models compute: whether they differentiate, also by their parts."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.entry_points import has_layers
from torchlint.semantics.values import Value
from torchlint.syntax.calls import method_call
from torchlint.syntax.remembered import remembered

AUTOGRAD = (
    *("torch.autograd.grad", "torch.autograd.backward", "torch.autograd.functional.", "torch.autograd.forward_ad."),
    *("torch.func.", "torch.enable_grad"),
)
"""What differentiates, or switches gradients on."""

_COMPUTE = ("torch.", "torchvision.", "builtins.", "math.", "numpy.", "einops.", "collections.", "tqdm.", "time.")
_BASES = ("torch.nn.", "builtins.object")


class ModelClasses:
    """Looks into them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def differentiate(self, model: Value) -> bool:
        """Return whether a model of the file differentiates while it computes, or whether one that may be it does."""
        made = model.definition
        if not isinstance(made, cst.ClassDef) or self._runs_others(made):
            return self._some_model_differentiates or (isinstance(made, cst.ClassDef) and self.of_class(made))
        return any(map(self.of_class, self._behind(made)))

    @cached_property
    def _some_model_differentiates(self) -> bool:
        """Whether the forward pass of a class of the file computes gradients, other than of models it is given."""
        forwards = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == "forward")
        return any(self.of_class(each) and not self._has_no_parts(each) for each in forwards)

    def _has_no_parts(self, forward: cst.FunctionDef) -> bool:
        """Whether a class is no model itself: it makes no layers, and runs nothing that its object holds."""
        owner = self._evaluator.definitions.owner(forward)
        if owner is None or set(self._evaluator.definitions.ancestry(owner)) != {"torch.nn.Module"}:
            return False
        return not has_layers(owner, self._evaluator) and not self._runs_held(owner)

    def _runs_held(self, owner: cst.ClassDef) -> list[cst.Attribute]:
        """The attributes of its object that a class calls, and are none of its methods."""
        definitions = self._evaluator.definitions
        called = (call.func for call in self._tree.below(owner, cst.Call) if isinstance(call.func, cst.Attribute))
        own = (f for f in called if isinstance(f.value, cst.Name) and definitions.receiver(f.value) is owner)
        return [function for function in own if definitions.method(owner, function.attr.value) is None]

    def _runs_others(self, made: cst.ClassDef) -> bool:
        """Whether a class runs what its object was given: another model of the file, for all that is known."""
        held = (v for run in self._runs_held(made) for v in self._evaluator.held_by(run))
        names = (value for value in held if isinstance(value, cst.Name))
        bound = (binding for name in names for binding in self._evaluator.flow.definitions(name))
        return any(binding.kind is BindingKind.PARAMETER for binding in bound)

    @remembered
    def _behind(self, made: cst.ClassDef | cst.FunctionDef) -> list[cst.ClassDef | cst.FunctionDef]:
        """A class with all classes and functions of the file that its objects may be of or that they may run."""
        definitions = self._evaluator.definitions
        found: list[cst.ClassDef | cst.FunctionDef] = [made]
        found += [c for c in self._tree.nodes(cst.ClassDef) if c is not made and made in definitions.family(c)]
        for each in found:
            bases = definitions.bases(each) if isinstance(each, cst.ClassDef) else []
            named = [definitions.definition(name) for name in self._tree.below(each, cst.Name)]
            for one in (*bases, *named):
                if isinstance(one, (cst.ClassDef, cst.FunctionDef)) and all(one is not other for other in found):
                    found.append(one)
        return found

    def of_class(self, node: cst.ClassDef | cst.FunctionDef) -> bool:
        """Return whether a class or one of its methods computes gradients; a backward pass counts in a forward pass."""
        calls = self._tree.below(node, cst.Call)
        if any((self._evaluator.names.qualified(inner.func) or "").startswith(AUTOGRAD) for inner in calls):
            return True
        passes = (inner for inner in calls if method_call(inner, "backward") is not None)
        around = (self._tree.enclosing(inner, cst.FunctionDef) for inner in passes)
        return any(method is not None and method.name.value in ("forward", "__call__") for method in around)

    @remembered
    def compute_plainly(self, made: cst.ClassDef) -> bool:
        """Return whether the file shows all that a model runs, and nothing of that differentiates."""
        behind = self._behind(made)
        if any(map(self.of_class, behind)):
            return False
        return all(self._shows_parts(each) for each in behind if isinstance(each, cst.ClassDef)) and all(
            self.is_plain(call) for each in behind for call in self._tree.below(each, cst.Call)
        )

    def _shows_parts(self, made: cst.ClassDef) -> bool:
        """Whether a class derives from modules of torch only, and the file shows all parts that it runs."""
        others = (a.value for a in made.bases if self._evaluator.definitions.definition(a.value) is None)
        if not all((self._evaluator.names.qualified(base) or "").startswith(_BASES) for base in others):
            return False
        parts = [self._evaluator.held_by(run) for run in self._runs_held(made)]
        return all(held and all(isinstance(value, cst.Call) for value in held) for held in parts)

    def is_plain(self, call: cst.Call) -> bool:
        """Return whether a call computes values: by torch and the like, as a method, by what the file shows."""
        name = self._evaluator.names.qualified(call.func)
        if name is not None and not name.startswith(_COMPUTE):
            return False
        if name is not None:
            return not name.startswith(AUTOGRAD)
        made = self._evaluator.definitions.definition(call.func)
        if isinstance(made, cst.FunctionDef):
            return not any(map(self.of_class, self._behind(made)))
        if isinstance(made, cst.ClassDef) or isinstance(call.func, cst.Attribute):
            return True
        bindings = self._evaluator.flow.definitions(call.func) if isinstance(call.func, cst.Name) else []
        return bool(bindings) and all(binding.kind is not BindingKind.PARAMETER for binding in bindings)
