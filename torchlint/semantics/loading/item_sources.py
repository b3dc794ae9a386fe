"""What a dataset takes its items from: a stream that others fill, or memory that the program fills itself."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call

_DEPTH = 8  # calls in a chain
_WORKS = re.compile(r"^tok(enizer?)?$|tokeniz|^imread$|^open$|^load(_|$)|^batch_encode|^encode_")
_QUEUE = "collections.deque"


def is_streamed(expression: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    """Return whether a dataset of Hugging Face's makes its items when they are asked for, map functions and all."""
    for _ in range(_DEPTH):
        if isinstance(expression, cst.Name):
            bindings = evaluator.flow.definitions(expression)
            expression = bindings[0].value if len(bindings) == 1 else None
        if isinstance(expression, cst.Subscript):
            expression = expression.value
            continue
        if not isinstance(expression, cst.Call):
            return False
        if method_call(expression, "to_iterable_dataset") is not None:
            return True
        if literal(bind(expression.args).get("streaming")) is True:
            return True
        expression = expression.func.value if isinstance(expression.func, cst.Attribute) else None
    return False


def is_fed_meanwhile(made: cst.Call | None, evaluator: Evaluator) -> bool:
    """Return whether what makes a dataset is given an object of the file that keeps a queue, which others fill."""
    for argument in made.args if made is not None else ():
        value = evaluator.value(argument.value)
        owner = value.definition if value.kind is not Kind.CLASS else None
        if isinstance(owner, cst.ClassDef) and _keeps_queue(owner, evaluator):
            return True
    return False


def _keeps_queue(owner: cst.ClassDef, evaluator: Evaluator) -> bool:
    start = evaluator.definitions.method(owner, "__init__")
    assigned = (node for node in evaluator.tree.below(start.body, cst.Assign)) if start is not None else ()
    return any(
        isinstance(node.value, cst.Call) and evaluator.names.qualified(node.value.func) == _QUEUE for node in assigned
    )


def is_for_jax(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether the function around a call, or the module without one, computes with JAX."""
    if not evaluator.scopes.imports("jax"):
        return False
    enclosing = evaluator.definitions.enclosing_function
    here = enclosing(call)
    used = (node for node in evaluator.tree.nodes(cst.Attribute) if enclosing(node) is here)
    return any((evaluator.names.qualified(node) or "").startswith("jax.") for node in used)


def collates_with_work(collate: cst.BaseExpression | None, evaluator: Evaluator) -> bool:
    """Return whether a collate function of the file tokenizes texts or reads files."""
    if collate is None:
        return False
    named = [f for f in evaluator.tree.nodes(cst.FunctionDef) if f.name.value == identifier(collate)]
    body: cst.CSTNode = named[0].body if len(named) == 1 else collate
    return any(_is_work(call) for call in evaluator.tree.below(body, cst.Call))


def _is_work(call: cst.Call) -> bool:
    given = (argument.keyword.value for argument in call.args if argument.keyword is not None)
    return "return_tensors" in given or _WORKS.search(identifier(call.func)) is not None
