"""What annotations say: types of torch and NumPy, containers of them, choices between types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.names import BUILT_ON_TORCH
from torchlint.semantics.values import DTYPE, NUMBER, UNKNOWN, Kind, Value, join, of, sequence, tensor
from torchlint.syntax.calls import is_none, literal

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_LEGACY_TYPES = "Float Double Half BFloat16 Long Int Short Char Byte Bool".split()

_ANNOTATIONS = {
    "torch.Tensor": tensor(),
    **{f"torch.{dtype}Tensor": tensor() for dtype in _LEGACY_TYPES},  # by their dtype, wherever they lie
    "torch.nn.Module": Value(Kind.MODULE),
    **{
        f"torch.nn.{name}": Value(Kind.MODULE, name=f"torch.nn.{name}")
        for name in ("ModuleList", "ModuleDict", "Sequential")
    },
    "torch.utils.data.DataLoader": Value(Kind.DATALOADER),
    "torch.utils.data.Dataset": Value(Kind.DATASET),
    "torch.optim.Optimizer": Value(Kind.OPTIMIZER),
    "torch.device": Value(Kind.DEVICE),
    "torch.dtype": DTYPE,
    "numpy.ndarray": Value(Kind.NDARRAY),
    "builtins.int": NUMBER,
    "builtins.float": NUMBER,
    "builtins.bool": NUMBER,
    "builtins.str": Value(Kind.STRING),
}

_UNIONS = ("typing.Union", "typing.Optional")
_WRAPPERS = ("typing.Annotated", "typing_extensions.Annotated", "typing.Final", "typing.ClassVar")
_SHAPED = "jaxtyping."
_QUOTED = re.compile(r"\s*(?:[\w.]*\bOptional\[)?\s*([A-Za-z_][\w.]*)\s*\]?\s*(?:\|\s*None)?\s*")

_CONTAINERS = {
    **dict.fromkeys(("builtins.tuple", "builtins.list", "typing.Tuple", "typing.List"), Kind.SEQUENCE),
    **dict.fromkeys(("typing.Sequence", "collections.abc.Sequence"), Kind.SEQUENCE),
    **dict.fromkeys(("builtins.dict", "typing.Dict", "typing.Mapping", "collections.abc.Mapping"), Kind.MAPPING),
}


def of_parameter(param: cst.Param, evaluator: Evaluator) -> Value:
    """Return what the annotation of a parameter says; ``Optional[X]`` and ``X | None`` say X."""
    return type_hint(param.annotation.annotation if param.annotation is not None else None, evaluator)


def type_hint(expression: cst.BaseExpression | None, evaluator: Evaluator) -> Value:
    """Return what an annotation says; of a choice between types only what they have in common."""
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.BitOr):
        sides = [side for side in (expression.left, expression.right) if not is_none(side)]
        return join([type_hint(side, evaluator) for side in sides])
    if isinstance(expression, cst.Subscript):
        return _subscripted(expression, evaluator)
    if expression is None:
        return UNKNOWN
    found = _named(_qualified(expression, evaluator))
    definition = evaluator.definitions.definition(expression)
    if not found.known and isinstance(definition, cst.ClassDef):
        return Value(evaluator.definitions.class_kind(definition), definition=definition)
    return found


def _qualified(expression: cst.BaseExpression, evaluator: Evaluator) -> str | None:
    """Return the name of a type, also where it is quoted."""
    quoted = literal(expression) if isinstance(expression, cst.SimpleString) else None
    if not isinstance(quoted, str):
        return evaluator.names.qualified(expression)
    named = _QUOTED.fullmatch(quoted)
    return evaluator.names.qualified_at(named[1], expression) if named is not None else None


def _named(name: str | None) -> Value:
    if name is None:
        return UNKNOWN
    if name.endswith(".Tensor") and name.partition(".")[0] in BUILT_ON_TORCH:
        return _ANNOTATIONS["torch.Tensor"]  # handed on: `from kornia.core import Tensor`
    return _ANNOTATIONS.get(name, UNKNOWN)


def _subscripted(annotated: cst.Subscript, evaluator: Evaluator) -> Value:
    """Return what ``Optional[X]``, ``Annotated[X, ...]``, ``Float[X, "batch 3"]`` or a container of types says."""
    outer = evaluator.names.qualified(annotated.value) or ""
    if outer == "typing.Optional" or outer in _WRAPPERS or outer.startswith(_SHAPED):
        inner = annotated.slice[0].slice
        return type_hint(inner.value, evaluator) if isinstance(inner, cst.Index) else UNKNOWN
    return _annotated_container(annotated, evaluator)


def _annotated_container(annotated: cst.Subscript, evaluator: Evaluator) -> Value:
    """Return what ``list[X]``, ``dict[str, X]`` or ``tuple[X, Y]`` says."""
    kind = _CONTAINERS.get(evaluator.names.qualified(annotated.value) or "")
    inner = [part.slice.value for part in annotated.slice if isinstance(part.slice, cst.Index)]
    if kind is None or not inner:
        return UNKNOWN
    held = [type_hint(part, evaluator).weakened(Evidence.INFERRED) for part in inner]
    is_tuple = len(held) > 1 and kind is Kind.SEQUENCE and not isinstance(inner[-1], cst.Ellipsis)
    if is_tuple:
        return sequence(*held) if any(value.known for value in held) else UNKNOWN
    item = held[-1] if kind is Kind.MAPPING else held[0]
    return of(kind, item) if item.known else UNKNOWN


def may_be_number(param: cst.Param, evaluator: Evaluator) -> bool:
    """Return whether the annotation of a parameter allows a number: ``int | Tensor``, ``Union[float, Tensor]``."""
    return any(type_hint(part, evaluator).kind is Kind.NUMBER for part in _alternatives(param, evaluator))


def may_be_tensor(param: cst.Param, evaluator: Evaluator) -> bool:
    """Return whether the annotation of a parameter allows a tensor, perhaps among other types."""
    return any(type_hint(part, evaluator).is_tensor for part in _alternatives(param, evaluator))


def _alternatives(param: cst.Param, evaluator: Evaluator) -> list[cst.BaseExpression]:
    """Return the types between which the annotation of a parameter leaves the choice."""
    waiting = [param.annotation.annotation] if param.annotation is not None else []
    found = []
    for part in waiting:
        if isinstance(part, cst.BinaryOperation):
            waiting += [part.left, part.right]
        elif isinstance(part, cst.Subscript) and evaluator.names.qualified(part.value) in _UNIONS:
            waiting += [inner.slice.value for inner in part.slice if isinstance(inner.slice, cst.Index)]
        else:
            found.append(part)
    return found


def is_tensor_or_data(variable: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether annotations leave a variable the choice between a tensor and data of Python."""
    if isinstance(variable, cst.Attribute) and isinstance(variable.value, cst.Name):
        owner = evaluator.definitions.receiver(variable.value)
        bound = evaluator.definitions.attribute(owner, variable.attr.value) if owner is not None else []
        values = [each.value if not each.path else None for each in bound]
        return bool(values) and all(isinstance(v, cst.Name) and is_tensor_or_data(v, evaluator) for v in values)
    if not isinstance(variable, cst.Name):
        return False
    bindings = evaluator.flow.definitions(variable)
    given = [evaluator.tree.parent(b.node) for b in bindings if b.kind is BindingKind.PARAMETER]
    made = [b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT and not b.path]
    if not given or len(given) + len(made) < len(bindings):
        return False
    chosen = all(isinstance(p, cst.Param) and _leaves_choice(p, evaluator) for p in given)
    return chosen and all(value is not None and evaluator.value(value).is_tensor for value in made)


def _leaves_choice(param: cst.Param, evaluator: Evaluator) -> bool:
    types = _alternatives(param, evaluator)
    tensors = [part for part in types if type_hint(part, evaluator).kind is Kind.TENSOR]
    data = [part for part in types if part not in tensors]
    return bool(tensors) and all(is_none(part) or _is_of_python(part, evaluator) for part in data)


def _is_of_python(part: cst.BaseExpression, evaluator: Evaluator) -> bool:
    named = evaluator.names.qualified(part.value if isinstance(part, cst.Subscript) else part) or ""
    return named.startswith("builtins.") or named in _CONTAINERS
