"""What lies under a key of a dictionary: ``losses["total"] = loss``, and then ``losses["total"]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.container_methods import CHANGES_KEYS
from torchlint.semantics.values import UNKNOWN, Kind, Value
from torchlint.syntax.calls import identifier, literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_OBJECTS = frozenset((Kind.INSTANCE, Kind.MODULE, Kind.OPTIMIZER, Kind.DATALOADER))
DICTIONARIES = ("builtins.dict", "collections.OrderedDict")
_READS = frozenset(("items", "keys", "values", "get", "copy"))
_TRANSPARENT = (cst.SimpleStatementLine, cst.IndentedBlock, cst.With)
"""What a statement stands in that runs whenever what is around that does."""


def held(read: cst.Subscript, key: str, evaluator: Evaluator) -> Value:
    """Return what a dictionary holds under the key that is read, as far as the file shows it."""
    put = _last_put(read, key, evaluator)
    return put if put.kind is not Kind.UNKNOWN else _object(read.value, key, evaluator)


def _last_put(read: cst.Subscript, key: str, evaluator: Evaluator) -> Value:
    """Return what a statement above has put under the key that is read, if no other one may have done so since."""
    owner, order = read.value, evaluator.tree.order
    if not isinstance(owner, cst.Name):
        return UNKNOWN
    function = evaluator.definitions.enclosing_function(read)
    puts = [
        (put, target) for put in evaluator.usage.stored(owner) if (target := put_target(put, evaluator)) is not None
    ]
    above = [(put, target) for put, target in puts if order(put) < order(read) and key_of(target) in (key, None)]
    last, target = max(above, key=lambda each: order(each[0]), default=(None, None))
    if last is None or target is None or key_of(target) != key or not is_same_variable(owner, target, evaluator):
        return UNKNOWN
    if evaluator.definitions.enclosing_function(last) is not function or not _runs_before(last, read, evaluator):
        return UNKNOWN
    bound = (evaluator.flow.statement(binding.node) for binding in evaluator.flow.definitions(owner))
    has_two_names = any(isinstance(each, cst.Assign) and len(each.targets) > 1 for each in bound)
    if has_two_names or _may_change_between(last, read, key, evaluator):
        return UNKNOWN
    return evaluator.value(last).weakened(Evidence.INFERRED)


def _object(owner: cst.BaseExpression, key: str, evaluator: Evaluator) -> Value:
    """Return which object the only dictionary that a variable holds has under a key, if nothing puts another there.

    Numbers and tensors are put back too often, also by functions that are given the dictionary.
    """
    made = _made(owner, evaluator)
    entries = _entries(made, evaluator) if made is not None else {}
    if key not in entries or _may_change(owner, key, evaluator):
        return UNKNOWN
    found = evaluator.value(entries[key])
    return found.weakened(Evidence.INFERRED) if found.kind in _OBJECTS else UNKNOWN


def _made(owner: cst.BaseExpression, evaluator: Evaluator) -> cst.CSTNode | None:
    """The value of the only assignment to a variable, or to an attribute of ``self``."""
    if isinstance(owner, cst.Attribute):
        targets = (each.target for each in evaluator.tree.nodes(cst.AssignTarget))
        if sum(isinstance(each, cst.Attribute) and each.attr.value == owner.attr.value for each in targets) > 1:
            return None  # a class that derives from it may hold another one
    held = evaluator.held_by(owner)
    return held[0] if len(held) == 1 else None


def _entries(made: cst.CSTNode, evaluator: Evaluator) -> dict[str, cst.BaseExpression]:
    """The items of ``{"loss": Mean()}``, or of ``OrderedDict(loss=Mean())``, by their keys."""
    found: dict[str, cst.BaseExpression] = {}
    if isinstance(made, cst.Dict):
        for element in made.elements:
            key = literal(element.key) if isinstance(element, cst.DictElement) else None
            if not isinstance(key, str):
                return {}
            found[key] = element.value
    elif isinstance(made, cst.Call) and evaluator.names.qualified(made.func) in DICTIONARIES:
        for argument in made.args:
            if argument.keyword is None:
                return {}
            found[argument.keyword.value] = argument.value
    return found


def _may_change(owner: cst.BaseExpression, key: str, evaluator: Evaluator) -> bool:
    """Whether the file puts something else under a key of what has this name."""
    name = identifier(owner)
    methods = map(method_call, evaluator.tree.calls_named(*CHANGES_KEYS))
    changed = (m.value for m in methods if m is not None and not isinstance(m.value, cst.Subscript))
    if any(identifier(each) == name for each in changed):
        return True
    targets = (each.target for each in evaluator.tree.nodes(cst.AssignTarget))
    puts = (each for each in targets if isinstance(each, cst.Subscript) and identifier(each.value) == name)
    return any(key_of(put) in (key, None) for put in puts)


def put_target(put: cst.BaseExpression, evaluator: Evaluator) -> cst.Subscript | None:
    """Return where an assignment puts a value, if that is an item of a variable."""
    statement = evaluator.tree.parent(put)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    return target if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) else None


def key_of(target: cst.Subscript) -> object:
    """Return the key of a subscript that is written out, None for every other one."""
    index = target.slice[0].slice if len(target.slice) == 1 else None
    return literal(index.value) if isinstance(index, cst.Index) else None


def is_same_variable(name: cst.Name, target: cst.Subscript, evaluator: Evaluator) -> bool:
    """Return whether a name and the owner of a target are the same variable, bound by the same definitions."""
    owner = target.value
    if not isinstance(owner, cst.Name):
        return False
    here, there = (evaluator.flow.definitions(each) for each in (name, owner))
    return [id(binding.node) for binding in here] == [id(binding.node) for binding in there]


def _runs_before(put: cst.BaseExpression, read: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a statement above runs each time before the one below does."""
    around = evaluator.tree.parent(evaluator.tree.parent(put) or put)
    while isinstance(around, _TRANSPARENT) and not evaluator.tree.within(read, around):
        around = evaluator.tree.parent(around)
    return isinstance(around, (cst.IndentedBlock, cst.Module))


def _may_change_between(put: cst.BaseExpression, read: cst.Subscript, key: str, evaluator: Evaluator) -> bool:
    """Whether something may put another thing under a key between two places, or whoever else has the dictionary."""
    tree, owner = evaluator.tree, read.value
    assert isinstance(owner, cst.Name)
    loops = (a for a in tree.ancestors(read) if isinstance(a, (cst.For, cst.While)) and not tree.within(put, a))
    end = max((tree.last(loop) for loop in loops), default=tree.order(read))
    function = evaluator.definitions.enclosing_function(read)
    for use in tree.named(owner.value):
        if use is owner or evaluator.definitions.enclosing_function(use) is not function:
            continue
        place = tree.order(use)
        if (
            place < end
            and isinstance(tree.parent(use), (cst.Assign, cst.AnnAssign, cst.NamedExpr))
            and not _binds(use, evaluator)
        ):
            return True  # by another name
        if tree.last(put) < place < end and _may_write(use, key, evaluator):
            return True
    return False


def _binds(use: cst.Name, evaluator: Evaluator) -> bool:
    return evaluator.scopes.made_by(use) is not None


def _may_write(use: cst.Name, key: str, evaluator: Evaluator) -> bool:
    """Whether what is done with a dictionary at one place may change what is under a key."""
    parent = evaluator.tree.parent(use)
    if isinstance(parent, cst.Subscript) and parent.value is use:
        return _is_written(parent, evaluator) and key_of(parent) in (key, None)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value not in _READS
    return not isinstance(parent, (cst.ComparisonTarget, cst.For, cst.CompFor, cst.Return))


def _is_written(item: cst.Subscript, evaluator: Evaluator) -> bool:
    """Whether an item is what a statement binds, changes or deletes, by itself or in a tuple."""
    node: cst.CSTNode = item
    parent = evaluator.tree.parent(node)
    while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
        node, parent = parent, evaluator.tree.parent(parent)
    if isinstance(parent, (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor)):
        return parent.target is node
    return isinstance(parent, (cst.AssignTarget, cst.Del, cst.AsName))
