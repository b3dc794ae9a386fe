"""Code of expressions to which a method call is to be appended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def as_receiver(expression: cst.BaseExpression, model: Model) -> str:
    """Return the code of an expression as the receiver of a method, its further lines as far in as they were."""
    text, blocks = model.code(expression), sum(isinstance(n, cst.IndentedBlock) for n in model.ancestors(expression))
    text = text if '"""' in text or "'''" in text else text.replace("\n", "\n" + "    " * blocks)
    is_atom = isinstance(expression, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or bool(expression.lpar)
    return text if is_atom else f"({text})"
