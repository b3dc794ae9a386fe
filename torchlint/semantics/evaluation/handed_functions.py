"""Functions of the file that are handed on, so that others may run them than call them by name."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator


def is_put_away(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether the file puts a function into a container or an object: ``{"eval": embed}``.

    ``functools.partial(embed, model)``, ``Calibrator(model, embed)`` of a class of the file
    """
    name, is_method = function.name.value, evaluator.definitions.owner(function) is not None
    reads = evaluator.tree.attributes_named(name) if is_method else evaluator.tree.named(name)
    return any(_is_put_away(read, evaluator) for read in reads if read is not function.name)


def _is_put_away(function: cst.CSTNode, evaluator: Evaluator) -> bool:
    holder = evaluator.tree.parent(function)
    if isinstance(holder, (cst.Element, cst.DictElement)):
        return holder.value is function
    call = evaluator.tree.parent(holder) if isinstance(holder, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    is_object = isinstance(evaluator.definitions.definition(call.func), cst.ClassDef)
    return is_object or evaluator.names.qualified(call.func) == "functools.partial"
