"""What would be left around a removed call and do nothing any more: conditions, contexts, loops, handlers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

from torchlint.edits.idle import PRAGMA, comments_inside, is_idle_test
from torchlint.semantics.model import Model

Statement: TypeAlias = cst.BaseSmallStatement | cst.BaseCompoundStatement
IsDropped: TypeAlias = Callable[[cst.Call], bool]

_CONTEXTS = frozenset(
    ("torch.cuda.device", "torch.no_grad", "torch.inference_mode", "torch.enable_grad", "contextlib.nullcontext")
)
_CLAUSES = (cst.Else, cst.ExceptHandler, cst.Finally)
_HARMLESS = (cst.Pass, cst.Expr, cst.Raise, cst.Continue, cst.Break)
"""Statements of handlers of errors that nothing raises any more."""


def whole(statement: cst.Expr, is_dropped: IsDropped, about: re.Pattern[str], model: Model) -> Statement:
    """Return a statement, or the outermost one around it that does nothing but calls that are all dropped.

    A comment in it that does not speak of them (``about``) keeps a statement.
    """
    found: Statement = statement
    while True:
        outer = _around(found, model)
        if outer is None or not _is_idle(outer, is_dropped, model) or not _may_lose_comments(outer, about):
            return found
        found = outer


def are_branches(one: cst.Call, other: cst.Call, model: Model) -> bool:
    """Return whether two calls are what branches of the same ``if``, ``elif`` and ``else`` run."""
    first = _condition(one, model)
    return first is not None and first is _condition(other, model)


def _condition(call: cst.Call, model: Model) -> cst.If | None:
    """The first ``if`` of the chain in one branch of which a call stands."""
    found = model.enclosing(call, cst.If)
    while found is not None and isinstance(above := model.parent(found), cst.If):
        found = above
    return found


def _around(statement: Statement, model: Model) -> cst.BaseCompoundStatement | None:
    """The compound statement that a statement stands in; an ``elif`` is one with its ``if``."""
    for node in model.ancestors(statement):
        is_elif = isinstance(node, cst.If) and isinstance(model.parent(node), cst.If)
        if isinstance(node, (cst.SimpleStatementLine, cst.BaseSuite, *_CLAUSES)) or is_elif:
            continue
        return node if isinstance(node, (cst.If, cst.With, cst.For, cst.Try)) else None
    return None


def _is_idle(node: cst.CSTNode | None, is_dropped: IsDropped, model: Model) -> bool:
    if node is None or isinstance(node, cst.Pass):
        return True
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.Call) and is_dropped(node.value)
    if isinstance(node, (cst.SimpleStatementLine, cst.BaseSuite)):
        return all(_is_idle(part, is_dropped, model) for part in node.body)
    parts: list[cst.CSTNode | None]
    if isinstance(node, cst.If):
        can_go, parts = is_idle_test(node.test), [node.body, node.orelse]
    elif isinstance(node, (cst.Else, cst.Finally)):
        can_go, parts = True, [node.body]
    elif isinstance(node, cst.With):
        can_go, parts = all(_is_plain(item, model) for item in node.items) and not node.asynchronous, [node.body]
    elif isinstance(node, cst.For):
        can_go, parts = _only_counts(node, model), [node.body, node.orelse]
    elif isinstance(node, cst.Try):
        can_go, parts = all(map(_can_go, node.handlers)), [node.body, node.orelse, node.finalbody]
    else:
        return False
    return can_go and all(_is_idle(part, is_dropped, model) for part in parts)


def _is_plain(item: cst.WithItem, model: Model) -> bool:
    """Whether a context changes nothing but what is computed in it."""
    made = item.item
    if item.asname is not None or not isinstance(made, cst.Call):
        return False
    return model.qualified_name(made.func) in _CONTEXTS and all(is_idle_test(each.value) for each in made.args)


def _only_counts(loop: cst.For, model: Model) -> bool:
    """Whether a loop runs over numbers, of which nothing else hears."""
    runs = loop.iter
    if not isinstance(runs, cst.Call) or model.qualified_name(runs.func) != "builtins.range" or loop.asynchronous:
        return False
    if not isinstance(loop.target, cst.Name) or not all(is_idle_test(each.value) for each in runs.args):
        return False
    return all(model.within(use, loop) for use in model.tree.named(loop.target.value))


def _can_go(handler: cst.ExceptHandler) -> bool:
    lines = handler.body.body
    small = [part for line in lines for part in getattr(line, "body", (line,))]
    return all(isinstance(part, _HARMLESS) for part in small)


def _may_lose_comments(statement: cst.CSTNode, about: re.Pattern[str]) -> bool:
    return all(about.search(text) and not PRAGMA.search(text) for text in comments_inside(statement))
