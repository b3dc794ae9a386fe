"""Random number generators that objects carry in an attribute, or that a module keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, is_none, method_call
from torchlint.syntax.canonical import is_same

GENERATORS = frozenset(
    ("numpy.random.RandomState", "numpy.random.default_rng", "numpy.random.Generator", "random.Random")
) | {"torch.Generator"}
_SEEDS = ("manual_seed", "seed", "set_state", "setstate")
_DRAWS = frozenset(
    (
        "random rand randn randint randrange integers random_sample sample choice choices shuffle permutation permuted "
        "uniform normal standard_normal gauss binomial poisson beta gamma exponential laplace lognormal triangular "
        "betavariate normalvariate expovariate dirichlet multinomial multivariate_normal vonmisesvariate"
    ).split()
)


class Carried(NamedTuple):
    """A generator that is made once for each object, or for all objects of a class."""

    name: str
    made: cst.Call
    """The call that makes it."""

    anew: bool
    """Whether it is made or seeded anew elsewhere too."""


class RandomGenerators:
    """Finds the generators that objects are made with, and where they are drawn from."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._definitions = evaluator.definitions

    def carried(self, class_def: cst.ClassDef) -> Iterator[Carried]:
        """Yield the generators that ``__init__`` or the body of a class binds to attributes."""
        for made in self._tree.below(class_def, cst.Call):
            if self._evaluator.names.qualified(made.func) in GENERATORS:
                name = self._holder(made)
                if name:
                    yield Carried(name, made, self._is_anew(name, class_def))

    def of_module(self, call: cst.Call) -> str:
        """Return the variable of the module from which a call draws, if it is bound and seeded only once."""
        method = method_call(call, *_DRAWS)
        drawn = [method.value] if method is not None else []
        drawn += [a.value for a in call.args if a.keyword is not None and a.keyword.value == "generator"]
        return next((each.value for each in drawn if isinstance(each, cst.Name) and self._is_kept(each)), "")

    def of_numpy(self, call: cst.Call) -> bool:
        """Return whether a call draws from the generator that NumPy keeps for the process."""
        package, _, name = (self._evaluator.names.qualified(call.func) or "").rpartition(".")
        return package == "numpy.random" and name in _DRAWS

    def is_optional(self, generator: cst.BaseExpression) -> bool:
        """Return whether a generator is a parameter that is None unless a caller gives it, and nothing asks for it."""
        if not isinstance(generator, cst.Name):
            return False
        bindings = self._evaluator.flow.definitions(generator)
        if not bindings or not all(b.kind is BindingKind.PARAMETER and is_none(b.value) for b in bindings):
            return False
        if self._is_given(generator):
            return False
        tests = (a.test for a in self._tree.ancestors(generator) if isinstance(a, (cst.If, cst.IfExp)))
        return not any(is_same(generator, node) for test in tests for node in self._tree.descendants(test))

    def _is_given(self, generator: cst.Name) -> bool:
        """Whether a call in the file gives the generator by name, or something asks where it is."""
        function = self._evaluator.definitions.enclosing_function(generator)
        calls = self._evaluator.callers(function) if function is not None else ()
        names = [a.keyword.value for call in calls for a in call.args if a.keyword is not None]
        if generator.value in names:
            return True
        attributes = self._tree.attributes_named("device")
        return any(is_same(attribute.value, generator) for attribute in attributes)

    def _is_kept(self, name: cst.Name) -> bool:
        """Whether a name is a generator that the module makes once, and that no function seeds."""
        bindings = self._evaluator.scopes.bindings(name)
        if len(bindings) != 1 or bindings[0].scope.parent is not None or not isinstance(bindings[0].value, cst.Call):
            return False
        made: cst.BaseExpression = bindings[0].value
        while (
            isinstance(made, cst.Call)
            and method_call(made, *_SEEDS) is not None
            and isinstance(made.func, cst.Attribute)
        ):
            made = made.func.value
        if not isinstance(made, cst.Call) or self._evaluator.names.qualified(made.func) not in GENERATORS:
            return False
        seeded = map(method_call, self._tree.calls_named(*_SEEDS))
        return not any(
            method is not None
            and identifier(method.value) == name.value
            and self._definitions.enclosing_function(method) is not None
            for method in seeded
        )

    def _holder(self, made: cst.Call) -> str:
        """The attribute to which a generator is bound, seeded in the same expression or not; "" if there is none."""
        parent = self._tree.parent(made)
        while isinstance(parent, (cst.Attribute, cst.Call)):  # torch.Generator().manual_seed(0)
            parent = self._tree.parent(parent)
        if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
            return ""
        target, function = parent.targets[0].target, self._definitions.enclosing_function(made)
        if function is None:
            return target.value if isinstance(target, cst.Name) else ""
        own = isinstance(target, cst.Attribute) and self._is_receiver(target.value)
        return identifier(target) if own and function.name.value == "__init__" else ""

    def _is_receiver(self, expression: cst.BaseExpression) -> bool:
        return isinstance(expression, cst.Name) and self._definitions.receiver(expression) is not None

    def _is_anew(self, name: str, class_def: cst.ClassDef) -> bool:
        """Whether the attribute is bound twice, from outside too, or the generator is seeded outside ``__init__``."""
        if len(self._definitions.attribute(class_def, name)) > 1:
            return True
        targets = (target.target for target in self._tree.nodes(cst.AssignTarget))
        if any(self._is_bound_outside(target, name, class_def) for target in targets):
            return True
        return any(self._seeds_later(call, name, class_def) for call in self._tree.nodes(cst.Call))

    def _is_bound_outside(self, target: cst.BaseExpression, name: str, class_def: cst.ClassDef) -> bool:
        held = isinstance(target, cst.Attribute) and target.attr.value == name
        return held and isinstance(target, cst.Attribute) and self._may_hold(target.value, class_def, inside=False)

    def _may_hold(self, owner: cst.BaseExpression, class_def: cst.ClassDef, *, inside: bool) -> bool:
        """Whether an object can be of a class, as far as ``self`` tells."""
        receiver = self._definitions.receiver(owner) if isinstance(owner, cst.Name) else None
        return receiver is None or (inside and receiver is class_def)

    def _seeds_later(self, call: cst.Call, name: str, class_def: cst.ClassDef) -> bool:
        method = method_call(call, *_SEEDS)
        if method is None or identifier(method.value) != name:
            return False
        owner = method.value.value if isinstance(method.value, cst.Attribute) else method.value
        function = self._definitions.enclosing_function(call)
        starts = function is not None and function.name.value == "__init__"
        return not starts and self._may_hold(owner, class_def, inside=True)

    def draws(self, call: cst.Call, generator: Carried) -> bool:
        """Return whether a call in a method of the class draws from a generator."""
        method = method_call(call, *_DRAWS)
        if method is not None and self._is_it(method.value, generator):
            return True
        handed = (a.value for a in call.args if a.keyword is not None and a.keyword.value == "generator")
        return any(self._is_it(value, generator) for value in handed)

    def _is_it(self, expression: cst.BaseExpression, generator: Carried) -> bool:
        return (
            isinstance(expression, cst.Attribute)
            and expression.attr.value == generator.name
            and self._is_receiver(expression.value)
        )
