"""Branches that are taken only for tensors: ``if isinstance(x, torch.Tensor): ...``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.tables.names import OPTIONS
from torchlint.syntax.calls import identifier, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_TAKEN = frozenset(("detach", "item", "tolist"))
_NUMBERS = frozenset(("builtins.float", "builtins.int", "builtins.bool", "builtins.complex", "numbers.Number"))
_OF_TENSORS = frozenset("item detach backward grad_fn requires_grad is_cuda cpu cuda numpy dtype device".split())
_TESTS = ("isinstance", "is_tensor", "hasattr")
_OTHERS = _NUMBERS | {f"builtins.{kind}" for kind in ("list", "tuple", "dict", "set", "str", "bytes")}


def tensor_tests(evaluator: Evaluator) -> dict[str, list[tuple[cst.Name, cst.CSTNode]]]:
    """Return by variable where it is asked for a tensor, with the branch that is taken if it is one."""
    found: dict[str, list[tuple[cst.Name, cst.CSTNode]]] = {}
    for call in evaluator.tree.nodes(cst.Call):
        asked = call.args[0].value if call.args else None
        if isinstance(asked, cst.Name) and _asks(call, evaluator):
            branch = _branch(call, evaluator)
            if branch is not None:
                found.setdefault(asked.value, []).append((asked, branch))
    return found


def tested_names(evaluator: Evaluator) -> frozenset[str]:
    """Return the variables that the file asks for their type."""
    calls = (call for call in evaluator.tree.nodes(cst.Call) if call.args and identifier(call.func) in _TESTS)
    return frozenset(call.args[0].value.value for call in calls if isinstance(call.args[0].value, cst.Name))


def is_tensor_here(name: cst.Name, evaluator: Evaluator) -> bool:
    """Return whether a variable stands in a branch that is taken only if it holds a tensor, unless it is bound anew."""
    for asked, branch in evaluator.tensor_tests.get(name.value, ()):
        if evaluator.tree.within(name, branch):
            before, now = (evaluator.flow.definitions(each) for each in (asked, name))
            if any(binding.kind is BindingKind.PARAMETER for binding in now):
                return False  # a parameter that may be a number is an index or a size, often on the host
            if any(map(_is_option, now)):
                return False  # which may hold a tensor in another program
            if [id(binding.node) for binding in before] == [id(binding.node) for binding in now]:
                return True
    return False


def _is_option(binding: Binding) -> bool:
    """Return whether a statement binds an option of the program: ``mix = config.mix``."""
    return isinstance(binding.part, cst.Attribute) and identifier(binding.part.value) in OPTIONS


def is_other_here(name: cst.Name, evaluator: Evaluator) -> bool:
    """Return whether a variable stands where a test left no tensor: ``v.item() if torch.is_tensor(v) else float(v)``.

    In the branch of a statement too, and behind one that ends where there is a tensor.
    """
    child: cst.CSTNode = name
    for ancestor in evaluator.tree.ancestors(name):
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return False
        tested: list[tuple[cst.BaseExpression, bool]] = []
        if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
            tested = [(test, child is ancestor.body) for test in _parts(ancestor.test, child is ancestor.body)]
        elif isinstance(ancestor, cst.BooleanOperation) and child is ancestor.right:
            holds = isinstance(ancestor.operator, cst.And)
            tested = [(test, holds) for test in _parts(ancestor.left, holds)]
        elif isinstance(ancestor, cst.IndentedBlock):
            before = ancestor.body[: ancestor.body.index(child)]
            ends = (line for line in before if isinstance(line, cst.If) and line.orelse is None)
            tested = [(line.test, False) for line in ends if ends_in_jump(line.body)]
        if any(_leaves_no_tensor(test, holds, name, evaluator) for test, holds in tested):
            return True
        child = ancestor
    return False


def is_container_here(name: cst.Name, evaluator: Evaluator) -> bool:
    """Return whether a test left no tensor for a variable, other than one whose items are asked for: those may be."""
    if name.value not in evaluator.tested_names or isinstance(
        evaluator.tree.parent(name), (cst.Subscript, cst.Attribute)
    ):
        return False
    return is_other_here(name, evaluator)


def _leaves_no_tensor(test: cst.BaseExpression, holds: bool, name: cst.Name, evaluator: Evaluator) -> bool:
    """Whether a variable is no tensor where a test holds or does not, and is the one that was tested."""
    if holds:
        is_none = _is_no_tensor(test, name, evaluator, _OTHERS)
    else:
        is_none = _is_asked(test, name, evaluator) or _is_tensor_or_other(test, name, evaluator)
    if not is_none:
        return False
    asked = next(each for each in evaluator.tree.below(test, cst.Name) if each.value == name.value)
    before, now = (evaluator.flow.definitions(each) for each in (asked, name))
    return [id(binding.node) for binding in before] == [id(binding.node) for binding in now]


def _parts(test: cst.BaseExpression, holds: bool) -> Iterator[cst.BaseExpression]:
    """Yield the parts of a test that hold, or do not, if it as a whole does so."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And if holds else cst.Or):
        yield from _parts(test.left, holds)
        yield from _parts(test.right, holds)
    else:
        yield test


def is_detached_tensor(value: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a value is detached if it is a tensor: ``v = v.detach() if torch.is_tensor(v) else v``.

    Also by a statement that asks for tensors, and by a function of the file that does so.
    """
    if isinstance(value, cst.IfExp):
        if _is_asked(value.test, value.orelse, evaluator):
            return _detaches(value.body)
        return _is_no_tensor(value.test, value.body, evaluator) and _detaches(value.orelse)
    if isinstance(value, cst.Call):
        function = evaluator.definitions.definition(value.func)
        results = evaluator.definitions.results(function) if isinstance(function, cst.FunctionDef) else []
        return bool(results) and all(isinstance(r, cst.IfExp) and is_detached_tensor(r, evaluator) for r in results)
    if not isinstance(value, cst.Name):
        return False
    if _is_detached_in_place(value, evaluator):
        return True
    definitions = evaluator.flow.definitions(value)
    if any(b.kind is BindingKind.ITERATION and _takes_detached(b.value, evaluator) for b in definitions):
        return True
    bound = [b for b in definitions if b.kind is BindingKind.ASSIGNMENT and not b.path]
    return any(_is_bound_detached(b.node, b.value, value, evaluator) for b in bound if b.value is not None)


def _is_detached_in_place(name: cst.Name, evaluator: Evaluator) -> bool:
    """Whether ``loss.detach_()`` stands before a use of ``loss``, and nothing binds it in between."""
    order = evaluator.tree.order
    others = (cut.value for cut in evaluator.tree.attributes_named("detach_") if isinstance(cut.value, cst.Name))
    cut = [other for other in others if other.value == name.value and order(other) < order(name)]
    bound = [id(binding.node) for binding in evaluator.flow.definitions(name)] if cut else []
    return any([id(binding.node) for binding in evaluator.flow.definitions(each)] == bound for each in cut)


def _takes_detached(items: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    """Whether a loop goes through a dictionary of detached values: ``d = {k: host(v) for k, v in d.items()}``."""
    method = method_call(items, "items", "values")
    held = evaluator.flow.definitions(method.value) if method is not None and isinstance(method.value, cst.Name) else []
    made = [b.value for b in held if isinstance(b.value, cst.DictComp) and not b.path]
    return any(is_detached_tensor(each.value, evaluator) for each in made)


def _is_bound_detached(node: cst.CSTNode, given: cst.BaseExpression, variable: cst.Name, evaluator: Evaluator) -> bool:
    if isinstance(given, (cst.IfExp, cst.Call)) and is_detached_tensor(given, evaluator):
        return True
    branch = evaluator.tree.enclosing(node, cst.If, cst.FunctionDef)
    if not isinstance(branch, cst.If) or not _detaches(given):
        return False
    if evaluator.tree.within(node, branch.body):
        return _is_asked(branch.test, variable, evaluator) or _is_no_number(branch.test, variable, evaluator)
    return _is_no_tensor(branch.test, variable, evaluator)


def _is_asked(test: cst.BaseExpression, variable: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a test asks whether a variable is a tensor, or has what tensors have."""
    if not isinstance(test, cst.Call) or not test.args or not isinstance(variable, cst.Name):
        return False
    asked = test.args[0].value
    has = evaluator.names.qualified(test.func) == "builtins.hasattr" and literal(test.args[-1].value) in _OF_TENSORS
    return isinstance(asked, cst.Name) and asked.value == variable.value and (has or _asks(test, evaluator))


def _is_tensor_or_other(test: cst.BaseExpression, variable: cst.Name, evaluator: Evaluator) -> bool:
    """Whether a test asks whether a variable is a tensor or one of other kinds."""
    if not isinstance(test, cst.Call) or evaluator.names.qualified(test.func) != "builtins.isinstance":
        return False
    if len(test.args) != len(("object", "kinds")):
        return False
    asked, kinds = test.args[0].value, test.args[-1].value
    named = (element.value for element in kinds.elements) if isinstance(kinds, cst.Tuple) else ()
    is_same = isinstance(asked, cst.Name) and asked.value == variable.value
    return is_same and any(evaluator.names.qualified(kind) == "torch.Tensor" for kind in named)


def _is_no_tensor(
    test: cst.BaseExpression, variable: cst.BaseExpression, evaluator: Evaluator, others: frozenset[str] = _NUMBERS
) -> bool:
    """Whether a test holds where a variable is no tensor: ``isinstance(v, float)``, ``not torch.is_tensor(v)``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_asked(test.expression, variable, evaluator)
    if not isinstance(test, cst.Call) or evaluator.names.qualified(test.func) != "builtins.isinstance":
        return False
    if len(test.args) != 2 or not isinstance(variable, cst.Name):
        return False
    asked, kinds = (argument.value for argument in test.args)
    named = [element.value for element in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
    is_same = isinstance(asked, cst.Name) and asked.value == variable.value
    return is_same and all(evaluator.names.qualified(kind) in others for kind in named)


def _is_no_number(test: cst.BaseExpression, variable: cst.Name, evaluator: Evaluator) -> bool:
    """Whether a test holds where a variable is anything but a number: ``not isinstance(v, float)``."""
    if not isinstance(test, cst.UnaryOperation) or not isinstance(test.operator, cst.Not):
        return False
    return isinstance(test.expression, cst.Call) and _is_no_tensor(test.expression, variable, evaluator)


def _detaches(value: cst.BaseExpression) -> bool:
    """Whether a value is ``v.detach()``, ``v.mean().item()``, ``v.detach().cpu()``."""
    while (method := method_call(value)) is not None:
        if method.attr.value in _TAKEN:
            return True
        value = method.value
    return False


def _asks(call: cst.Call, evaluator: Evaluator) -> bool:
    name = evaluator.names.qualified(call.func)
    if name == "torch.is_tensor":
        return len(call.args) == 1
    is_type_test = name == "builtins.isinstance" and len(call.args) == 2
    return is_type_test and evaluator.names.qualified(call.args[1].value) == "torch.Tensor"


def _branch(call: cst.Call, evaluator: Evaluator) -> cst.CSTNode | None:
    """Return the branch that is taken if a test holds, alone or with others that must hold as well."""
    node: cst.CSTNode = call
    parent = evaluator.tree.parent(node)
    while isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And):
        node, parent = parent, evaluator.tree.parent(parent)
    return parent.body if isinstance(parent, (cst.If, cst.IfExp)) and parent.test is node else None
