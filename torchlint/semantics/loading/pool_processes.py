"""Code that runs in daemonic processes, which must not start worker processes of their own."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal

_RUNS = frozenset(
    ("apply", "apply_async", "imap", "imap_unordered", "map", "map_async", "starmap", "starmap_async", "Process")
)
_PLACES = 2
"""Among the first of the arguments is the function, whatever its keyword."""
_DEPTH = 4  # callers on the way to the function that a pool is given


def is_daemonic(node: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether the function around a node runs in a ``multiprocessing.Pool``, or in a daemonic process.

    Those of ``concurrent.futures`` may have children since Python 3.9.
    """
    handed = {id(given) for call in evaluator.tree.nodes(cst.Call) for given in _handed(call, evaluator)}
    around = evaluator.definitions.enclosing_function(node)
    functions = {id(around): around} if around is not None else {}
    for _ in range(_DEPTH if handed else 0):
        if not handed.isdisjoint(functions):
            return True
        calls = (call for function in functions.values() for call in evaluator.callers(function))
        callers = (evaluator.definitions.enclosing_function(call) for call in calls)
        functions = {id(caller): caller for caller in callers if caller is not None}
    return False


def _handed(call: cst.Call, evaluator: Evaluator) -> list[cst.FunctionDef]:
    """The functions of the file that a call hands to a pool, also by ``partial``, or to a daemonic process."""
    if identifier(call.func) not in _RUNS or not _is_started(call, evaluator):
        return []
    given = [each.value for i, each in enumerate(call.args) if i < _PLACES or _keyword(each) in ("target", "func")]
    given += [argument.value for each in given if isinstance(each, cst.Call) for argument in each.args[:1]]
    found = (evaluator.definitions.definition(each) for each in given if isinstance(each, (cst.Name, cst.Attribute)))
    return [each for each in found if isinstance(each, cst.FunctionDef)]


def _is_started(call: cst.Call, evaluator: Evaluator) -> bool:
    if identifier(call.func) == "Process":
        told = any(_keyword(each) == "daemon" and literal(each.value) is True for each in call.args)
        return told or _is_made_daemonic(call, evaluator)
    pool = call.func.value if isinstance(call.func, cst.Attribute) else None
    made = evaluator.held_by(pool) if isinstance(pool, (cst.Name, cst.Attribute)) else [pool]
    return any(isinstance(each, cst.Call) and _is_pool(each, evaluator) for each in made)


def _is_made_daemonic(process: cst.Call, evaluator: Evaluator) -> bool:
    """Whether the file says so of a process that it has made: ``process.daemon = True``."""
    for target in evaluator.tree.nodes(cst.AssignTarget):
        place, statement = target.target, evaluator.tree.parent(target)
        if isinstance(place, cst.Attribute) and place.attr.value == "daemon" and isinstance(statement, cst.Assign):
            held = evaluator.held_by(place.value) if isinstance(place.value, (cst.Name, cst.Attribute)) else []
            if literal(statement.value) is True and any(each is process for each in held):
                return True
    return False


def _keyword(argument: cst.Arg) -> str:
    return argument.keyword.value if argument.keyword is not None else ""


def _is_pool(made: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a call makes a pool of processes: `multiprocessing.dummy` makes one of threads."""
    is_of_threads = (evaluator.names.qualified(made.func) or "").startswith("multiprocessing.dummy.")
    return identifier(made.func) == "Pool" and not is_of_threads
