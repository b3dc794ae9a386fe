"""Whether the tensors that the passes of a loop add up have one shape and lie on one device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import literal, method_call

_DEPTH = 4
_SIZED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn"))
_OF_DATA = frozenset(("torch.tensor", "torch.as_tensor"))
_CONSTRUCTORS = frozenset(("torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor"))
_MOVES = ("to", "cuda", "type_as")
_SHAPES = ("view", "reshape", "unsqueeze", "flatten", "expand", "repeat", "ravel")


def may_differ(tensor: cst.BaseExpression, loop: cst.For, evaluator: Evaluator) -> bool:
    """Return whether a tensor visibly has another shape, or lies elsewhere, on some passes of a loop than on others."""
    sources = {id(each): each for each in _sources(tensor, evaluator, _DEPTH)}.values()
    is_mixed = len(sources) > 1 and any(_is_odd(each, evaluator) for each in sources)
    return is_mixed or _changes_device(loop, evaluator)


def _sources(tensor: cst.BaseExpression, evaluator: Evaluator, depth: int) -> Iterator[cst.BaseExpression]:
    """What a tensor can be, each time it is read; an expression stands for itself where nothing more is visible."""
    if not depth:
        yield tensor
    elif isinstance(tensor, cst.IfExp):
        yield from _sources(tensor.body, evaluator, depth)
        yield from _sources(tensor.orelse, evaluator, depth)
    elif isinstance(tensor, cst.Name):
        for binding in evaluator.flow.definitions(tensor):
            if binding.kind is BindingKind.ASSIGNMENT and binding.value is not None and not binding.path:
                yield from _sources(binding.value, evaluator, depth - 1)
            elif binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.Name):
                yield from _sources(binding.node, evaluator, depth - 1)  # it stays what it was
            else:
                yield tensor
    else:
        function = evaluator.definitions.definition(tensor.func) if isinstance(tensor, cst.Call) else None
        results = evaluator.definitions.results(function) if isinstance(function, cst.FunctionDef) else []
        for result in results:
            yield from _sources(result, evaluator, depth - 1)
        if not results:
            yield tensor


def _is_odd(source: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether an expression makes a tensor of one element that is no scalar, or one on the CPU."""
    if method_call(source, "cpu") is not None:
        return True
    shaped = method_call(source, *_SHAPES)
    if shaped is not None and isinstance(source, cst.Call):
        return not (len(source.args) == 1 and _is_empty(source.args[0].value))
    moved = method_call(source, *_MOVES)
    made = moved.value if moved is not None else source
    name = evaluator.names.qualified(made.func) if isinstance(made, cst.Call) else None
    if not isinstance(made, cst.Call) or name is None or not {name} & (_SIZED | _OF_DATA | _CONSTRUCTORS):
        return False
    stays = moved is None and not any(each.keyword is not None and each.keyword.value == "device" for each in made.args)
    given = made.args[0].value if made.args else None
    if name in _OF_DATA:
        return stays or isinstance(given, (cst.List, cst.Tuple))
    return stays or name in _CONSTRUCTORS or given is None or not _is_empty(given)


def _is_empty(size: cst.BaseExpression) -> bool:
    return isinstance(size, (cst.Tuple, cst.List)) and not size.elements


def _changes_device(loop: cst.For, evaluator: Evaluator) -> bool:
    """Whether the passes of a loop choose devices: ``torch.device("cuda", i % 2)``, ``f"cuda:{i}"``, ``x.cuda(i)``."""
    for text in evaluator.tree.below(loop.body, cst.FormattedString):
        first = text.parts[0] if len(text.parts) > 1 else None
        if isinstance(first, cst.FormattedStringText) and first.value == "cuda:":
            return True
    for call in evaluator.tree.below(loop.body, cst.Call):
        indices: list[cst.Arg] = []
        if evaluator.names.qualified(call.func) == "torch.device":
            indices = [each for each in call.args[1:2] if literal(each.value) is None]
        elif method_call(call, "cuda") is not None:
            indices = [each for each in call.args[:1] if each.keyword is None]
        elif method_call(call, "to") is not None and call.args and _is_chosen(call.args[0].value, loop, evaluator):
            return True
        if any(_is_counted(index.value, loop, evaluator) for index in indices):
            return True
    return False


def _is_chosen(place: cst.BaseExpression, loop: cst.For, evaluator: Evaluator) -> bool:
    """Whether a loop goes over devices, or each pass picks one: ``devices[i % len(devices)]``."""
    if isinstance(place, cst.Subscript):
        return _is_counted(place, loop, evaluator)
    targets = evaluator.tree.below(loop.target, cst.Name) if isinstance(place, cst.Name) else []
    bindings = evaluator.flow.definitions(place) if isinstance(place, cst.Name) else []
    if any(binding.node is target for binding in bindings for target in targets):
        return True
    picked = [b.part for b in bindings if isinstance(b.part, cst.Subscript) and evaluator.tree.within(b.node, loop)]
    return any(_is_counted(each, loop, evaluator) for each in picked)


def _is_counted(index: cst.BaseExpression, loop: cst.For, evaluator: Evaluator) -> bool:
    """Whether an index is computed of what each pass of a loop binds anew."""
    names = evaluator.tree.below(index, cst.Name)
    bound = (binding for name in names for binding in evaluator.flow.definitions(name))
    return any(evaluator.tree.within(binding.node, loop) for binding in bound)
