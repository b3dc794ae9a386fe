"""The question that rules ask: what takes the output of a layer."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.layers.constructors import Constructor
from torchlint.semantics.layers.interpreter import ExhaustedError, Interpreter
from torchlint.semantics.layers.parameters import Touch, Touches
from torchlint.semantics.layers.ranks import Ranks
from torchlint.semantics.layers.values import Tail
from torchlint.semantics.tables.signatures import SIGNATURES
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import Arguments, bind, identifier
from torchlint.syntax.canonical import canonical

_RELEASED = ("load_state_dict_from_url", "load_url", "build_model_with_cfg")
_DOWNLOADS = frozenset((*_RELEASED, "load_from_checkpoint"))
_MAX_DEPTH = 4
_FRAMES = (cst.FunctionDef, cst.Module)


class Consumer(NamedTuple):
    """What can take the output of a layer: the call that creates the next layer, or any other node."""

    node: cst.CSTNode
    place: cst.CSTNode
    """Where it takes it: the slot in a sequence, or the call in ``forward``."""


class Use(NamedTuple):
    """One use of a layer; several consumers are alternatives, of which a condition chooses one."""

    consumers: tuple[Consumer, ...]
    shared: bool = False
    """Whether the output goes to where it cannot be followed."""

    twice: frozenset[tuple[cst.CSTNode, cst.CSTNode]] = frozenset()
    """Pairs of places that take the output in one run."""

    chosen_at_run_time: bool = False
    """Whether it depends on more than how the model was built which consumer it is."""


UNSEEN = Use((), shared=True)


class Layers:
    """Runs the file when first asked."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._tree = evaluator.tree
        self._scopes = evaluator.scopes
        self._flow = evaluator.flow
        self._definitions = evaluator.definitions
        self._interpreter = Interpreter(evaluator)
        self._constructors = self._interpreter.constructors
        self._touches = Touches(evaluator, self._constructors)
        self._evaluator = evaluator
        self._ready = False
        self._failed = False

    def constructors(self, call: cst.Call) -> frozenset[Constructor]:
        """Return the classes and functions that a call can run, through variables, parameters and partials."""
        return self._constructors.of(call.func)

    def class_names(self, call: cst.Call) -> frozenset[str]:
        """Return the qualified names of the classes that a call can create; empty unless all of them are known."""
        found = self.constructors(call)
        names = frozenset(c.name for c in found if c.name is not None)
        return names if len(names) == len({(c.name, c.definition) for c in found}) else frozenset()

    def open_to_callers(self, expression: cst.BaseExpression, depth: int = 0) -> bool:
        """Return whether an expression is a parameter with a default, which code elsewhere may give another value."""
        if depth > _MAX_DEPTH or not isinstance(expression, (cst.Name, cst.Attribute)):
            return False
        values: list[cst.BaseExpression | None] = []
        if isinstance(expression, cst.Name):
            bindings = self._flow.definitions(expression)
            if any(b.kind is BindingKind.PARAMETER and b.value is not None for b in bindings):
                return True
            values = [b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT and not b.path]
        elif isinstance(expression.value, cst.Name):
            owner = self._definitions.receiver(expression.value)
            if owner is not None:
                values = [a.value for a in self._definitions.attribute(owner, expression.attr.value) if not a.path]
        return any(value is not None and self.open_to_callers(value, depth + 1) for value in values)

    def arguments(self, call: cst.Call) -> Arguments | None:
        """Return the arguments of a call by the signature of the class it creates, None if there are several.

        Those of a ``functools.partial`` are among them, and so are those of ``**options`` where the dict is visible.
        """
        signatures = {SIGNATURES.get(name, ()) for name in self.class_names(call)}
        partials = {constructor.partial for constructor in self.constructors(call)}
        if len(signatures) != 1 or len(partials) != 1:
            return None
        partial = partials.pop()
        given = (*partial.args[1:], *call.args) if partial is not None else call.args
        return bind([self._written_out(argument) for argument in given], signatures.pop())

    def _written_out(self, argument: cst.Arg) -> cst.Arg:
        """Replace the name of a dict that is only ever passed on by the dict."""
        if argument.star != "**" or not isinstance(argument.value, cst.Name):
            return argument
        bindings = self._flow.definitions(argument.value)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGNMENT or bindings[0].path:
            return argument
        value = bindings[0].value
        if value is None or not self._only_passed_on(bindings[0]):
            return argument
        return cst.Arg(value=value, star="**")

    def _only_passed_on(self, binding: Binding) -> bool:
        """Whether each other use of a variable is one as ``**options``."""
        others = (name for name in self._tree.named(binding.name) if name is not binding.node)
        same = (name for name in others if self._scopes.deciding(name.value, self._scopes.scope(name)) is binding.scope)
        return all(isinstance(arg := self._tree.parent(name), cst.Arg) and arg.star == "**" for name in same)

    def touches(self, call: cst.Call, class_name: str, parameter: str) -> Touch:
        """Return how the file touches a parameter of the layer that a call of a class creates."""
        return self._touches.of(call, class_name, parameter)

    @property
    def loads_released(self) -> bool:
        """Whether the file downloads weights that somebody released: they hold all parameters that there are."""
        return bool(self._tree.calls_named(*_RELEASED))

    @cached_property
    def loads_weights(self) -> bool:
        """Whether the file loads weights from elsewhere into a model."""
        return any(self._loads(call) for call in self._tree.nodes(cst.Call)) or any(
            parameter.name.value.startswith("pretrained") for parameter in self._tree.nodes(cst.Param)
        )

    @cached_property
    def replaces_norms(self) -> bool:
        """Whether the file puts other layers where it finds batch normalisations."""
        return self._touches.replaces_norms()

    def _loads(self, call: cst.Call) -> bool:
        if identifier(call.func) in _DOWNLOADS:
            return True
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "load_state_dict":
            return False
        owner = self._evaluator.value(call.func.value)
        return owner.kind not in (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER)

    def switched_to_eval(self, call: cst.Call) -> bool:
        """Return whether the file puts the layer that a call creates, or all of its class, in evaluation mode."""
        return self._touches.frozen(call, self.class_names(call))

    def successors(self, call: cst.Call) -> tuple[Use, ...]:
        """Return all uses of the layer that a call creates, empty where they are not all visible."""
        if not self._prepare():
            return ()
        tail = self._interpreter.roots.get(call)
        return self._uses(tail) if tail is not None else ()

    def condition(self, consumer: Consumer, call: cst.Call) -> str | None:
        """Return ``not name`` where a plain name decides that the consumer follows, ``name`` where its absence does.

        None where it is no plain name, or where it need not have the same value at the call.
        """
        found = {**self._conditions(consumer.node, call), **self._conditions(consumer.place, call)}
        if len(found) != 1:
            return None
        test, taken = next(iter(found.items()))
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, taken = test.expression, not taken
        if not isinstance(test, cst.Name) or len(self._scopes.bindings(test)) != 1:
            return None
        binding = self._scopes.bindings(test)[0]
        if binding.scope is not self._scopes.scope(call) or binding.order > self._tree.order(call):
            return None
        return f"not {test.value}" if taken else test.value

    def may_part(self, other: Consumer, norms: tuple[Consumer, ...], call: cst.Call) -> bool:
        """Return whether a consumer may stand between a layer and normalisations that follow it otherwise.

        It is put there before one of them, if a test holds that does not decide about that one.
        """
        later = [norm for norm in norms if self._tree.order(norm.place) > self._tree.order(other.place)]
        return any(self._tests(other, call) - self._tests(norm, call) for norm in later)

    def _tests(self, consumer: Consumer, call: cst.Call) -> frozenset[str]:
        """The tests that decide whether a consumer is there, if the call runs."""
        found = {**self._conditions(consumer.node, call), **self._conditions(consumer.place, call)}
        return frozenset(map(canonical, found))

    def _conditions(self, node: cst.CSTNode, call: cst.Call) -> dict[cst.BaseExpression, bool]:
        """The tests that decide whether a node runs, if the call does or stands in another function."""
        around = {id(ancestor) for ancestor in self._tree.ancestors(call)}
        child = node
        found: dict[cst.BaseExpression, bool] = {}
        for ancestor in self._tree.ancestors(node):
            if id(ancestor) in around or isinstance(ancestor, _FRAMES):
                break
            if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
                found[ancestor.test] = child is ancestor.body
            child = ancestor
        return found

    def takes_matrix(self, call: cst.Call) -> bool:
        """Return whether the layer that a call creates certainly gets a batch of vectors, with two dimensions."""
        return self._prepare() and self._ranks.takes_matrix(call)

    def takes_more(self, call: cst.Call) -> bool:
        """Return whether something that goes into a layer is written to have more dimensions than a matrix."""
        return self._prepare() and self._ranks.takes_more(call)

    @cached_property
    def _ranks(self) -> Ranks:
        runner = self._interpreter
        return Ranks(self._evaluator, self._constructors, runner.roots, runner.fed, runner.outputs)

    def given_away(self, call: cst.Call) -> bool:
        """Return whether the layer is an argument of a function that gives nothing back, such as an initialiser."""
        return self._prepare() and any(tail.site is call for tail in self._interpreter.passed_on)

    def _prepare(self) -> bool:
        if not self._ready:
            self._ready = True
            try:
                self._interpreter.run()
            except ExhaustedError:
                self._failed = True
        return not self._failed

    def _uses(self, tail: Tail) -> tuple[Use, ...]:
        if tail.shared:
            return (UNSEEN,)
        if tail.consumers:
            pairs = {(node, place) for place, nodes in tail.consumers.items() for node in nodes}
            pairs |= {(statement, statement) for statement in tail.returned}
            ordered = sorted(pairs, key=lambda pair: (self._tree.order(pair[0]), self._tree.order(pair[1])))
            consumers = tuple(Consumer(node, place) for node, place in ordered)
            # On another path it is the last of a sequence, whose output it is.
            consumers += tuple(c for d in tail.derived.values() if d.ends for c in self._ends(d))
            chosen = tail.called and self._chosen(tail.place, consumers)
            return (Use(consumers, twice=frozenset(tail.twice), chosen_at_run_time=chosen),)
        groups: list[tuple[list[Tail], list[Use]]] = []
        for derived in sorted(tail.derived.values(), key=lambda t: self._tree.order(t.place)):
            found = list(self._uses(derived)) or [UNSEEN]
            group = next((g for g in groups if all(self._either(derived, other) for other in g[0])), None)
            if group is None or len(found) > 1:
                groups.append(([derived], found))
            else:
                group[0].append(derived)
                group[1].extend(found)
        whole = tuple(use for slots, uses in groups for use in (_alternatives(uses) if len(slots) > 1 else uses))
        back = [Use((Consumer(s, s),)) for s in tail.returned if any(self._is_beside(s, d) for d in tail.derived)]
        return _alternatives([*whole, *back]) if back else whole

    def _is_beside(self, statement: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Whether two nodes stand in the same function: what it returns on one path it uses on another."""
        return self._definitions.enclosing_function(statement) is self._definitions.enclosing_function(place)

    def _ends(self, derived: Tail) -> tuple[Consumer, ...]:
        """What takes the output of a sequence that ends with a layer; where that cannot be seen, the place itself."""
        consumers = tuple(consumer for use in self._uses(derived) for consumer in use.consumers)
        return consumers or (Consumer(derived.place, derived.place),)

    def _either(self, first: Tail, second: Tail) -> bool:
        """Whether how the model is built decides which of two uses there is."""
        if not self._flow.exclusive(first.place, second.place):
            return False
        if not first.called and not second.called:
            return True
        places = (Consumer(first.place, first.place), Consumer(second.place, second.place))
        return not self._chosen(first.place, places)

    def _chosen(self, place: cst.CSTNode, consumers: tuple[Consumer, ...]) -> bool:
        """Whether a condition around one of several consumers depends on more than attributes of ``self``."""
        if len({consumer.node for consumer in consumers}) < 2:
            return False
        around = {id(a) for a in self._tree.ancestors(place)} if len({c.place for c in consumers}) == 1 else set()
        for consumer in consumers:
            for ancestor in self._tree.ancestors(consumer.place):
                if isinstance(ancestor, _FRAMES):
                    break
                if not isinstance(ancestor, (cst.If, cst.IfExp)) or id(ancestor) in around:
                    continue
                if not self._of_construction(ancestor.test):
                    return True
        return False

    def _of_construction(self, test: cst.BaseExpression) -> bool:
        """Whether a test in ``forward`` reads only what does not change from call to call."""
        for node in self._tree.descendants(test):
            if isinstance(node, cst.Attribute) and node.attr.value == "training":
                return False
            if isinstance(node, cst.Name) and self._definitions.receiver(node) is None and self._is_local(node):
                return False
        return True

    def _is_local(self, name: cst.Name) -> bool:
        bindings = self._scopes.bindings(name)
        return any(b.scope.parent is not None for b in bindings if b.kind is not BindingKind.IMPORT)


def _alternatives(uses: list[Use]) -> tuple[Use, ...]:
    """Return uses of which a condition chooses one as one use with several consumers."""
    seen = [use for use in uses if not use.shared]
    if not seen:
        return (UNSEEN,)
    consumers = tuple(consumer for use in seen for consumer in use.consumers)
    twice = frozenset(pair for use in seen for pair in use.twice)
    return (Use(consumers, twice=twice, chosen_at_run_time=any(use.chosen_at_run_time for use in seen)),)
