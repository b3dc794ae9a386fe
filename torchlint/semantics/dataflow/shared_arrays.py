"""Arrays that somebody else than a copy of them goes on to use, perhaps to write to."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import canonical

_COPYING = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray")


def is_shared(array: cst.BaseExpression, copy: cst.CSTNode, whole: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether an array is handed out beside a copy of it, or the copy is one of two buffers, or a parameter.

    ``whole`` is the chain of methods that begins with the copy. An optimizer writes to parameters.
    """
    if _is_returned_beside(array, copy, evaluator):
        return True
    holder = _holder(whole, evaluator)
    return holder == "Parameter" or (holder == "register_buffer" and _is_copied_again(array, copy, evaluator))


def _is_returned_beside(array: cst.BaseExpression, copy: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a function gives the array as well as what is computed of it, so that a caller may write to it."""
    result = evaluator.tree.enclosing(copy, cst.Return)
    given = result.value if isinstance(result, cst.Return) else None
    parts = [element.value for element in given.elements] if isinstance(given, cst.Tuple) else []
    return any(canonical(part) == canonical(array) for part in parts)


def _holder(whole: cst.CSTNode, evaluator: Evaluator) -> str:
    """Return what makes something that stays of a copy: ``nn.Parameter(copy)``, ``self.register_buffer(..., copy)``."""
    argument = evaluator.tree.parent(whole)
    made = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    return identifier(made.func) if isinstance(made, cst.Call) else ""


def _is_copied_again(array: cst.BaseExpression, copy: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether the same function makes another tensor of the array, which may share its memory or the other's."""
    frame = evaluator.definitions.enclosing_function(copy) or evaluator.tree.module
    others = (each for each in evaluator.tree.below(frame, cst.Call) if each is not copy and each.args)
    copies = (each for each in others if evaluator.names.qualified(each.func) in _COPYING)
    return any(canonical(each.args[0].value) == canonical(array) for each in copies)
