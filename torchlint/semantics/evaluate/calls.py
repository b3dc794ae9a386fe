"""Calls: torch's functions and classes, methods, functions of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate import averages, distributions, functions, lambdas, methods
from torchlint.semantics.evaluate.decorated import gives_other
from torchlint.semantics.evaluate.host_modules import runs_on_host
from torchlint.semantics.evaluate.told_results import result_for, without_graph
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.layers import PAIRS, STATES
from torchlint.semantics.values import UNKNOWN, Device, Graph, Kind, Origin, Value, join, of, sequence, tensor
from torchlint.syntax.calls import identifier, method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_COMMON = frozenset("forward step update train eval get add run __init__".split()) | frozenset(
    "state_dict load_state_dict parameters named_parameters buffers modules zero_grad".split()
)
"""Methods that objects of many classes have, those of other files too: the name does not tell whose one is."""


def evaluate(call: cst.Call, evaluator: Evaluator) -> Value:
    """Return what a call gives."""
    qualified = evaluator.names.qualified(call.func)
    if qualified is not None:
        return functions.evaluate(call, qualified, evaluator)
    definition = evaluator.definitions.definition(call.func)
    if isinstance(definition, cst.FunctionDef) and evaluator.definitions.is_property(definition):
        definition = None
    if definition is None:
        called = evaluator.value(call.func)
        if called.kind is Kind.MODULE:
            makes = called.evidence is Evidence.NAMED and _makes_part(call, evaluator)
            return UNKNOWN if makes else module_output(call, called, evaluator)
        if called.kind in (Kind.FUNCTION, Kind.CLASS) and called.name is not None:
            return functions.evaluate(call, called.name, evaluator)
        if called.kind is Kind.CLASS and called.element is not None:
            return called.element  # one of several types of tensors
        if called.kind is Kind.INSTANCE and isinstance(called.definition, cst.ClassDef):
            definition = evaluator.definitions.method(called.definition, "__call__")
        elif called.kind in (Kind.FUNCTION, Kind.CLASS):
            definition = called.definition
    if isinstance(definition, cst.ClassDef):
        return Value(evaluator.definitions.class_kind(definition), definition=definition)
    if isinstance(definition, cst.FunctionDef):
        found = result_for(definition, call, evaluator)
        if not found.known and found.kind is not Kind.PENDING and averages.communicates(definition, evaluator):
            found = averages.averaged(call, definition.name.value, evaluator)
        if evaluator.gradients.disabled(call):
            found = without_graph(found)
        is_open = found.is_tensor and found.device in (Device.UNKNOWN, Device.EITHER)
        return found._replace(device=Device.CPU) if is_open and _stays_on_host(call, definition, evaluator) else found
    if isinstance(call.func, cst.Attribute):
        found = methods.evaluate(call, call.func, evaluator)
        if found.known or found.kind is Kind.PENDING:
            return found
    nameless = lambdas.called(call, evaluator)
    if nameless is not None and (found := evaluator.value(nameless.body)).is_tensor:
        return without_graph(found) if evaluator.gradients.disabled(call) else found
    return functions.unseen(call, identifier(call.func), evaluator)


def _makes_part(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call in ``__init__`` gives the object a part: ``self.encoder_q = base_encoder(classes=10)``."""
    statement, function = evaluator.tree.parent(call), evaluator.definitions.enclosing_function(call)
    if not isinstance(statement, cst.Assign) or function is None or function.name.value != "__init__":
        return False
    if not all(isinstance(target.target, cst.Attribute) for target in statement.targets):
        return False
    return not any(evaluator.value(argument.value).is_tensor for argument in call.args)


def _stays_on_host(call: cst.Call, function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function that others give tensors of the device gets nothing but tensors of the host here.

    It runs nothing but functions of torch and methods of what it is given, and moves nothing.
    """
    if evaluator.definitions.owner(function) is not None or any(a.star for a in call.args):
        return False
    given = [evaluator.value(a.value) for a in call.args]
    tensors = [value for value in given if value.is_tensor]
    others = all(value.kind in (Kind.NUMBER, Kind.STRING, Kind.NONE) for value in given if value not in tensors)
    if not tensors or not others or any(value.device is not Device.CPU for value in tensors):
        return False
    return all(_only_computes(inner, evaluator) for inner in evaluator.tree.below(function.body, cst.Call))


def _only_computes(call: cst.Call, evaluator: Evaluator) -> bool:
    name = evaluator.names.qualified(call.func)
    if name is None:
        return isinstance(call.func, cst.Attribute) and call.func.attr.value not in (
            "to",
            "cuda",
            "type_as",
            "new_tensor",
        )
    return name.startswith(("torch.", "builtins.", "math."))


_NO_OUTPUTS = frozenset((Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.MAPPING, Kind.INSTANCE, Kind.NDARRAY))
"""What a forward pass gives that is no tensor, nor tensors in their order."""


def module_output(call: cst.Call, module: Value, evaluator: Evaluator) -> Value:
    """Return the output of calling a module: tensors with a graph unless gradients are off."""
    arguments = [evaluator.value(a.value) for a in call.args if not a.star]
    graph = _graph_of_loss(arguments) if module.origin is Origin.LOSS else Graph.ATTACHED
    if evaluator.gradients.disabled(call):
        graph = Graph.DETACHED
    on_device = any(v.device is Device.ACCELERATOR for v in arguments if v.is_tensor or v.kind is Kind.BATCH)
    either = any(v.device is Device.EITHER for v in arguments if v.is_tensor or v.kind is Kind.BATCH)
    device = Device.ACCELERATOR if on_device else Device.EITHER if either else Device.UNKNOWN
    compares_there = module.origin is Origin.LOSS and _are_brought_to_host(arguments)
    if compares_there or any(method_call(a.value, "cpu") is not None for a in call.args):
        device = Device.CPU  # where the module must be too
    if device is Device.UNKNOWN and runs_on_host(call, evaluator):
        device = Device.CPU
    origin = Origin.LOSS if module.origin is Origin.LOSS else Origin.OUTPUT
    evidence = min(module.evidence, Evidence.INFERRED)
    if module.origin is Origin.LOSS and any(map(_carries_graph, arguments)):
        evidence = Evidence.INFERRED  # what is named a criterion and takes the output of a model is one
    output = tensor(evidence, device, graph, origin)
    if isinstance(module.definition, cst.ClassDef):
        forward = evaluator.definitions.method(module.definition, "forward")
        if forward is not None:
            return _shaped(evaluator.returned(forward), output)
    if module.name in PAIRS:
        return sequence(output, output)
    states = STATES.get(module.name or "", 0)
    return sequence(output, sequence(output, output) if states > 1 else output) if states else output


def _are_brought_to_host(compared: Sequence[Value]) -> bool:
    """Whether all tensors that a loss compares lie on the host, where a batch lies before it is moved."""
    tensors = [value for value in compared if value.is_tensor]
    on_host = all(value.device is Device.CPU for value in tensors)
    return on_host and any(value.origin is not Origin.BATCH for value in tensors)


def _carries_graph(value: Value) -> bool:
    return value.is_tensor and value.graph is Graph.ATTACHED and value.evidence >= Evidence.INFERRED


def _graph_of_loss(arguments: Sequence[Value]) -> Graph:
    """Return what graph a loss has, which adds no parameters: that of what it compares."""
    graphs = [argument.graph for argument in arguments]
    if not arguments or Graph.ATTACHED in graphs or not arguments[0].is_tensor or graphs[0] is not Graph.DETACHED:
        return Graph.ATTACHED
    return Graph.DETACHED if set(graphs) == {Graph.DETACHED} else Graph.UNKNOWN


def _shaped(returned: Value, output: Value) -> Value:
    """Give the structure that ``forward`` returns the certainty and graph of this call."""
    if returned.elements is not None:
        return Value(Kind.SEQUENCE, output.evidence, elements=tuple(_shaped(e, output) for e in returned.elements))
    if returned.is_tensor:
        graph = Graph.DETACHED if returned.graph is Graph.DETACHED else output.graph
        return output._replace(graph=graph, origin=Origin.LOSS if returned.origin is Origin.LOSS else output.origin)
    if distributions.is_distribution(returned) and returned.element is not None:
        return returned._replace(element=_shaped(returned.element, output))
    if returned.kind in (Kind.MAPPING, Kind.SEQUENCE) and returned.element is not None:
        return of(returned.kind, _shaped(returned.element, output))
    return returned if returned.kind in _NO_OUTPUTS else output


def returned(function: cst.FunctionDef, evaluator: Evaluator) -> Value:
    """Return the join of what the return statements of a function give; of a generator what it hands out."""
    results = evaluator.definitions.results(function)
    if function.decorators and gives_other(function, evaluator):
        return UNKNOWN
    if results:
        found = join([evaluator.value(result) for result in results])
        return _by_contract(function, evaluator) if found.kind is Kind.UNKNOWN else found
    yielded = evaluator.definitions.yielded(function)
    if (
        not yielded or function.decorators or function.asynchronous is not None
    ):  # a decorator may make it something else
        return UNKNOWN
    items = join([_handed_out(each, evaluator) for each in yielded])
    return of(Kind.ITERATOR, items) if items.known else UNKNOWN


def _by_contract(function: cst.FunctionDef, evaluator: Evaluator) -> Value:
    """Return what SpeechBrain's trainer takes from a method of this name: ``compute_objectives`` gives the loss."""
    owner = evaluator.definitions.owner(function) if function.name.value == "compute_objectives" else None
    if owner is None or not evaluator.definitions.is_brain(owner):
        return UNKNOWN
    return tensor(Evidence.INFERRED, graph=Graph.UNKNOWN, origin=Origin.LOSS)


def _handed_out(place: cst.Yield, evaluator: Evaluator) -> Value:
    if isinstance(place.value, cst.From):
        return evaluator.value(place.value.item).iterated()
    return evaluator.value(place.value) if place.value is not None else UNKNOWN


def named_callers(evaluator: Evaluator, names: frozenset[str]) -> dict[int, list[cst.Call]]:
    """Return the calls of each function of the file that name it directly, given all `callable_names`."""
    found: dict[int, list[cst.Call]] = {}
    for call in evaluator.tree.nodes(cst.Call):
        definition = evaluator.definitions.definition(call.func) if identifier(call.func) in names else None
        if isinstance(definition, cst.FunctionDef):
            found.setdefault(id(definition), []).append(call)
    return found


def callable_names(evaluator: Evaluator) -> frozenset[str]:
    """Return the names by which the functions and classes of the file can be called: their own, and other names."""
    tree = evaluator.tree
    definitions: list[cst.FunctionDef | cst.ClassDef] = [*tree.nodes(cst.FunctionDef), *tree.nodes(cst.ClassDef)]
    named = (definition.name.value for definition in definitions)
    targets: list[cst.CSTNode] = [
        target.target for node in tree.nodes(cst.Assign) if isinstance(node.value, cst.Name) for target in node.targets
    ]
    single: list[cst.AnnAssign | cst.NamedExpr] = [*tree.nodes(cst.AnnAssign), *tree.nodes(cst.NamedExpr)]
    targets += [node.target for node in single if isinstance(node.value, cst.Name)]
    others = (node.value for target in targets for node in tree.descendants(target) if isinstance(node, cst.Name))
    held = (target.attr.value for target in targets if isinstance(target, cst.Attribute))
    return frozenset((*named, *others, *held))


def callers(evaluator: Evaluator, names: frozenset[str]) -> dict[int, list[cst.Call]]:
    """Return the calls of each function of the file, given all `callable_names`."""
    by_name: dict[str, list[cst.FunctionDef]] = {}
    for function in evaluator.tree.nodes(cst.FunctionDef):
        by_name.setdefault(function.name.value, []).append(function)
    found: dict[int, list[cst.Call]] = {}
    calls = evaluator.tree.nodes(cst.Call)
    for call in calls if "__call__" in by_name else [c for c in calls if _may_call(c, names)]:
        target = called_function(call, by_name, evaluator)
        for function in [target] if target is not None else _held(call, evaluator):
            found.setdefault(id(function), []).append(call)
    for name, alike in by_name.items():
        if len(alike) > 1 and name != "__init__":
            _share_with_overriding(alike, found, evaluator)
    return found


def _may_call(call: cst.Call, names: frozenset[str]) -> bool:
    return isinstance(call.func, (cst.Name, cst.Subscript)) or identifier(call.func) in names


def _held(call: cst.Call, evaluator: Evaluator) -> list[cst.FunctionDef]:
    """Return the functions of the file that a variable may hold which is called.

    ``self.criterion`` of which ``__init__`` chose one, ``losses[name]`` and ``for loss in (self.a, self.b)`` out of a
    dictionary, list or tuple that is written out; ``get_batch`` that is defined in both branches of a test.
    """
    function, definitions = call.func, evaluator.definitions
    if isinstance(function, cst.Subscript):  # a table of functions chooses by a name from outside, as options do
        return [f for f in _written_out(function.value, evaluator) if definitions.owner(f) is not None]
    if isinstance(function, cst.Name):
        bound = evaluator.flow.definitions(function)
        if len(bound) > 1:
            return _alternatives(bound)
        items = method_call(bound[0].value, "items", "values") if len(bound) == 1 else None
        is_item = len(bound) == 1 and bound[0].kind is BindingKind.ITERATION
        return _written_out(items.value if items is not None else bound[0].value, evaluator) if is_item else []
    if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
        return []
    owner = definitions.receiver(function.value)
    made = definitions.attribute(owner, function.attr.value) if owner is not None else []
    named = [definitions.definition(each.value) for each in made if isinstance(each.value, cst.Name) and not each.path]
    return [f for f in named if isinstance(f, cst.FunctionDef) and definitions.owner(f) is None]


def _alternatives(bound: Sequence[Binding]) -> list[cst.FunctionDef]:
    """Return the functions that a name has, one or the other, where nothing else but a lambda can be what it names."""
    found = [binding.node for binding in bound if isinstance(binding.node, cst.FunctionDef)]
    others = (binding for binding in bound if not isinstance(binding.node, cst.FunctionDef))
    return found if all(isinstance(other.value, cst.Lambda) and not other.path for other in others) else []


def _written_out(container: cst.CSTNode | None, evaluator: Evaluator) -> list[cst.FunctionDef]:
    """Return the functions of the file in a container that is written out, perhaps in a variable."""
    bound: list[cst.CSTNode | None] = []
    if isinstance(container, cst.Name):
        bound = [b.value for b in evaluator.flow.definitions(container) if b.kind is BindingKind.ASSIGNMENT]
    elif isinstance(container, cst.Attribute) and isinstance(container.value, cst.Name):
        owner = evaluator.definitions.receiver(container.value)
        made = evaluator.definitions.attribute(owner, container.attr.value) if owner is not None else []
        bound = [each.value for each in made if not each.path]
    holder = bound[0] if len(bound) == 1 else container
    holder = _passed(holder, evaluator) if isinstance(holder, cst.Name) else holder
    if isinstance(holder, cst.Dict):
        values = [pair.value for pair in holder.elements]
    else:
        values = [e.value for e in holder.elements] if isinstance(holder, (cst.List, cst.Tuple)) else []
    named = map(evaluator.definitions.definition, values)
    return [function for function in named if isinstance(function, cst.FunctionDef)]


def _passed(name: cst.Name, evaluator: Evaluator) -> cst.BaseExpression | None:
    """Return what the only call of a function or class of the file passes for the parameter that a name stands for."""
    bound = evaluator.flow.definitions(name)
    parameter = evaluator.tree.parent(bound[0].node) if len(bound) == 1 else None
    function = evaluator.tree.enclosing(parameter, cst.FunctionDef) if isinstance(parameter, cst.Param) else None
    if not isinstance(parameter, cst.Param) or not isinstance(function, cst.FunctionDef):
        return None
    called = evaluator.definitions.owner(function) if function.name.value == "__init__" else function
    calls = [c for c in evaluator.tree.nodes(cst.Call) if evaluator.definitions.definition(c.func) is called]
    return argument_for(function, parameter, calls[0], evaluator.definitions) if len(calls) == 1 else None


def _share_with_overriding(
    functions: list[cst.FunctionDef], found: dict[int, list[cst.Call]], evaluator: Evaluator
) -> None:
    """Add the calls by which a class calls a method of itself, to those of the methods that override it in the file."""
    definitions = evaluator.definitions
    own = {id(function): found.get(id(function), []) for function in functions}
    for function in functions:
        owner = definitions.owner(function)
        if owner is None or not owner.bases:
            continue
        calls: list[cst.Call] = []
        for base in definitions.bases(owner):
            overridden = definitions.method(base, function.name.value)
            while overridden is not None and id(overridden) in own:
                calls += [call for call in own[id(overridden)] if _is_of_receiver(call, evaluator)]
                holder = definitions.owner(overridden)
                above = definitions.bases(holder)[:1] if holder is not None and holder is not owner else []
                overridden = definitions.method(above[0], function.name.value) if above else None
        if calls:
            found[id(function)] = [*own[id(function)], *calls]


def _is_of_receiver(call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a call is ``self.method()``."""
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    return isinstance(owner, cst.Name) and evaluator.definitions.receiver(owner) is not None


def _may_have(receiver: cst.BaseExpression, method: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether an object may have a method of the file: nothing is known of it, or some of what it can be has it."""
    known = evaluator.value(receiver)
    if not known.known or (known.kind is Kind.MODULE and known.evidence is Evidence.NAMED):
        return True  # what is only named `model` may be an object of any class
    if not isinstance(receiver, cst.Name):
        return False
    made = [b.part for b in evaluator.flow.definitions(receiver) if b.kind is BindingKind.ASSIGNMENT]
    owners = [evaluator.value(part).definition for part in made if part is not None]
    return evaluator.definitions.owner(method) in [owner for owner in owners if isinstance(owner, cst.ClassDef)]


def _of_heir(base: cst.ClassDef, candidates: list[cst.FunctionDef], evaluator: Evaluator) -> cst.FunctionDef | None:
    """Return the method that a class calls on itself and that the only class of the file to derive from it defines."""
    owners = ((method, evaluator.definitions.owner(method)) for method in candidates)
    found = [m for m, owner in owners if owner is not None and base in evaluator.definitions.family(owner)]
    return found[0] if len(found) == 1 else None


def called_function(
    call: cst.Call, by_name: dict[str, list[cst.FunctionDef]], evaluator: Evaluator
) -> cst.FunctionDef | None:
    """Return the function of this file that a call runs: by name, as a method, a constructor or ``__call__``.

    The calls of a module do not count as calls of its ``forward``: other files make them too.
    """
    definition = evaluator.definitions.definition(call.func)
    if isinstance(definition, cst.FunctionDef):
        return definition
    if isinstance(definition, cst.ClassDef):
        return evaluator.definitions.method(definition, "__init__")
    name = identifier(call.func)
    if isinstance(call.func, cst.Attribute) and name in by_name:
        candidates = [f for f in by_name[name] if evaluator.definitions.owner(f) is not None]
        if not candidates:
            return None
        receiver = evaluator.value(call.func.value)
        if isinstance(receiver.definition, cst.ClassDef):
            own = evaluator.definitions.method(receiver.definition, name)
            return own if own is not None else _of_heir(receiver.definition, candidates, evaluator)
        is_one = len(candidates) == 1 and name not in _COMMON and _may_have(call.func.value, candidates[0], evaluator)
        return candidates[0] if is_one else None
    if "__call__" in by_name:
        called = evaluator.value(call.func)
        if isinstance(called.definition, cst.ClassDef) and called.kind is not Kind.CLASS:
            return evaluator.definitions.method(called.definition, "__call__")
    return None
