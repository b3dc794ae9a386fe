"""How the dimensions of a tensor lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.syntax.calls import element_at, identifier, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DEPTH = 8
_KEEPS = ("unbind", "float", "half", "to", "type_as", "contiguous")
_REARRANGES = ("einops.rearrange", "einops.layers.torch.Rearrange")
_NORMALIZES = "torch.nn.functional.normalize"


def has_positions_last(tensor: cst.BaseExpression, model: Model, depth: int = 0) -> bool:
    """Return whether the positions of a sequence or image, rather than channels, are visibly the last dimension.

    ``x.reshape(b, n, 3, heads, -1).permute(2, 0, 3, 4, 1)``, ``rearrange(x, "b (head c) h w -> b head c (h w)")``
    """
    if depth > _DEPTH:
        return False
    if isinstance(tensor, cst.Name):
        bound = ((binding.value, binding.path) for binding in model.reaching(tensor))
        made = [
            element_at(v, p) if isinstance(v, cst.Tuple) and all(isinstance(i, int) for i in p) else v for v, p in bound
        ]
        return bool(made) and all(
            isinstance(value, cst.BaseExpression) and has_positions_last(value, model, depth + 1) for value in made
        )
    if isinstance(tensor, cst.Subscript):
        return has_positions_last(tensor.value, model, depth + 1)
    if isinstance(tensor, cst.BinaryOperation):
        return has_positions_last(tensor.left, model, depth + 1)
    if not isinstance(tensor, cst.Call):
        return False
    permuted = method_call(tensor, "permute")
    if permuted is not None:
        shaped = permuted.value if method_call(permuted.value, "reshape", "view") is not None else None
        sizes = [literal(a.value) for a in shaped.args] if isinstance(shaped, cst.Call) else []
        # Queries, keys and values, of all heads, at each position: position 1, channels 4.
        return len(sizes) == 5 and sizes[2] == 3 and literal(tensor.args[-1].value) == 1
    if model.callee(tensor) in _REARRANGES or identifier(tensor.func) == "rearrange":
        return any(_groups_last(literal(argument.value)) for argument in tensor.args)
    if model.callee(tensor) == _NORMALIZES and tensor.args:
        return has_positions_last(tensor.args[0].value, model, depth + 1)
    kept = method_call(tensor, *_KEEPS)
    return kept is not None and has_positions_last(kept.value, model, depth + 1)


def _groups_last(pattern: object) -> bool:
    """Whether a pattern of einops ends with several dimensions in one: ``b (g c) h w -> b g c (h w)``."""
    return isinstance(pattern, str) and "->" in pattern and pattern.rstrip().endswith(")")
