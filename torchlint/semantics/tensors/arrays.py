"""NumPy arrays: which expressions certainly hold one, and whether its memory is their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tensors.array import Array
from torchlint.semantics.tensors.array_dtypes import OTHER, ArrayDtypes, combined
from torchlint.semantics.tensors.array_items import ArrayItems
from torchlint.semantics.tensors.data_frames import is_converted, is_frame
from torchlint.semantics.tensors.held_arrays import taken_from
from torchlint.semantics.tensors.library_arrays import given_by
from torchlint.semantics.tensors.mapped import is_mapped
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, is_none, literal, method_call

Item = TypeVar("Item")

_MAKES = frozenset("zeros ones empty full arange linspace logspace eye identity loadtxt genfromtxt fromfile".split())
_RANDOM = frozenset("rand randn normal uniform random standard_normal randint choice permutation integers beta".split())
# Those that give one number unless they are told a size, and its place.
_SIZED = {
    "random": 0,
    "standard_normal": 0,
    "choice": 1,
    **dict.fromkeys(("normal", "uniform", "randint", "integers", "beta"), 2),
}
_WRITING = ("random", "standard_normal")  # into an array that they are given
_GENERATORS = frozenset(("numpy.random.RandomState", "numpy.random.default_rng"))
_JOINS = frozenset(
    (
        "concatenate stack vstack hstack column_stack tile repeat pad copy diff cumsum outer sort argsort setdiff1d "
        "intersect1d union1d delete insert append roll"
    ).split()
)
# What NumPy computes number by number: of arrays it makes an array.
_ELEMENTWISE = frozenset(
    (
        "abs absolute add arccos arcsin arctan arctan2 ceil clip cos cosh degrees divide exp expm1 fabs floor fmod "
        "hypot isfinite isnan log log10 log1p log2 logical_and logical_not logical_or maximum minimum mod multiply "
        "nan_to_num negative power radians rint round sign sin sinh sqrt square subtract tan tanh trunc"
    ).split()
)
_OF_TWO = frozenset(
    "add arctan2 divide fmod hypot logical_and logical_or maximum minimum mod multiply power subtract".split()
)
_TAKES_ANYTHING = ("asarray", "asanyarray", "ascontiguousarray")
_VIEWS = frozenset("expand_dims squeeze transpose reshape swapaxes moveaxis flip fliplr flipud load ravel".split())
_VIEWS |= {"atleast_1d", "atleast_2d", *_TAKES_ANYTHING}
_OWNING_METHODS = frozenset("astype copy flatten repeat cumsum clip round".split())
_VIEW_METHODS = frozenset("reshape transpose swapaxes squeeze ravel view".split())
_ONLY_ARRAYS = frozenset(("astype", "to_numpy"))
_SHAPED = frozenset("zeros ones empty full".split())
_KEEP_DIMENSIONS = frozenset("astype copy clip round".split())
# How many arguments stand before `order`, and before `dtype`.
_BEFORE_ORDER = {"zeros": 2, "ones": 2, "empty": 2, "full": 3, "eye": 4, "array": 3}
_BEFORE_DTYPE = dict.fromkeys("zeros ones empty array asarray asanyarray frombuffer fromfile loadtxt".split(), 1)
_BEFORE_DTYPE["full"] = 2
_FLOAT64 = frozenset(
    "zeros ones empty linspace logspace eye identity rand randn normal uniform standard_normal".split()
)
_DTYPES = {
    "float": "float64",
    "double": "float64",
    "single": "float32",
    "half": "float16",
    "int": "int64",
    "int_": "int64",
}
_MAX_DEPTH = 12


class Arrays:
    """Recognises arrays; scalars that may be arrays do not count."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._depth = 0
        self._cuts = 0
        self._known: dict[int, tuple[cst.CSTNode, Array | None]] = {}

    def array(self, expression: cst.CSTNode) -> Array | None:
        """Return what is known of an array, None unless the expression certainly holds one."""
        known = self._known.get(id(expression))
        if known is not None:
            return known[1]
        if self._depth >= _MAX_DEPTH:
            self._cuts += 1
            return None
        self._depth, cuts = self._depth + 1, self._cuts
        try:
            found = self._array(expression)
        finally:
            self._depth -= 1
        if self._cuts == cuts:  # else there is more to it, if one begins nearer
            self._known[id(expression)] = expression, found
        return found

    def is_own(self, expression: cst.BaseExpression) -> bool:
        """Return whether the array that an expression holds was certainly made where it stands, or for its variable."""
        if isinstance(expression, cst.Name):
            bindings, enclosing = self._evaluator.flow.definitions(expression), self._evaluator.definitions
            here = enclosing.enclosing_function(expression)
            if any(enclosing.enclosing_function(b.node) is not here for b in bindings):
                return False  # what another function makes, or the module, is there in the next call too
            values = [b.part if b.kind is BindingKind.ASSIGNMENT else None for b in bindings]
            return bool(values) and all(value is not None and self.is_own(value) for value in values)
        found = self.array(expression)
        return found is not None and found.owned

    def is_of_caller(self, expression: cst.BaseExpression) -> bool:
        """Return whether an array is a view of what a function is given, which its caller may go on writing to."""
        waiting, seen = [expression], set[int]()  # a loop may make a variable of itself: `x = np.squeeze(x)`
        while waiting:
            viewed = self._viewed(waiting.pop())
            bindings = self._evaluator.flow.makers(viewed) if isinstance(viewed, cst.Name) else []
            for binding in bindings:
                if binding.kind is BindingKind.PARAMETER:
                    return True
                if binding.part is not None and id(binding.node) not in seen:
                    seen.add(id(binding.node))
                    waiting.append(binding.part)
        return False

    def _viewed(self, expression: cst.BaseExpression) -> cst.BaseExpression:
        """What subscripts and functions that give views of an array are applied to."""
        while True:
            if isinstance(expression, cst.Subscript):
                expression = expression.value
                continue
            if not isinstance(expression, cst.Call) or not expression.args:
                return expression
            root, _, last = (self._evaluator.names.qualified(expression.func) or "").rpartition(".")
            if root != "numpy" or last not in _VIEWS:
                return expression
            expression = expression.args[0].value

    def _known_dtypes(self, expression: cst.BaseExpression) -> frozenset[str | None] | None:
        return found.dtypes if (found := self.array(expression)) is not None else None

    def _array(self, expression: cst.CSTNode) -> Array | None:
        if isinstance(expression, cst.Call):
            return self._call(expression)
        if isinstance(expression, cst.Name):
            return self._name(expression)
        if isinstance(expression, cst.Attribute):
            return self._attribute(expression)
        if isinstance(expression, cst.Subscript):
            return ArrayItems(self._evaluator, self.array).of(expression)
        if isinstance(expression, (cst.BinaryOperation, cst.UnaryOperation, cst.IfExp)):
            return self._operation(expression)
        return None

    def _call(self, call: cst.Call) -> Array | None:
        name = self._evaluator.names.qualified(call.func) or ""
        module, _, last = name.rpartition(".")
        if module in ("numpy", "numpy.random"):
            return self._numpy(call, last)
        if isinstance(call.func, cst.Attribute):
            found = self._method(call, call.func)
            if found is not None:
                return found
        function = self._evaluator.definitions.definition(call.func)
        return (
            self._returned(function) if isinstance(function, cst.FunctionDef) else given_by(call, (), self._evaluator)
        )

    def _numpy(self, call: cst.Call, name: str) -> Array | None:
        given = bind(call.args)
        asked = given.get("dtype") or _at(_BEFORE_DTYPE.get(name), call)
        dtype = self._dtype(asked)
        is_told = asked is not None or not given.absent("dtype")
        default = frozenset(("float64",)) if name in _FLOAT64 and not is_told else frozenset((dtype,))
        if name not in _FLOAT64 and not is_told and not given.open:
            default = ArrayDtypes(self._evaluator, self._known_dtypes).made(name, call)
        if name in _RANDOM:
            size = given.get("size") or _at(_SIZED.get(name), call)
            sized = name not in _SIZED or (size is not None and not self._may_be_none(size))
            fresh = given.absent("out")
            writes = name in _WRITING and len(call.args) >= len(("size", "dtype", "out"))
            return Array(owned=fresh, ordered=fresh, dtypes=default) if sized and call.args and not writes else None
        by_row = self._by_row(call, name)
        if name in _MAKES:
            dimensions = self._dimensions(call) if name in _SHAPED else 1
            return Array(owned=True, ordered=by_row, dtypes=default, dimensions=dimensions)
        if name == "array" and call.args:
            data = call.args[0].value
            display = isinstance(data, (cst.List, cst.Tuple, cst.ListComp)) and by_row
            return Array(owned=True, ordered=display, dtypes=default) if literal(data) is None else None
        if name in _JOINS:
            return Array(owned=True, dtypes=default)
        if name in _ELEMENTWISE:
            is_plain = not any(argument.keyword is not None or argument.star for argument in call.args)
            given_out = len(call.args) > (2 if name in _OF_TWO else 1)
            return self._computed([a.value for a in call.args]) if is_plain and not given_out else None
        if name not in _VIEWS or is_mapped(call, self._evaluator):
            return None
        return Array(dtypes=default, writable=name not in _TAKES_ANYTHING or not call.args or self._is_made(call))

    def _may_be_none(self, size: cst.BaseExpression) -> bool:
        bindings = self._evaluator.flow.definitions(size) if isinstance(size, cst.Name) else []
        return is_none(size) or any(is_none(binding.value) for binding in bindings)

    def _computed(self, given: list[cst.BaseExpression]) -> Array | None:
        """What a function that goes number by number makes of arrays and numbers."""
        told = [(value, self.array(value)) for value in given]
        arrays = [array for _, array in told if array is not None]
        others = (value for value, array in told if array is None)
        if not arrays or any(self._evaluator.value(value).kind is not Kind.NUMBER for value in others):
            return None
        dimensions = max(array.dimensions for array in arrays)
        return Array(min(array.evidence for array in arrays), owned=True, dtypes=OTHER, dimensions=dimensions)

    def _is_made(self, call: cst.Call) -> bool:
        """Whether what an array is made of is one that may be written to, or a list: a picture's memory may not."""
        given = call.args[0].value
        array = self.array(given)
        return array.writable if array is not None else self._evaluator.value(given).kind is Kind.SEQUENCE

    @staticmethod
    def _dimensions(call: cst.Call) -> int:
        """Return how many dimensions a literal shape has, 1 for any other."""
        shape = bind(call.args, ("shape",)).get("shape")
        if not isinstance(shape, (cst.Tuple, cst.List)):
            return 1
        return max(1, sum(isinstance(element, cst.Element) for element in shape.elements))

    @staticmethod
    def _by_row(call: cst.Call, name: str) -> bool:
        """Whether no argument can ask for another order than row by row."""
        positions = sum(argument.keyword is None for argument in call.args)
        return bind(call.args).absent("order") and positions <= _BEFORE_ORDER.get(name, positions)

    def _dtype(self, expression: cst.BaseExpression | None) -> str | None:
        if expression is None:
            return None
        text = literal(expression)
        name = self._evaluator.names.qualified(expression) or ""
        last = text if isinstance(text, str) else name.rpartition(".")[2]
        return (
            _DTYPES.get(last, last) or None
            if isinstance(text, str) or name.startswith(("numpy.", "builtins."))
            else None
        )

    def _method(self, call: cst.Call, method: cst.Attribute) -> Array | None:
        name = method.attr.value
        if name == "numpy" and not call.args:
            owner = self._evaluator.value(method.value)
            detached = method_call(method.value, "cpu", "detach") is not None
            # The tensor whose memory it is may go on changing, as a parameter does.
            return Array(Evidence.INFERRED, dtypes=OTHER, writable=False) if owner.is_tensor or detached else None
        if name in _RANDOM and self._is_generator(method.value):
            return self._numpy(call, name)
        owned = self.array(method.value)
        if owned is None and name in _ONLY_ARRAYS:
            owned = Array(Evidence.INFERRED)
        if owned is None:
            return None
        if name == "astype":
            dtype = self._dtype(call.args[0].value) if call.args else None
            is_copy = bind(call.args).get("copy") is None
            return owned._replace(owned=is_copy, ordered=False, dtypes=frozenset((dtype,)), writable=True)
        dimensions = owned.dimensions if name in _KEEP_DIMENSIONS else 1
        if name == "to_numpy":
            return owned._replace(ordered=False, dimensions=1, writable=literal(bind(call.args).get("copy")) is True)
        if name in _OWNING_METHODS:
            return owned._replace(owned=True, ordered=name == "flatten", dimensions=dimensions, writable=True)
        if name in _VIEW_METHODS:
            return owned._replace(owned=False, ordered=False, dimensions=dimensions)
        return None

    def _is_generator(self, owner: cst.BaseExpression) -> bool:
        """Whether a name (or a call) is one of NumPy's random generators."""
        made = [owner]
        if isinstance(owner, cst.Name):
            made = [b.value for b in self._evaluator.flow.definitions(owner) if b.value is not None]
        calls = [value for value in made if isinstance(value, cst.Call)]
        names = {self._evaluator.names.qualified(value.func) for value in calls}
        return bool(calls) and len(calls) == len(made) and names <= _GENERATORS

    def _returned(self, function: cst.FunctionDef) -> Array | None:
        enclosing = self._evaluator.definitions.enclosing_function
        returns = [r for r in self._evaluator.tree.nodes(cst.Return) if enclosing(r) is function]
        found = self._all([r.value for r in returns], self.array)
        return (
            found._replace(evidence=min(found.evidence, Evidence.INFERRED), owned=False) if found is not None else None
        )

    def _name(self, name: cst.Name) -> Array | None:
        bindings = self._evaluator.flow.definitions(name)
        found = self._all(self._evaluator.flow.makers(name), self._binding)
        if found is None and self._is_checked(name, bindings):
            return Array()
        return found._replace(owned=False) if found is not None else None

    def _is_checked(self, name: cst.Name, bindings: list[Binding]) -> bool:
        """Whether the branch that a name stands in is taken only for an array, and nothing rebinds the name in it."""
        tree = self._evaluator.tree
        child: cst.CSTNode = name
        for ancestor in tree.ancestors(name):
            if isinstance(ancestor, (cst.If, cst.IfExp)) and ancestor.body is child:
                branch = child
                if self._is_array_test(ancestor.test, name.value):
                    return not any(a is branch for binding in bindings for a in tree.ancestors(binding.node))
            child = ancestor
        return False

    def _is_array_test(self, test: cst.BaseExpression, name: str) -> bool:
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self._is_array_test(test.left, name) or self._is_array_test(test.right, name)
        if not isinstance(test, cst.Call) or len(test.args) != 2:
            return False
        names = self._evaluator.names
        return (
            names.qualified(test.func) == "builtins.isinstance"
            and isinstance(test.args[0].value, cst.Name)
            and test.args[0].value.value == name
            and names.qualified(test.args[1].value) == "numpy.ndarray"
        )

    def _binding(self, binding: Binding) -> Array | None:
        if binding.kind is BindingKind.PARAMETER:
            return Array(Evidence.INFERRED) if self._is_annotated(binding) else None
        taken = taken_from(binding, self._evaluator)
        if taken is not None:
            return self._all(taken, self.array)
        part = binding.part if binding.kind is BindingKind.ASSIGNMENT else None
        return self.array(part) if part is not None else given_by(binding.value, binding.path, self._evaluator)

    def _is_annotated(self, binding: Binding) -> bool:
        parameter = self._evaluator.tree.parent(binding.node)
        annotation = parameter.annotation if isinstance(parameter, cst.Param) else None
        return annotation is not None and self._evaluator.names.qualified(annotation.annotation) == "numpy.ndarray"

    def _all(self, items: Iterable[Item | None], read: Callable[[Item], Array | None]) -> Array | None:
        """Return what holds of every item, None if one of them is no array."""
        found = [read(item) if item is not None else None for item in items]
        arrays = [array for array in found if array is not None]
        if not arrays or len(arrays) < len(found):
            return None
        return Array(
            min(array.evidence for array in arrays),
            all(array.owned for array in arrays),
            all(array.ordered for array in arrays),
            frozenset[str | None]().union(*(array.dtypes for array in arrays)),
            min(array.dimensions for array in arrays),
            all(array.writable for array in arrays),
        )

    def _attribute(self, attribute: cst.Attribute) -> Array | None:
        if attribute.attr.value == "T":
            owner = self.array(attribute.value)
            return owner._replace(owned=False, ordered=False) if owner is not None else None
        if attribute.attr.value == "values" and is_frame(attribute.value, self._evaluator):
            dtypes = OTHER if is_converted(attribute.value, self._evaluator) else frozenset((None,))
            return Array(Evidence.INFERRED, dtypes=dtypes, writable=False)
        class_def = None
        if isinstance(attribute.value, cst.Name):
            class_def = self._evaluator.definitions.receiver(attribute.value)
        if class_def is None:
            return None
        bindings = self._evaluator.definitions.attribute(class_def, attribute.attr.value)
        found = self._all([None if b.path else b.value for b in bindings], self.array)
        return (
            found._replace(evidence=min(found.evidence, Evidence.INFERRED), owned=False) if found is not None else None
        )

    def _operation(self, expression: cst.BinaryOperation | cst.UnaryOperation | cst.IfExp) -> Array | None:
        if isinstance(expression, cst.IfExp):
            return self._all([expression.body, expression.orelse], self.array)
        if isinstance(expression, cst.UnaryOperation):
            found = self.array(expression.expression) if not isinstance(expression.operator, cst.Not) else None
            return found._replace(owned=True, ordered=False) if found is not None else None
        sides = [self.array(expression.left), self.array(expression.right)]
        arrays = [side for side in sides if side is not None]
        if (
            not arrays
            or self._evaluator.value(expression.left).is_tensor
            or self._evaluator.value(expression.right).is_tensor
        ):
            return None
        dtypes = combined([side.dtypes if side is not None else None for side in sides], expression.operator)
        dimensions = max(array.dimensions for array in arrays)
        return Array(min(array.evidence for array in arrays), owned=True, dtypes=dtypes, dimensions=dimensions)


def _at(place: int | None, call: cst.Call) -> cst.BaseExpression | None:
    """Return the argument at a position, None if it is not given there."""
    if place is None or len(call.args) <= place or any(a.star or a.keyword for a in call.args[: place + 1]):
        return None
    return call.args[place].value
