"""Code that runs in daemonic processes, which must not start worker processes of their own."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal

_RUNS = frozenset(
    ("apply", "apply_async", "imap", "imap_unordered", "map", "map_async", "starmap", "starmap_async", "Process")
)
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
    given = [argument.value for argument in call.args[:2]]
    given += [argument.value for each in given if isinstance(each, cst.Call) for argument in each.args[:1]]
    found = (evaluator.definitions.definition(each) for each in given if isinstance(each, (cst.Name, cst.Attribute)))
    return [each for each in found if isinstance(each, cst.FunctionDef)]


def _is_started(call: cst.Call, evaluator: Evaluator) -> bool:
    if identifier(call.func) == "Process":
        daemon = (each.value for each in call.args if each.keyword is not None and each.keyword.value == "daemon")
        return any(literal(each) is True for each in daemon)
    pool = call.func.value if isinstance(call.func, cst.Attribute) else None
    made = evaluator.held_by(pool) if isinstance(pool, (cst.Name, cst.Attribute)) else [pool]
    return any(isinstance(each, cst.Call) and _is_pool(each, evaluator) for each in made)


def _is_pool(made: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a call makes a pool of processes: `multiprocessing.dummy` makes one of threads."""
    is_of_threads = (evaluator.names.qualified(made.func) or "").startswith("multiprocessing.dummy.")
    return identifier(made.func) == "Pool" and not is_of_threads
