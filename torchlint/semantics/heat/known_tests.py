"""What a variable that is tested stands for: what it was assigned, what callers pass, what a property returns."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.syntax.calls import literal


def stands_for(test: cst.Name | cst.Attribute, evaluator: Evaluator) -> Sequence[cst.BaseExpression | None]:
    """Return the expressions of which a variable has the value, None among them for what is not visible."""
    if isinstance(test, cst.Attribute):
        return _of_property(test, evaluator)
    bindings = evaluator.flow.definitions(test)
    if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER:
        passed, default = passed_for(bindings[0], evaluator), bindings[0].value
        is_off = default is None or literal(default) is False  # what nobody passes leads nowhere then
        return passed if is_off or not passed else [*passed, default]
    return [b.part or b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT]


def _of_property(attribute: cst.Attribute, evaluator: Evaluator) -> Sequence[cst.BaseExpression | None]:
    """What a property of a class of the file returns: ``logger.due``."""
    definitions, of = evaluator.definitions, attribute.value
    owner = definitions.receiver(of) if isinstance(of, cst.Name) else None
    made = owner if owner is not None else evaluator.value(of).definition
    method = definitions.method(made, attribute.attr.value) if isinstance(made, cst.ClassDef) else None
    is_property = method is not None and definitions.is_property(method)
    return definitions.results(method) if method is not None and is_property else []
