"""What a routine runs besides its model that may need gradients: what it is handed, tools that differentiate."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.evaluation.held_functions import HeldFunctions
from torchlint.semantics.evaluation.other_files import explainers, learns_by_step, makers, takes_no_pass
from torchlint.semantics.training.training_code import TrainingCode
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.remembered import remembered

_DIFFERENTIATES = ("torch.autograd.grad", "torch.autograd.backward", "torch.autograd.functional.")
# Libraries whose objects differentiate where they are called: maps of what a model looks at, attacks.
_TOOLS = (
    *("pytorch_grad_cam.", "torchcam.", "captum.", "zennit.", "shap.", "lime."),
    *("torchattacks.", "advertorch.", "foolbox.", "autoattack.", "art.attacks."),
)
_ACTIVATION_MAP = re.compile(r"(^|_)(x?grad|score|eigen|layer|full|smooth|class)?_?cams?(_|$)")
# What trains or fits something by what it is given, and objects that do.
_LEARNS = re.compile(r"(^|_)(probe|probing|calibrate|finetune|adapt)(_|$)")
_LEARNER = re.compile(r"(Probe|Prober|Learner)\w*$")
_MAX_FUNCTIONS = 30
"""How many functions of the file are looked at: more than a routine calls."""


class OtherPasses:
    """Answers whether a routine may run such a pass."""

    def __init__(self, evaluator: Evaluator, training_code: TrainingCode, gradient_uses: GradientUses) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._training_code = training_code
        self._gradient_uses = gradient_uses
        self._held = HeldFunctions(evaluator)

    @remembered
    def run_by(self, function: cst.FunctionDef) -> bool:
        """Return whether something that a function calls computes gradients, or may do so out of sight."""
        if self._training_code.may_train(function.body) or self._gradient_uses.of_calls(function):
            return True
        calls = self._tree.below(function.body, cst.Call)
        if any(self._is_tool(c) or self._is_handed_model(c) or self._may_learn(c) for c in calls):
            return True
        return self._differentiate(calls)

    def _differentiate(self, calls: Iterable[cst.Call]) -> bool:
        """Whether calls, or functions of the file behind them, compute gradients without switching them on."""
        waiting, seen = list(calls), set[int]()
        for call in waiting:
            for code in (*self._held.behind(call.func), *self._held.handed_to(call)):
                if len(seen) > _MAX_FUNCTIONS:
                    return True  # one of those that are left may
                if id(code) not in seen:
                    seen.add(id(code))
                    waiting += self._tree.below(code.body, cst.Call)
            name = self._evaluator.names.qualified(call.func) or ""
            is_pass = method_call(call, "backward", "manual_backward") is not None or name.startswith(_DIFFERENTIATES)
            if is_pass and not self._evaluator.gradients.wanted(call):
                return True
        return False

    def _is_tool(self, call: cst.Call) -> bool:
        """Whether a call runs an object of a library that differentiates, or what is called after one."""
        if _ACTIVATION_MAP.search(identifier(call.func).lower()):
            return self._evaluator.value(call.func).kind is not Kind.MODULE
        if (self._evaluator.names.qualified(call.func) or "").startswith(_TOOLS):
            return True
        held = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        bindings = self._evaluator.flow.definitions(held) if isinstance(held, cst.Name) else []
        made = (b.value.func for b in bindings if isinstance(b.value, cst.Call) and not b.path)
        return any((self._evaluator.names.qualified(f) or "").startswith(_TOOLS) for f in made)

    def _may_learn(self, call: cst.Call) -> bool:
        """Whether something of another file may train by what it is given, or look into a model it was made for."""
        if self._held.behind(call.func) or takes_no_pass(call.func, self._evaluator):
            return False
        if (call.args and _LEARNS.search(identifier(call.func))) or learns_by_step(call, self._evaluator):
            return True
        held = call.func.value if isinstance(call.func, cst.Attribute) else None
        if held is None:
            return False
        if any(_LEARNER.search(identifier(maker.func)) for maker in makers(held, self._evaluator)):
            return True
        return any(self._is_model(a.value) for each in explainers(held, self._evaluator) for a in each.args)

    def _is_handed_model(self, call: cst.Call) -> bool:
        """Whether a call runs what the routine was handed, of which nothing is known, and gives it a model to run."""
        if not self._is_open(call.func):
            return False
        if any(self._is_trainer(argument.value) for argument in call.args):
            return True
        if isinstance(call.func, cst.Attribute) and len(call.args) == 1:
            return False  # `accelerator.unwrap_model(model)` gives it nothing to run on
        return any(self._is_model(a.value) for a in call.args) and not self._held.behind(call.func)

    def _is_open(self, called: cst.BaseExpression) -> bool:
        """Whether it is a parameter or an element of something, or a method of one: other files may choose it."""
        while isinstance(called, cst.Attribute):
            called = called.value
        if method_call(called, "get") is not None or isinstance(called, cst.Subscript):
            is_open = True
        else:
            bindings = self._evaluator.flow.definitions(called) if isinstance(called, cst.Name) else []
            is_open = any(b.kind in (BindingKind.PARAMETER, BindingKind.ITERATION) for b in bindings)
            is_open &= not isinstance(called, cst.Name) or self._evaluator.definitions.receiver(called) is None
        return is_open and self._evaluator.value(called).kind in (Kind.UNKNOWN, Kind.FUNCTION)

    def _is_model(self, argument: cst.BaseExpression) -> bool:
        value = self._evaluator.value(argument)
        return value.kind is Kind.MODULE and value.origin is not Origin.LOSS

    def _is_trainer(self, argument: cst.BaseExpression) -> bool:
        """Whether an argument is the object around a routine, which has methods that train."""
        owner = self._evaluator.definitions.receiver(argument) if isinstance(argument, cst.Name) else None
        return owner is not None and self._training_code.may_train(owner)
