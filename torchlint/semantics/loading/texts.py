"""Loaders of text: their batches are lists of strings, in which there is nothing to pin."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.loading.loaders import LoaderCall
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, is_none, method_call

_DEPTH = 4
_PATHS = re.compile(r"(^|_)((file|image|img|video|audio)_?)?(paths?|filenames?|urls?)$", re.IGNORECASE)
_OPENS = ("builtins.open", "io.open", "codecs.open", "gzip.open", "pathlib.Path")
_READS = ("read", "readline", "read_text", "strip", "rstrip", "lstrip")
_REGROUPS = ("builtins.list", "builtins.tuple", "builtins.zip", "builtins.map")


def yields_text(loader: LoaderCall, evaluator: Evaluator) -> bool:
    """Return whether the items of a loader are nothing but text and paths, and its collation leaves them so."""
    if loader.collate is not None and not is_none(loader.collate) and not _regroups(loader.collate, evaluator):
        return False
    return bool(loader.datasets) and all(_gives_text(dataset, evaluator) for dataset in loader.datasets)


def _regroups(collate: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a collation does nothing but take items apart: ``list``, ``lambda items: tuple(zip(*items))``."""
    if not isinstance(collate, cst.Lambda):
        return evaluator.names.qualified(collate) in _REGROUPS
    calls = [node for node in evaluator.tree.descendants(collate.body) if isinstance(node, cst.Call)]
    plain = (cst.Name, cst.Call)
    return isinstance(collate.body, plain) and all(evaluator.names.qualified(c.func) in _REGROUPS for c in calls)


def _gives_text(dataset: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether what ``__getitem__`` of a dataset of the file returns is text."""
    value = evaluator.value(dataset)
    owner = value.definition if value.kind is not Kind.CLASS else None
    method = evaluator.definitions.method(owner, "__getitem__") if isinstance(owner, cst.ClassDef) else None
    results = evaluator.definitions.results(method) if method is not None else []
    return bool(results) and all(_is_text(result, evaluator, _DEPTH) for result in results)


def _is_text(made: cst.BaseExpression, evaluator: Evaluator, depth: int) -> bool:
    if depth and isinstance(made, (cst.Tuple, cst.List)):
        return bool(made.elements) and all(_is_text(part.value, evaluator, depth - 1) for part in made.elements)
    if evaluator.value(made).kind is Kind.STRING:
        return True
    if isinstance(made, cst.Name) and depth:
        bindings = evaluator.flow.definitions(made)
        return bool(bindings) and all(b.part is not None and _is_text(b.part, evaluator, depth - 1) for b in bindings)
    if isinstance(made, cst.Subscript):
        held = made.value
        return isinstance(held, cst.Attribute) and bool(_PATHS.search(identifier(held)))
    method = method_call(made, *_READS)
    return method is not None and _is_open(method.value, evaluator, depth)


def _is_open(file: cst.BaseExpression, evaluator: Evaluator, depth: int) -> bool:
    """Whether something is an open file, or what was read of one."""
    if isinstance(file, cst.Name) and depth:
        bound = [binding.value for binding in evaluator.flow.definitions(file)]
        return bool(bound) and all(value is not None and _is_open(value, evaluator, depth - 1) for value in bound)
    method = method_call(file, *_READS)
    if method is not None:
        return _is_open(method.value, evaluator, depth)
    return isinstance(file, cst.Call) and evaluator.names.qualified(file.func) in _OPENS
