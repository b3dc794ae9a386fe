"""Names: the definitions that reach them, and for parameters what callers pass."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for, position
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate import (
    filled_tensors,
    hints,
    items_put_back,
    lambdas,
    named_classes,
    named_makers,
    running_sums,
    type_hints,
)
from torchlint.semantics.evaluate.narrowing import is_container_here, is_detached_tensor, is_tensor_here
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import CUDA_CONSTRUCTORS, DTYPES, LEGACY_CONSTRUCTORS
from torchlint.semantics.values import UNKNOWN, Device, Graph, Kind, Origin, Value, join, tensor
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_CLASS = re.compile(r"^[A-Z][a-z]\w+$")
_MEANS = ("mean", "sum")
_MADE = (BindingKind.ASSIGNMENT, BindingKind.AUGMENTED)
_LOADER_OF_SPLIT = re.compile(r"^(train|val|valid|validation|test|eval|dev)_?(data_?)?loader$")
_SHAPE = re.compile(r"(^|_)shape$")
_ESTIMATE = re.compile(r"(^|_)(log|pred\w*|soft\w*|mean|expected|estimat\w*)_")
_WHOLE_NUMBERS = re.compile(r"(^|_)(lens?|lengths?|idxs?|inds?|index(es)?|indices|ids)$")


def evaluate(name: cst.Name, evaluator: Evaluator) -> Value:
    """Return the join of all definitions that reach a name; else what its name and use suggest."""
    constant = literal(name)
    if constant is not None:
        return Value(Kind.NUMBER, literal=constant)
    definitions = evaluator.flow.definitions(name)
    found = join([evaluator.bound(binding) for binding in definitions]) if definitions else UNKNOWN
    if not found.known and len(definitions) > 1:
        found = running_sums.added_up(definitions, evaluator)
    if found.kind is Kind.PENDING:
        return found
    if found.is_tensor and is_container_here(name, evaluator):
        return UNKNOWN
    found = filled_tensors.with_graph(items_put_back.placed(found, name, evaluator), name, evaluator)
    if hints.is_start(found):
        found = hints.filled(found, name, evaluator)
    if not found.known:
        qualified = evaluator.names.qualified(name)
        if qualified is not None:
            return of_qualified(qualified)
    if found.is_tensor and found.evidence < Evidence.PROVEN and evaluator.usage.is_text(name):
        return Value(Kind.STRING, Evidence.INFERRED)
    if found.is_tensor and found.evidence < Evidence.INFERRED and evaluator.usage.is_backpropagated(name):
        found = found._replace(evidence=Evidence.INFERRED)
    weak = found.is_tensor and found.evidence < Evidence.INFERRED
    if (weak or not found.known) and _is_used_as_tensor(name, definitions, weak, evaluator):
        found = found._replace(evidence=Evidence.INFERRED) if weak else tensor(Evidence.INFERRED)
    if _is_term_of_loss(name, definitions, found, evaluator):
        found = found if found.is_tensor else tensor(Evidence.INFERRED)
        return found._replace(graph=Graph.ATTACHED, origin=Origin.LOSS)
    if found.is_tensor and found.origin in (Origin.OUTPUT, Origin.UNKNOWN) and hints.names_loss(name.value):
        return found._replace(origin=Origin.LOSS)
    if found.known or found.kind is Kind.NONE:
        return hints.borne_out(found, name, evaluator)
    return tensor(Evidence.INFERRED) if is_tensor_here(name, evaluator) else hints.variable(name, evaluator)


def _is_term_of_loss(name: cst.Name, definitions: list[Binding], found: Value, evaluator: Evaluator) -> bool:
    """Return whether calls compute what a program adds up to what it backpropagates, and nothing else is known of it.

    They are given a model, or what has a graph, or ask a model. Also a sum of what they give that starts with a
    number: ``aux = 0``, ``aux += criterion(output, target)``.
    """
    if not evaluator.usage.is_loss_term(name):
        return False
    is_sum = any(binding.kind is BindingKind.AUGMENTED for binding in definitions)
    is_open = not found.known or (found.is_tensor and found.graph is Graph.UNKNOWN)
    if not (is_open or (is_sum and found.kind is Kind.NUMBER)):
        return False
    starts = [b for b in definitions if b.kind is BindingKind.ASSIGNMENT and is_sum and literal(b.value) is not None]
    made = [binding for binding in definitions if binding not in starts]
    return bool(made) and all(
        b.kind in _MADE
        and isinstance(b.value, cst.Call)
        and not evaluator.gradients.disabled(b.node)
        and (found.is_tensor or _takes_graph(b.value, evaluator))
        for b in made
    )


def _takes_graph(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call is given a model or a tensor with a graph, or asks a model that is given nothing."""
    values = [evaluator.value(argument.value) for argument in call.args]
    if not values and isinstance(call.func, cst.Attribute):
        return evaluator.value(call.func.value).kind is Kind.MODULE or _is_of_model(call.func, evaluator)
    return any(v.kind is Kind.MODULE or (v.is_tensor and v.graph is Graph.ATTACHED) for v in values)


def _is_of_model(method: cst.Attribute, evaluator: Evaluator) -> bool:
    """Return whether a mean is of what a call that is given a model gives: ``rgb, w = render(net, x); w.mean()``."""
    if method.attr.value not in _MEANS:
        return False
    names = evaluator.tree.below(method.value, cst.Name)
    bound = [binding for name in names for binding in evaluator.flow.definitions(name)]
    calls = (binding.value for binding in bound if binding.kind is BindingKind.ASSIGNMENT)
    given = (argument.value for call in calls if isinstance(call, cst.Call) for argument in call.args)
    return any(evaluator.value(each).kind is Kind.MODULE for each in given)


def of_definition(binding: Binding, evaluator: Evaluator) -> Value:
    """Return the value that a binding gives to its name, or that functions of torch show it to have."""
    found = of_binding(binding, evaluator)
    is_guessed = not found.known or (found.is_tensor and found.evidence < Evidence.INFERRED)
    if not is_guessed or not _is_given_to_torch(binding, evaluator):
        return found
    return found.borne_out() if found.known else tensor(Evidence.INFERRED)


def _is_given_to_torch(binding: Binding, evaluator: Evaluator) -> bool:
    """Return whether whatever a binding binds is given to a function that takes nothing but tensors."""
    given = [
        use
        for use in evaluator.usage.given_to_torch(binding.name)
        if any(binding.node is other.node for other in evaluator.flow.definitions(use))
        and evaluator.tree.enclosing(use, cst.IfExp, cst.BooleanOperation, cst.Lambda) is None
    ]
    home = _block_of(binding, evaluator) if given else None
    return home is not None and any(
        block is home and isinstance(line, cst.SimpleStatementLine)
        for use in given
        for block, line in evaluator.flow.blocks(use)[:1]
    )


def _block_of(binding: Binding, evaluator: Evaluator) -> cst.CSTNode | None:
    """Return the block all of which runs with what a binding binds, but for early exits."""
    function = binding.scope.node
    if binding.kind is BindingKind.PARAMETER:
        return function.body if isinstance(function, cst.FunctionDef) else None
    if binding.kind is BindingKind.ITERATION:
        loop = evaluator.tree.enclosing(binding.node, cst.For)
        return loop.body if loop is not None else None
    blocks = evaluator.flow.blocks(binding.node)
    return blocks[0][0] if blocks else None


def _is_used_as_tensor(name: cst.Name, definitions: list[Binding], weak: bool, evaluator: Evaluator) -> bool:
    """Return whether a method that only tensors have is called on the value that a name has here.

    Of what a model is given, arrays of all libraries may have it.
    """
    uses = evaluator.usage.as_tensor(name, or_array=True)
    if uses and not weak and not all(_is_given_to_model(binding, evaluator) for binding in definitions):
        uses = evaluator.usage.as_tensor(name)
    here = {id(binding) for binding in definitions} if uses else set()
    return any(id(binding) in here for use in uses for binding in evaluator.flow.definitions(use))


def _is_given_to_model(binding: Binding, evaluator: Evaluator) -> bool:
    """Return whether a binding is a parameter of a method of a model, other than what makes the model."""
    function = binding.scope.node
    if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
        return False
    owner = evaluator.definitions.owner(function)
    is_method = owner is not None and evaluator.definitions.class_kind(owner) is Kind.MODULE
    return is_method and function.name.value != "__init__"


def of_qualified(name: str) -> Value:
    """Return the value of an imported object that is not called."""
    if name in DTYPES:
        return Value(Kind.DTYPE, name=name, dtype=name)
    if name in CUDA_CONSTRUCTORS or name in LEGACY_CONSTRUCTORS:
        device = Device.ACCELERATOR if name in CUDA_CONSTRUCTORS else Device.CPU
        made = tensor(device=device, origin=Origin.FACTORY)  # of another tensor it keeps the graph
        return Value(Kind.CLASS, name=name, element=made)
    root, _, last = name.rpartition(".")
    if last in ("device", "DEVICE") and root.partition(".")[0] != "torch":
        return Value(Kind.DEVICE, Evidence.INFERRED, device=Device.EITHER)  # a setting of another file
    if _LOADER_OF_SPLIT.match(last) and root.partition(".")[0] != "torch":
        return Value(Kind.DATALOADER, Evidence.NAMED)  # made at the top level of another file
    return Value(Kind.CLASS if last[:1].isupper() else Kind.FUNCTION, name=name)


def of_binding(binding: Binding, evaluator: Evaluator) -> Value:
    """Return the value that a binding gives to its name."""
    kind = binding.kind
    if kind is BindingKind.PARAMETER:
        return parameter(binding, evaluator)
    if kind is BindingKind.FUNCTION and isinstance(binding.node, cst.FunctionDef):
        return Value(Kind.FUNCTION, definition=binding.node)
    if kind is BindingKind.CLASS and isinstance(binding.node, cst.ClassDef):
        return Value(Kind.CLASS, definition=binding.node)
    if kind is BindingKind.AUGMENTED:
        return _augmented(binding, evaluator)
    if binding.value is None:
        return UNKNOWN
    if kind is BindingKind.ITERATION:
        return unpack(_iteration(binding, evaluator), binding.path)
    if kind is BindingKind.ASSIGNMENT:
        return _whole_numbers(binding, unpack(evaluator.value(binding.value), binding.path), evaluator)
    if kind is BindingKind.CONTEXT:
        return unpack(evaluator.value(binding.value), binding.path)
    return UNKNOWN


def unpack(value: Value, path: tuple[int, ...]) -> Value:
    """Return the part of a value at a path of indices."""
    for index in path:
        if value.origin is Origin.OUTPUT and value.elements is None:
            continue  # a model that returns several tensors
        is_beside = value.origin is Origin.LOSS and value.elements is None and index > 0  # a count, what is logged
        value = value.item(index) if index >= 0 else value.iterated()
        value = value.weakened(Evidence.NAMED) if is_beside else value
    return value


def _whole_numbers(binding: Binding, value: Value, evaluator: Evaluator) -> Value:
    """The value of a variable, without a graph if a model gives it beside others and it is named for whole numbers.

    Not if the file shows the model, which may compute with lengths that it predicts.
    """
    is_one = bool(binding.path) and value.is_tensor and value.origin is Origin.OUTPUT
    name = binding.node.value if is_one and isinstance(binding.node, cst.Name) else ""
    if not _WHOLE_NUMBERS.search(name) or _ESTIMATE.search(name):
        return value
    model = evaluator.value(binding.value.func) if isinstance(binding.value, cst.Call) else UNKNOWN
    return value if model.definition is not None else value._replace(graph=Graph.DETACHED)


def _iteration(binding: Binding, evaluator: Evaluator) -> Value:
    for ancestor in evaluator.tree.ancestors(binding.node):
        if isinstance(ancestor, (cst.For, cst.CompFor)):
            return evaluator.iterated(ancestor)
    return UNKNOWN


def _augmented(binding: Binding, evaluator: Evaluator) -> Value:
    """The target before, combined with the operand: tensors win over numbers."""
    statement = evaluator.tree.enclosing(binding.node, cst.AugAssign)
    if statement is None or not isinstance(binding.node, cst.Name):
        return UNKNOWN
    before, operand = evaluator.value(binding.node), evaluator.value(statement.value)
    if not operand.is_tensor:
        return before if operand.known or before.kind is not Kind.NUMBER else UNKNOWN
    is_plain = not before.is_tensor or before.graph is not Graph.ATTACHED  # what is added does not take the graph away
    is_plain = is_plain or is_detached_tensor(binding.node, evaluator)
    found = operand if is_plain else operand._replace(graph=Graph.ATTACHED, origin=before.origin)
    return found.weakened(Evidence.INFERRED)


def parameter(binding: Binding, evaluator: Evaluator) -> Value:
    """Return what a parameter holds: its role, its annotation, what callers in the file pass, its default."""
    node = binding.node
    param = evaluator.tree.parent(node)
    function = binding.scope.node
    if not isinstance(param, cst.Param) or not isinstance(node, cst.Name):
        return UNKNOWN
    owner = evaluator.definitions.receiver(node)
    if owner is not None:
        is_class = isinstance(function, cst.FunctionDef) and _is_given_the_class(function, evaluator)
        return Value(Kind.CLASS if is_class else evaluator.definitions.class_kind(owner), definition=owner)
    if isinstance(function, cst.Lambda):
        mapped = _mapped(function, param, evaluator).weakened(Evidence.INFERRED)
        return mapped if mapped.known else lambdas.passed(function, param, evaluator)
    if not isinstance(function, cst.FunctionDef):
        return UNKNOWN
    if param is function.params.star_arg or param is function.params.star_kwarg:
        return UNKNOWN
    annotated = type_hints.of_parameter(param, evaluator)
    if annotated.kind is Kind.MODULE and _CLASS.match(node.value):  # evaluate(Model: nn.Module): model = Model(envs)
        return Value(Kind.CLASS, Evidence.INFERRED, name="torch.nn.Module")
    holds = annotated.element is not None or annotated.elements is not None
    if annotated.known and not holds:
        if annotated.kind is Kind.DATALOADER:  # what is passed may be known to hand out batches on the device
            passed = _passed(function, param, evaluator)
            return (passed if passed.kind is Kind.DATALOADER else annotated).weakened(Evidence.INFERRED)
        is_shape = annotated.is_tensor and _SHAPE.search(node.value) is not None  # annotated by what it is the shape of
        return UNKNOWN if is_shape else annotated.weakened(Evidence.INFERRED)
    passed = _passed(function, param, evaluator)
    if passed.known:
        return passed.weakened(Evidence.INFERRED)
    if type_hints.may_be_number(param, evaluator):
        return UNKNOWN
    role = hints.parameter_role(function, param, evaluator)
    if role.known and (role.evidence > Evidence.NAMED or not holds):
        return role
    if holds:
        return annotated
    named = named_classes.instance(function, param, evaluator)
    if named.known:
        return named
    made = named_makers.tensor(function, param, evaluator)
    if made.known:
        return made
    default = evaluator.value(param.default) if param.default is not None else UNKNOWN
    return _only_by_default(default) if default.known and default.kind is not Kind.NONE else UNKNOWN


def _mapped(function: cst.Lambda, param: cst.Param, evaluator: Evaluator) -> Value:
    """Return what ``map`` gives a function that stands in its call: ``map(lambda x: x.cuda(), batch)``."""
    holder = evaluator.tree.parent(function)
    call = evaluator.tree.parent(holder) if isinstance(holder, cst.Arg) else None
    if not isinstance(call, cst.Call) or evaluator.names.qualified(call.func) != "builtins.map":
        return UNKNOWN
    pairs = zip(function.params.params, call.args[1:], strict=False)
    given = next((argument for own, argument in pairs if own is param), None)
    is_visible = call.args[0] is holder and given is not None and not any(a.star for a in call.args)
    return evaluator.value(given.value).iterated() if given is not None and is_visible else UNKNOWN


def _is_given_the_class(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether the first parameter of a method is its class, not an instance."""
    decorators = (evaluator.names.qualified(each.decorator) for each in function.decorators)
    return "builtins.classmethod" in decorators or function.name.value in ("__new__", "__init_subclass__")


def _only_by_default(value: Value) -> Value:
    """Return what callers can be expected to pass: something like the default, but no particular number or device."""
    device = Device.EITHER if value.kind is Kind.DEVICE else value.device
    return value._replace(literal=None, device=device).weakened(Evidence.INFERRED)


def _passed(function: cst.FunctionDef, param: cst.Param, evaluator: Evaluator) -> Value:
    callers = evaluator.callers(function)
    if not callers or function.name.value == "forward":
        return UNKNOWN
    values = []
    for call in callers:
        argument = argument_for(function, param, call, evaluator.definitions)
        if argument is not None:
            values.append(evaluator.value(argument))
        elif (spread := _spread(function, param, call, evaluator)).known:
            values.append(spread)
        elif param.default is not None:
            values.append(evaluator.value(param.default))
        else:
            return UNKNOWN
    return join(values) if values else UNKNOWN


def _spread(function: cst.FunctionDef, param: cst.Param, call: cst.Call, evaluator: Evaluator) -> Value:
    """Return what a parameter gets of the parts of a batch: ``self.step(*batch)``."""
    positional = [argument for argument in call.args if argument.keyword is None and argument.star != "**"]
    place = position(function, param, call, evaluator.definitions)
    if any(argument.star for argument in positional[:-1]) or place < len(positional) - 1:
        return UNKNOWN
    if not positional or positional[-1].star != "*":
        return UNKNOWN
    given = evaluator.value(positional[-1].value)
    return unpack(given, (place - len(positional) + 1,)) if given.kind is Kind.BATCH else UNKNOWN
