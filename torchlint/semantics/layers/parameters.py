"""Who touches a parameter of a layer by name, such as ``conv.bias``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.layers.constructors import Constructors
from torchlint.semantics.layers.positions import taken_by_position
from torchlint.semantics.layers.written_names import WrittenNames
from torchlint.semantics.tables.layers import CONVOLUTIONS, LINEAR, NORMS
from torchlint.syntax.calls import identifier, is_none, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.constants import value_of

_TESTS = (cst.If, cst.IfExp)
_ANY = re.compile("Module|_ConvNd")
_LAYERS = CONVOLUTIONS | LINEAR | NORMS


class Touch(Enum):
    """How a file deals with a parameter that a layer may come to lack."""

    NOT = "not at all"
    CHECKED = "only where it is not None"
    UNCHECKED = "on all layers of its class, whether it is there or not"
    OWN = "on this very layer"


class Touches:
    """Looks at every ``x.bias`` of the file."""

    def __init__(self, evaluator: Evaluator, constructors: Constructors) -> None:
        self._evaluator = evaluator
        self._constructors = constructors
        self._tree = evaluator.tree
        self._names = WrittenNames(evaluator)

    def of(self, call: cst.Call, class_name: str, parameter: str) -> Touch:
        """Return how the file touches a parameter of the layer that a call of a class creates."""
        found = Touch.OWN if any(self._is_of(owner, call) for owner in self._owners(parameter)) else Touch.NOT
        found = self._by_position(call) if found is Touch.NOT else found
        for attribute in self._tree.nodes(cst.Attribute):
            if attribute.attr.value != parameter:
                continue
            touch = self._touch(attribute, call, class_name.rpartition(".")[2])
            if touch is Touch.OWN or found is Touch.OWN:
                return Touch.OWN
            if touch is Touch.UNCHECKED or found is Touch.NOT:
                found = touch
        return Touch.UNCHECKED if found is not Touch.OWN and self._names.writes(call, parameter) else found

    def frozen(self, call: cst.Call, class_names: frozenset[str]) -> bool:
        """Return whether the file calls ``.eval()`` on a layer, or on all layers of its class."""
        for method in self._tree.nodes(cst.Attribute):
            if method.attr.value != "eval" or not isinstance(self._tree.parent(method), cst.Call):
                continue
            created = self._created(method.value)
            if self._holds(method.value, call) or (created is not None and call in created):
                return True
            if created is None and self._names_class(method, {name.rpartition(".")[2] for name in class_names}):
                return True
        return False

    def _holds(self, made: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether a module is made of a layer where it stands: ``nn.Sequential(*layers).requires_grad_(False)``."""
        given = self._tree.below(made, cst.Name) if isinstance(made, cst.Call) else []
        bound = (binding.value for name in given for binding in self._evaluator.flow.definitions(name))
        lists = (value for value in bound if isinstance(value, (cst.List, cst.Tuple)))
        return any(self._tree.within(call, one) for one in (made, *lists))

    def _owners(self, parameter: str) -> Iterator[cst.BaseExpression]:
        """The layers of which a parameter is asked for by its name: ``prune.l1_unstructured(m.conv, "bias", 0.2)``."""
        for text in self._tree.nodes(cst.SimpleString):
            pair = self._tree.parent(self._tree.parent(text) or text)
            given = pair.args if isinstance(pair, cst.Call) else pair.elements if isinstance(pair, cst.Tuple) else ()
            if len(given) > 1 and given[1].value is text and value_of(text) == parameter:
                yield given[0].value
            elif isinstance(pair, (cst.Subscript, cst.SubscriptElement, cst.Call)) and value_of(text) == parameter:
                yield from self._holder(pair)

    def _holder(self, taken: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """The layer of whose parameters one is taken: ``m._parameters["bias"]``, ``m.get_parameter("bias")``."""
        if isinstance(taken, cst.SubscriptElement):
            taken = self._tree.parent(taken) or taken
        method = method_call(taken, "get_parameter", "get", "pop")
        if method is not None and method.attr.value == "get_parameter":
            yield method.value
            return
        held = method.value if method is not None else taken.value if isinstance(taken, cst.Subscript) else None
        if isinstance(held, cst.Call) and self._evaluator.names.qualified(held.func) == "builtins.dict" and held.args:
            held = held.args[0].value
        if isinstance(held, cst.Attribute) and held.attr.value == "_parameters":
            yield held.value
        elif held is not None and (whole := method_call(held, "state_dict", "named_parameters")) is not None:
            yield whole.value

    def _by_position(self, call: cst.Call) -> Touch:
        """How the file takes parameters by their place, which a missing one moves."""
        found = Touch.NOT
        for owner, place in taken_by_position(self._evaluator):
            if self._is_of(owner, call):
                if place != 0:
                    return Touch.OWN
            elif place not in (0, -1, -2) and not self._is_other_layer(owner, call):
                found = Touch.UNCHECKED  # those at the ends are of other layers: a normalisation follows
        return found

    def _is_other_layer(self, owner: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether an expression certainly is a layer that holds no other, and not the one that a call creates."""
        created = self._created(owner)
        if created is None and isinstance(owner, cst.Attribute):
            created = list(self._assigned(owner.attr.value))
        names = [c.name for each in created or () for c in self._constructors.of(each.func)]
        return bool(names) and call not in (created or ()) and all(name in _LAYERS for name in names)

    def _assigned(self, attribute: str) -> Iterator[cst.Call]:
        """What any class of the file makes an attribute of this name by."""
        for statement in self._tree.nodes(cst.Assign):
            target, made = statement.targets[0].target, statement.value
            is_meant = isinstance(target, cst.Attribute) and target.attr.value == attribute
            if is_meant and isinstance(made, cst.Call):
                yield made

    def _is_of(self, owner: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether a layer is the one that a call creates, or has the name of its attribute."""
        created = self._created(owner)
        if created is not None:
            return self._is_among(call, created)
        return isinstance(owner, cst.Attribute) and owner.attr.value in self._names.of(call)

    def _is_among(self, call: cst.Call, created: list[cst.Call]) -> bool:
        """Whether one of several calls is the one that creates a layer, or calls the function that returns it."""
        made = (self._evaluator.definitions.definition(each.func) for each in created)
        functions = [function for function in made if isinstance(function, cst.FunctionDef)]
        return call in created or any(call in self._evaluator.definitions.results(each) for each in functions)

    def _asks_for(self, got: cst.Call, call: cst.Call) -> bool:
        """Whether a layer is got by a name that it can have: ``getattr(model, "conv")``, ``get_submodule(name)``."""
        names = self._names.of(call)
        if identifier(got.func) not in ("getattr", "get_submodule") or not 0 < len(got.args) < 4:
            return False
        return any(self._names.may_be(name, got.args[min(1, len(got.args) - 1)].value) for name in names)

    def _is_inside(self, owner: cst.Attribute, call: cst.Call) -> bool:
        """Whether ``self.stem.conv`` is the layer that a call creates, by its name in what ``self.stem`` is made of."""
        if owner.attr.value not in self._names.of(call):
            return False
        argument = self._tree.parent(call)
        adds = self._tree.parent(argument) if argument is not None else None
        method = method_call(adds, "add_module", "register_module")
        if method is not None and is_same(method.value, owner.value):
            return True
        return any(self._tree.within(call, made) for made in self._created(owner.value) or ())

    def _meant(self, owner: cst.Name) -> Iterator[cst.BaseExpression]:
        """The attributes that a variable stands for, or that the file gives to the function whose parameter it is."""
        for binding in self._evaluator.flow.definitions(owner):
            parameter = self._tree.parent(binding.node)
            if binding.kind is BindingKind.ASSIGNMENT and isinstance(binding.part, cst.Attribute):
                yield binding.part
            elif isinstance(parameter, cst.Param):
                yield from self._given(parameter)

    def _given(self, parameter: cst.Param) -> Iterator[cst.Attribute]:
        """The attributes that callers of the file give for a parameter."""
        function = next(a for a in self._tree.ancestors(parameter) if isinstance(a, (cst.FunctionDef, cst.Lambda)))
        if isinstance(function, cst.FunctionDef):
            for call in self._evaluator.callers(function):
                argument = argument_for(function, parameter, call, self._evaluator.definitions)
                if isinstance(argument, cst.Attribute):
                    yield argument

    def replaces_norms(self) -> bool:
        """Return whether the file puts other layers where it finds batch normalisations."""
        calls = self._tree.calls_named("setattr", "set_submodule")
        return any(self._names_class(call, {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"}) for call in calls)

    def _names_class(self, node: cst.CSTNode, names: set[str]) -> bool:
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, _TESTS) and child is ancestor.body:
                found = set(self._classes(ancestor.test))
                if any(part in name for part in found for name in names) or "_BatchNorm" in found:
                    return True
            if isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def _touch(self, attribute: cst.Attribute, call: cst.Call, class_name: str) -> Touch:
        owner = attribute.value
        created = self._created(owner)
        if created is not None:
            return Touch.OWN if self._is_among(call, created) else Touch.NOT
        if isinstance(owner, cst.Attribute) and self._is_inside(owner, call):
            return Touch.OWN
        if isinstance(owner, cst.Call) and self._asks_for(owner, call):
            return Touch.CHECKED if self._only_compared(attribute) else Touch.UNCHECKED
        if not isinstance(owner, (cst.Name, cst.Attribute, cst.Subscript)) or self._is_other(
            attribute, call, class_name
        ):
            return Touch.NOT
        if isinstance(owner, cst.Attribute) and owner.attr.value not in self._names.of(call):
            return Touch.NOT  # a layer with another name
        if isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None:
            return Touch.NOT  # an attribute of the class itself
        if isinstance(owner, cst.Name) and any(self._is_of(layer, call) for layer in self._meant(owner)):
            return Touch.OWN
        if self._only_compared(attribute) or self._checked(attribute):
            return Touch.CHECKED
        return Touch.UNCHECKED

    def _created(self, owner: cst.BaseExpression) -> list[cst.Call] | None:
        """The calls that create what ``self.name`` or a local variable holds; None for anything else."""
        values: list[cst.BaseExpression | None] = []
        if isinstance(owner, cst.Subscript):
            return self._created_item(owner)
        if isinstance(owner, cst.Attribute):
            class_def = self._evaluator.value(owner.value).definition
            if not isinstance(class_def, cst.ClassDef):
                return None
            values = [b.value for b in self._evaluator.definitions.attribute(class_def, owner.attr.value)]
            return [v for v in values if isinstance(v, cst.Call)]
        if isinstance(owner, cst.Name):
            values = [binding.value for binding in self._evaluator.flow.definitions(owner) if not binding.path]
            calls = [v for v in values if isinstance(v, cst.Call)]
            known = all(self._constructors.of(c.func) and self._is_class(c) for c in calls)
            return calls if calls and len(calls) == len(values) and known else None
        return None

    def _created_item(self, subscript: cst.Subscript) -> list[cst.Call] | None:
        """The calls that create ``sequence[0]``, where the arguments of the ``Sequential`` are visible."""
        index = subscript.slice[0].slice
        place = literal(index.value) if isinstance(index, cst.Index) else None
        found = []
        for sequence in self._created(subscript.value) or ():
            names = {constructor.name for constructor in self._constructors.of(sequence.func)}
            if names != {"torch.nn.Sequential"}:
                continue
            starred = any(argument.star for argument in sequence.args)
            if starred or type(place) is not int or not -len(sequence.args) <= place < len(sequence.args):
                return None
            item = sequence.args[place].value
            if isinstance(item, cst.Call) and self._evaluator.names.qualified(item.func) == "collections.OrderedDict":
                return None
            found += [item] if isinstance(item, cst.Call) else []
        return found or None

    def _is_class(self, call: cst.Call) -> bool:
        made = self._constructors.of(call.func)
        return all(c.name is not None and c.name.rpartition(".")[2][:1].isupper() for c in made)

    def _is_other(self, attribute: cst.Attribute, call: cst.Call, class_name: str) -> bool:
        """Whether a test around says that this is a layer of another class, or of another name."""
        own = (class_name, *self._names.of(call))
        child: cst.CSTNode = attribute
        for ancestor in self._tree.ancestors(attribute):
            if isinstance(ancestor, _TESTS) and child is ancestor.body:
                classes = list(self._classes(ancestor.test))
                if classes and not any(_ANY.fullmatch(name) or any(name in each for each in own) for name in classes):
                    return True
            if isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def _classes(self, test: cst.BaseExpression) -> Iterator[str]:
        """The class names in ``isinstance(m, (nn.Conv2d, nn.Linear))`` and ``classname.find("Conv") != -1``."""
        for node in self._tree.descendants(test):
            if isinstance(node, cst.SimpleString) and isinstance(name := value_of(node), str):
                parent = self._tree.parent(node)
                attribute_name = isinstance(parent, cst.Arg) and self._is_hasattr(self._tree.parent(parent))
                if not attribute_name:
                    yield name
            elif isinstance(node, cst.Call) and self._evaluator.names.qualified(node.func) == "builtins.isinstance":
                yield from self._tested(node)
            elif isinstance(node, cst.Comparison):
                yield from self._compared(node)

    def _is_hasattr(self, node: cst.CSTNode | None) -> bool:
        return isinstance(node, cst.Call) and self._evaluator.names.qualified(node.func) == "builtins.hasattr"

    def _tested(self, call: cst.Call) -> Iterator[str]:
        if len(call.args) == 2:
            classes = call.args[1].value
            elements = [e.value for e in classes.elements] if isinstance(classes, (cst.Tuple, cst.List)) else [classes]
            for element in elements:
                name = self._evaluator.names.qualified(element)
                yield name.rpartition(".")[2] if name is not None else "Module"

    def _compared(self, comparison: cst.Comparison) -> Iterator[str]:
        """``type(m) == nn.Linear`` and ``type(m) in [nn.Conv2d, nn.Linear]``."""
        left = comparison.left
        if isinstance(left, cst.Call) and self._evaluator.names.qualified(left.func) == "builtins.type":
            for target in comparison.comparisons:
                right = target.comparator
                elements = (
                    [e.value for e in right.elements] if isinstance(right, (cst.Tuple, cst.List, cst.Set)) else [right]
                )
                for element in elements:
                    name = self._evaluator.names.qualified(element)
                    yield name.rpartition(".")[2] if name is not None else "Module"

    def _only_compared(self, attribute: cst.Attribute) -> bool:
        """Whether it is only asked whether the parameter is there."""
        parent = self._tree.parent(attribute)
        if isinstance(parent, cst.Comparison):
            return all(is_none(c.comparator) for c in parent.comparisons)
        return isinstance(parent, (cst.If, cst.BooleanOperation)) or (
            isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
        )

    def _checked(self, attribute: cst.Attribute) -> bool:
        text = self._text(attribute)
        child: cst.CSTNode = attribute
        for ancestor in self._tree.ancestors(attribute):
            if isinstance(ancestor, _TESTS) and child is ancestor.body and self._says_present(ancestor.test, text):
                return True
            if isinstance(ancestor, cst.BooleanOperation) and self._says_present_before(ancestor, child, text):
                return True
            if isinstance(ancestor, (cst.IndentedBlock, cst.Module)) and self._left_earlier(ancestor, child, text):
                return True
            if isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def _left_earlier(self, block: cst.IndentedBlock | cst.Module, end: cst.CSTNode, text: str) -> bool:
        """Whether a statement before ``end`` leaves the block where the parameter is None."""
        for statement in block.body:
            if statement is end:
                return False
            leaves = isinstance(statement, cst.If) and ends_in_jump(statement.body)
            if leaves and isinstance(statement, cst.If) and self._says_absent(statement.test, text):
                return True
        return False

    def _says_present_before(self, operation: cst.BooleanOperation, side: cst.CSTNode, text: str) -> bool:
        both = isinstance(operation.operator, cst.And) and side is operation.right
        return both and self._says_present(operation.left, text)

    def _says_present(self, test: cst.BaseExpression, text: str) -> bool:
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self._says_present(test.left, text) or self._says_present(test.right, text)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            target = test.comparisons[0]
            negative = isinstance(target.operator, (cst.IsNot, cst.NotEqual)) and is_none(target.comparator)
            return negative and self._text(test.left) == text
        return self._text(test) == text

    def _says_absent(self, test: cst.BaseExpression, text: str) -> bool:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._text(test.expression) == text
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            target = test.comparisons[0]
            positive = isinstance(target.operator, (cst.Is, cst.Equal)) and is_none(target.comparator)
            return positive and self._text(test.left) == text
        return False

    def _text(self, expression: cst.BaseExpression) -> str:
        parts: list[str] = []
        current = expression
        while isinstance(current, cst.Attribute):
            if current.attr.value != "data":
                parts.append(current.attr.value)
            current = current.value
        return ".".join([current.value, *reversed(parts)]) if isinstance(current, cst.Name) else ""
