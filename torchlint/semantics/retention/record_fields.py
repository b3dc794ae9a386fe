"""Records that are put away with graphs, where the file reads those of their fields without: replays of transitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.names import unpack
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.retention.holders import Holders
from torchlint.semantics.retention.idle_graphs import IdleGraphs
from torchlint.semantics.retention.rollouts import is_read_detached
from torchlint.semantics.retention.stores import Store
from torchlint.semantics.tables.container_methods import APPENDS
from torchlint.semantics.values import Graph
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.remembered import remembered

_NAMED_TUPLES = ("collections.namedtuple",)
_MAX_DEPTH = 3


class _PutAway(NamedTuple):
    """What a call hands over to be kept as one record."""

    place: cst.BaseExpression
    """The list that holds the records."""

    fields: tuple[tuple[str, cst.BaseExpression], ...]


class RecordFields:
    """Follows what goes into a record by the name of its field."""

    def __init__(self, evaluator: Evaluator, backward: Backward, holders: Holders, idle: IdleGraphs) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._names = evaluator.names
        self._definitions = evaluator.definitions
        self._backward = backward
        self._holders = holders
        self._idle = idle
        self._read_cut: dict[str, bool] = {}

    @remembered
    def kept(self, call: cst.Call) -> Store | None:
        """Return what ``replay.push(Transition(state, action, log_prob))`` keeps with a graph that nobody wants.

        ``replay.store(state=state, hidden=hidden)``, where that appends a record of its keyword arguments.
        """
        method = method_call(call)
        if method is None or not self._backward.passes() or self._tree.enclosing(call, *LOOPS) is None:
            return None
        if self._evaluator.gradients.disabled(call) or self._evaluator.gradients.left_open(call):
            return None
        found = self._put_away(call, method)
        if found is None or self._holders.is_reset(found.place, call) or self._is_short_lived(found.place):
            return None
        carrying = tuple(v for name, v in found.fields if self._carries(v, 0) and self._is_only_read_cut(name))
        return Store(method.value, carrying, True) if carrying else None

    def _is_short_lived(self, place: cst.BaseExpression) -> bool:
        """Whether the object that holds the records is made anew again and again."""
        function = self._definitions.enclosing_function(place)
        owner = self._definitions.owner(function) if function is not None else None
        return owner is None or self._idle.is_short_lived(owner)

    # What is put away

    def _put_away(self, call: cst.Call, method: cst.Attribute) -> _PutAway | None:
        record = call.args[0].value if len(call.args) == 1 and not call.args[0].star else None
        fields = tuple(self._given(record)) if isinstance(record, cst.Call) else ()
        if fields and method.attr.value in APPENDS and isinstance(method.value, cst.Attribute):
            return _PutAway(method.value, fields)
        keeping = self._method(method)
        if keeping is None:
            return None
        rest = keeping.params.star_kwarg
        named = [(a.keyword.value, a.value) for a in call.args if a.keyword is not None]
        for inner in self._tree.below(keeping.body, cst.Call):
            place = method_call(inner, *APPENDS)
            if place is None or not isinstance(place.value, cst.Attribute) or len(inner.args) != 1:
                continue
            kept = inner.args[0].value
            if fields and isinstance(kept, cst.Name) and kept.value == _only_parameter(keeping):
                return _PutAway(place.value, fields)
            makes = kept.args[-1] if isinstance(kept, cst.Call) and kept.args else None
            if (
                rest is not None
                and makes is not None
                and makes.star == "**"
                and identifier(makes.value) == rest.name.value
            ):
                return _PutAway(place.value, tuple(named))
        return None

    def _method(self, method: cst.Attribute) -> cst.FunctionDef | None:
        owner = self._evaluator.value(method.value).definition
        return self._definitions.method(owner, method.attr.value) if isinstance(owner, cst.ClassDef) else None

    def _given(self, record: cst.Call) -> Iterator[tuple[str, cst.BaseExpression]]:
        """The fields of a record of a class of the file, with what a call gives them."""
        names = self._field_names(record.func)
        yield from bind(record.args, names).named.items() if names else ()

    def _field_names(self, called: cst.BaseExpression) -> list[str]:
        definition = self._definitions.definition(called)
        if isinstance(definition, cst.ClassDef):
            return self._annotated(definition)
        bindings = self._evaluator.scopes.bindings(called) if isinstance(called, cst.Name) else []
        made = bindings[0].value if len(bindings) == 1 else None
        if (
            not isinstance(made, cst.Call)
            or self._names.qualified(made.func) not in _NAMED_TUPLES
            or len(made.args) < 2
        ):
            return []
        fields = made.args[1].value
        if isinstance(fields, (cst.List, cst.Tuple)):
            return [str(literal(element.value)) for element in fields.elements]
        return str(literal(fields) or "").replace(",", " ").split()

    def _annotated(self, definition: cst.ClassDef) -> list[str]:
        """The fields of a data class or a named tuple that makes nothing else of them."""
        makers = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in definition.decorators)
        is_plain = any(self._names.qualified(maker) == "dataclasses.dataclass" for maker in makers)
        is_checked = any(
            self._definitions.method(definition, name) is not None for name in ("__post_init__", "__init__", "__new__")
        )
        if is_checked or not (is_plain or "typing.NamedTuple" in self._definitions.ancestry(definition)):
            return []
        return [identifier(each.target) for each in self._tree.below(definition.body, cst.AnnAssign)]

    # Whether it has a graph, and whether anybody wants that

    def _carries(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value carries a graph, in some of the steps at least: a state that goes on from step to step."""
        if self._has_graph(value, ()):
            return True
        made = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        known = [binding for binding in made if isinstance(binding.value, cst.BaseExpression)]
        return depth < _MAX_DEPTH and any(self._binds_graph(each.value, each.path, depth) for each in known)

    def _binds_graph(self, made: cst.CSTNode | None, path: tuple[int, ...], depth: int) -> bool:
        if not isinstance(made, cst.BaseExpression):
            return False
        if not path or self._has_graph(made, path):
            return self._carries(made, depth + 1) if not path else True
        bound = self._evaluator.flow.definitions(made) if isinstance(made, cst.Name) else []
        return depth < _MAX_DEPTH and any(
            self._binds_graph(each.value, (*each.path, *path), depth + 1) for each in bound if each.value is not made
        )

    def _has_graph(self, value: cst.BaseExpression, path: tuple[int, ...]) -> bool:
        found = unpack(self._evaluator.value(value), path)
        is_sure = found.is_tensor and found.graph is Graph.ATTACHED and found.evidence >= Evidence.INFERRED
        return is_sure and not self._evaluator.gradients.disabled(value)

    def _is_only_read_cut(self, field: str) -> bool:
        """Whether the file reads a field of this name of any object, and each time without its graph."""
        if field not in self._read_cut:
            reads = [each for each in self._tree.attributes_named(field) if not self._is_called_or_bound(each)]
            self._read_cut[field] = bool(reads) and all(is_read_detached(each, self._evaluator) for each in reads)
        return self._read_cut[field]

    def _is_called_or_bound(self, attribute: cst.Attribute) -> bool:
        parent = self._tree.parent(attribute)
        return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.Call) and parent.func is attribute)


def _only_parameter(method: cst.FunctionDef) -> str | None:
    """Return the one parameter that a method has besides its object."""
    own = method.params.params[1:]
    return own[0].name.value if len(own) == 1 else None
