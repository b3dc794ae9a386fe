"""Methods by which a model is used once it is trained: ``inference``, beside its ``forward``."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.drawn_tokens import DrawnTokens
from torchlint.semantics.evaluation.entry_points import may_have_parameters, run_by_method
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.tables.container_methods import STORES
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.remembered import remembered

_INFERS = re.compile(r"^(inference|infer)$")
_GENERATES = re.compile(r"^(generate|sample)$")
PART = re.compile(
    r"(Encoder|Decoder|Layer|Block|Cell|Net|Head|Heads|Embedding|Attention|Predictor|Loss|Adaptor|Layers)$"
)
"""Parts of a model, whose method the model calls where it may have switched gradients off."""

# Parts whose own `inference` leaves gradients to the model that runs it, unlike that of a model that is wrapped.
_CODER = re.compile(r"(^|_)(en|de)coder$")
# What uses a trained model.
_USES = re.compile(r"(^|_)(eval|evaluate|valid|validate|test|predict|synthesi[sz]e|generate|demo|main)(_|$)")
# The parts of a distribution over a latent variable.
_MEAN = re.compile(r"(^|_)(mu|mean|loc)(_|$)")
_SPREAD = re.compile(r"(^|_)(log_?(var|std|sigma|scale)|sigma|std|var)(_|$)")
_FORWARD = ("forward", "__call__")
# Bases that call no method of their own accord which switches gradients off around it.
_BASES = ("torch.nn.", "builtins.object", "abc.", "typing.", "lightning.", "pytorch_lightning.")
_JOINS = ("torch.cat", "torch.concat", "torch.hstack")


class InferenceMethods:
    """Finds those that a model's users call."""

    def __init__(self, evaluator: Evaluator, backward: Backward, gradient_uses: GradientUses) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._gradient_uses = gradient_uses
        self._drawn_tokens = DrawnTokens(evaluator)

    @remembered
    def first_pass(self, function: cst.FunctionDef) -> cst.Call | None:
        """Return the first call of a layer with parameters in such a method, None if gradients may be wanted or off."""
        drawing = self._drawn_tokens.loops(function) if self.is_plain(function) else []
        is_named = bool(drawing) or _INFERS.match(function.name.value) is not None or self._generates_tokens(function)
        if not is_named or self._is_inner(function, draws=bool(drawing)) or self._gives_distribution(function):
            return None
        if self._backward.passes(function) or self._gradient_uses.of_calls(function):
            return None
        if self.is_switched_off(function) or (not drawing and self.is_used_on(function)):
            return None
        bodies = [loop.body for loop in drawing] or [function.body]
        calls = sorted((call for body in bodies for call in self._tree.below(body, cst.Call)), key=self._tree.order)
        runs = (call for call in calls if self._runs_model(call))
        if drawing:
            runs = (call for call in runs if not self._backward.frozen.holds(call.func))
        return next((call for call in runs if not self._evaluator.gradients.disabled(call)), None)

    def _gives_distribution(self, function: cst.FunctionDef) -> bool:
        """Whether a method infers a latent variable, by which its model is trained: it returns ``mu, logvar``."""
        results = self._evaluator.definitions.results(function)
        made = [self._evaluator.names.qualified(r.func) if isinstance(r, cst.Call) else None for r in results]
        if made and all((name or "").startswith("torch.distributions.") for name in made):
            return True
        parts = [r.elements if isinstance(r, cst.Tuple) else () for r in results]
        names = [[_told(element.value) for element in each] for each in parts]
        return bool(names) and all(any(map(_MEAN.search, n)) and any(map(_SPREAD.search, n)) for n in names)

    def _generates_tokens(self, function: cst.FunctionDef) -> bool:
        """Whether a method only makes a sequence longer, by what it draws or chooses: through that no gradient goes."""
        returned = self._evaluator.definitions.results(function)
        if not _GENERATES.match(function.name.value) or len(returned) != 1 or not isinstance(returned[0], cst.Name):
            return False
        sequence = returned[0].value
        loops = self._tree.below(function.body, cst.For)
        grown = [
            joined for loop in loops for joined in self._tree.below(loop.body, cst.Assign) if _grows(joined, sequence)
        ]
        bound = [name for name in self._tree.named(sequence) if self._tree.within(name, function.body)]
        bindings = [n for n in bound if isinstance(self._tree.parent(n), (cst.AssignTarget, cst.AugAssign))]
        if self._keeps_something(function):
            return False
        if not grown and len(bindings) == 1:
            return self._is_filled_with_choices(sequence, bindings[0], function)
        return bool(grown) and len(bindings) == len(grown) and all(map(self._adds_choice, grown))

    def _is_filled_with_choices(self, sequence: str, bound: cst.Name, function: cst.FunctionDef) -> bool:
        """Whether all that is written into a new tensor is chosen, but for what the method is given: ``out[0] = x``."""
        made = self._evaluator.flow.statement(bound)
        if not isinstance(made, cst.Assign) or not self._is_without_graph(made.value):
            return False
        written = [
            each
            for each in self._tree.below(function.body, cst.Assign)
            if any(isinstance(t.target, cst.Subscript) and identifier(t.target) == sequence for t in each.targets)
        ]
        chosen = [each for each in written if not self._is_given(each.value)]
        around = (self._tree.enclosing(each, cst.For, cst.While, cst.FunctionDef) for each in chosen)
        return any(a is not function for a in around) and all(self._is_without_graph(each.value) for each in chosen)

    def _is_given(self, value: cst.BaseExpression) -> bool:
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        return bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)

    def _is_without_graph(self, value: cst.BaseExpression) -> bool:
        found = self._evaluator.value(value)
        return found.is_tensor and found.graph is Graph.DETACHED

    def _keeps_something(self, function: cst.FunctionDef) -> bool:
        """Whether a method leaves anything behind, as what a policy gradient needs: ``self.saved.append(log_prob)``."""
        if any(method_call(call, *STORES, "add_") is not None for call in self._tree.below(function.body, cst.Call)):
            return True
        targets = self._tree.below(function.body, cst.AssignTarget)
        return any(isinstance(target.target, cst.Attribute) for target in targets)

    def _adds_choice(self, joined: cst.Assign) -> bool:
        """Whether the last part of ``torch.cat((tokens, token))`` carries no graph, whoever calls the method."""
        if not isinstance(joined.value, cst.Call) or self._evaluator.names.qualified(joined.value.func) not in _JOINS:
            return False
        parts = joined.value.args[0].value if joined.value.args else None
        if not isinstance(parts, (cst.Tuple, cst.List)) or len(parts.elements) != 2:
            return False
        return self._is_without_graph(parts.elements[1].value)

    def may_feed_loss(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is such a method, and what it gives is handed on in the file."""
        return _INFERS.match(function.name.value) is not None and self.is_used_on(function)

    def is_used_on(self, function: cst.FunctionDef) -> bool:
        """Return whether a function of the file calls a method and hands out something: perhaps a loss."""
        callers = (self._evaluator.definitions.enclosing_function(call) for call in self._calls(function))
        return any(caller is not None and caller is not function and self._hands_out(caller) for caller in callers)

    def _calls(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls by its name that may be calls of a method: not those of an object known to be another."""
        owner = self._evaluator.definitions.owner(function)
        named = [c for c in self._tree.calls_named(function.name.value) if method_call(c) is not None]
        return [call for call in named if self._may_reach(call, owner)]

    def _may_reach(self, call: cst.Call, owner: cst.ClassDef | None) -> bool:
        held = call.func.value if isinstance(call.func, cst.Attribute) else None
        receiver = self._evaluator.definitions.receiver(held) if isinstance(held, cst.Name) else None
        if held is None or receiver is not None:
            return receiver is owner
        part = self._evaluator.value(held).definition
        return part is owner or not isinstance(part, cst.ClassDef)

    def _hands_out(self, function: cst.FunctionDef) -> bool:
        if self._evaluator.gradients.function_disabled(function) or _USES.search(function.name.value):
            return False
        return any(statement.value is not None for statement in self._tree.below(function.body, cst.Return))

    def is_plain(self, function: cst.FunctionDef) -> bool:
        """Return whether only calls run a function, of the file or its users: no decorator or base of another file."""
        if function.asynchronous is not None or self._evaluator.definitions.yielded(function):
            return False
        owner = self._evaluator.definitions.owner(function)
        inherited = self._evaluator.definitions.ancestry(owner) if owner is not None else ()
        names = (self._evaluator.names.qualified(each.decorator) or "" for each in function.decorators)
        return all(n.startswith("builtins.") for n in names) and all(n.startswith(_BASES) for n in inherited)

    def is_switched_off(self, function: cst.FunctionDef) -> bool:
        """Return whether what may call a function switches gradients off, for all that the file shows, or its class."""
        owner = self._evaluator.definitions.owner(function)
        if owner is not None and self._evaluator.gradients.contexts.stay_switched(owner):
            return True
        calls = [call for call in self.possible_calls(function) if not self._tree.within(call, function)]
        return bool(calls) and all(map(self._evaluator.gradients.disabled, calls))

    def possible_calls(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the calls that may run a function, also by the name of a method only."""
        is_method = self._evaluator.definitions.owner(function) is not None
        return self._calls(function) if is_method else self._evaluator.callers(function)

    def _is_inner(self, function: cst.FunctionDef, *, draws: bool) -> bool:
        """Whether a method belongs to no model, or to a part of one, or is called by modules of the file.

        ``draws``: it may belong to what holds a model, or be given one, since all that it gives are values.
        """
        definitions = self._evaluator.definitions
        owner = definitions.owner(function)
        if owner is None:
            return not draws
        if PART.search(owner.name.value):
            return True
        if definitions.class_kind(owner) is not Kind.MODULE:
            return not draws
        if "forward" not in definitions.methods(owner):
            return True
        return any(self._is_by_module(call, owner) for call in self._calls(function))

    def _is_by_module(self, call: cst.Call, owner: cst.ClassDef) -> bool:
        """Whether the model itself calls the method, or another module does for what may be one of its parts."""
        definitions = self._evaluator.definitions
        held = call.func.value if isinstance(call.func, cst.Attribute) else None
        if isinstance(held, cst.Name) and definitions.receiver(held) is owner:
            return True
        caller = definitions.enclosing_function(call)
        other = definitions.owner(caller) if caller is not None else None
        return other is not owner and other is not None and definitions.class_kind(other) is Kind.MODULE

    def _is_of_object(self, part: cst.Attribute) -> bool:
        return isinstance(part.value, cst.Name) and self._evaluator.definitions.receiver(part.value) is not None

    def _runs_model(self, call: cst.Call) -> bool:
        """Whether a call runs a part that the object holds, or its own forward pass: ``self(x)``."""
        called = call.func.value if isinstance(call.func, cst.Subscript) else call.func  # `self.layers[i](x)`
        if isinstance(called, cst.Attribute) and isinstance(called.value, cst.Attribute):
            is_of_part = _CODER.search(called.value.attr.value) is not None and self._is_of_object(called.value)
            return is_of_part and _INFERS.match(called.attr.value) is not None
        held = called.value if isinstance(called, cst.Attribute) else called
        if not isinstance(held, cst.Name):
            return False
        if self._evaluator.definitions.receiver(held) is None:
            return called is held and (self._is_given_model(held) or self._is_one_of_layers(held))
        if called is held or (isinstance(called, cst.Attribute) and called.attr.value in _FORWARD):
            return True
        value = self._evaluator.value(call.func)
        if value.kind is Kind.MODULE:
            is_lookup = (value.name or "").endswith("Embedding")  # keeps hardly more than its indices
            return not is_lookup and may_have_parameters(value)
        if not isinstance(called, cst.Attribute) or run_by_method(called, self._evaluator) is None:
            return False
        method = self._evaluator.definitions.definition(called)
        inner = self._tree.below(method.body, cst.Call) if isinstance(method, cst.FunctionDef) else []
        return any(self._evaluator.value(one.func).kind is Kind.MODULE and self._runs_model(one) for one in inner)

    def _is_given_model(self, called: cst.Name) -> bool:
        """Whether a function of no class is given the model that it runs."""
        function = self._evaluator.definitions.enclosing_function(called)
        if function is None or self._evaluator.definitions.owner(function) is not None:
            return False
        is_parameter = any(b.kind is BindingKind.PARAMETER for b in self._evaluator.flow.definitions(called))
        return is_parameter and self._evaluator.value(called).kind is Kind.MODULE

    def _is_one_of_layers(self, layer: cst.Name) -> bool:
        """Whether a loop goes over parts that the object holds: ``for i, layer in enumerate(self.layers)``."""
        bindings = self._evaluator.flow.definitions(layer)
        iterated = [b.value for b in bindings if b.kind is BindingKind.ITERATION and b.value is not None]
        owners = [n for value in iterated for n in self._tree.below(value, cst.Attribute)]
        held = any(isinstance(n.value, cst.Name) and self._evaluator.definitions.receiver(n.value) for n in owners)
        return held and len(iterated) == len(bindings) and self._evaluator.value(layer).kind is Kind.MODULE


def _told(value: cst.BaseExpression) -> str:
    """Return what a value is called, or what computes it: ``mu`` of ``self.mu(h)``."""
    return identifier(value.func if isinstance(value, cst.Call) else value)


def _grows(statement: cst.Assign, sequence: str) -> bool:
    """Return whether a statement binds a variable again, and nothing else: ``tokens = torch.cat((tokens, token))``."""
    target = statement.targets[0].target
    return len(statement.targets) == 1 and isinstance(target, cst.Name) and target.value == sequence
