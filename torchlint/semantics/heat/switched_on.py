"""Variables that are on for all that the file shows, whatever their names say: ``verbose = rank == 0``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.option_defaults import OptionDefaults
from torchlint.semantics.process.first_process import tells_process
from torchlint.syntax.calls import element_at, literal


def is_on(test: cst.Name | cst.Attribute, defaults: OptionDefaults, evaluator: Evaluator) -> bool:
    """Return whether a variable is on by default, always, or in the first process."""
    if defaults.is_on(test):
        return True
    if isinstance(test, cst.Attribute):
        return _is_only_true(test, evaluator)
    bindings = evaluator.flow.definitions(test)
    return bool(bindings) and all(
        binding.kind is BindingKind.ASSIGNMENT and binding.part is not None and tells_process(binding.part)
        for binding in bindings
    )


def _is_only_true(attribute: cst.Attribute, evaluator: Evaluator) -> bool:
    """Whether a class sets an attribute to True, and nothing in the file assigns anything else to one of that name."""
    definitions = evaluator.definitions
    owner = definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
    bindings = definitions.attribute(owner, attribute.attr.value) if owner is not None else []
    if not bindings or any(literal(element_at(each.value, each.path)) is not True for each in bindings):
        return False
    written = (target.target for target in evaluator.tree.nodes(cst.AssignTarget))
    same = [one for one in written if isinstance(one, cst.Attribute) and one.attr.value == attribute.attr.value]
    return len(same) <= len(bindings)
