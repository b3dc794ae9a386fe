"""What collate functions make of items: tensors, or objects of classes whose ``to`` may take no ``non_blocking``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.narrowing import is_tensor_here
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.tables.loaders import BLOCKING_CLASSES, LOADER_KINDS
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, element_at, identifier, is_none, literal, method_call
from torchlint.syntax.remembered import remembered

_DEPTH = 4
_DATALOADER = "torch.utils.data.DataLoader"
_HANDS_ON = ("builtins.", "itertools.", "tqdm.")
_TENSORS = ("torch.", "torchvision.", "numpy.", "builtins.", "torch_geometric.")
"""Where classes and functions come from that give tensors, numbers, or what takes the flag."""

_TOKENIZES = ("return_tensors", "padding", "truncation")


class Collations:
    """Follows what a loop unpacks to the function that has made it."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def may_be_object(self, move: Move, kind: Kind) -> bool:
        """Return whether what moves may be an object that copies as it likes: a whole batch, a part of such a class.

        The file names the class, or the collate function in it makes something that is no tensor.
        """
        if kind is Kind.BATCH or move.method != "to":
            return kind is Kind.BATCH
        if self.own_move(move.receiver) is not None:
            return True
        is_asked = isinstance(move.receiver, cst.Name) and is_tensor_here(move.receiver, self._evaluator)
        made = [*self._made(move.receiver), *(self._in_dictionary(move.receiver) if not is_asked else ())]
        if self._evaluator.vocabulary.mentions(BLOCKING_CLASSES) or any(map(self._is_object, made)):
            return True
        if made or self.is_tensor(move) or not isinstance(move.receiver, cst.Name):
            return False
        is_unpacked = any(path and not method_call(v, "items") for path, v in self._sources(move.receiver))
        may_be = (is_unpacked and bool(self._own_moves)) or self._goes_with_lists(move.receiver)
        return may_be and not self._evaluator.usage.as_tensor(move.receiver)

    def is_tensor(self, move: Move) -> bool:
        """Return whether what moves is a tensor: torch's own collate function made it, or it has a ``cuda`` method."""
        loaders = [loader for _, source in self._sources(move.receiver) for loader in self._loaders(source, _DEPTH)]
        return move.method != "to" or (bool(loaders) and all(map(self._is_default, loaders)))

    @remembered
    def own_move(self, moved: cst.BaseExpression) -> cst.FunctionDef | None:
        """Return the ``to`` of the class of this file that what is moved is an object of, if it takes no flag.

        An annotation says so, a test before the move, or the collate function that makes it.
        """
        for made in (*self._declared(moved), *map(self._class_of, self._made(moved))):
            if made is not None and not self._takes_flag(made):
                return self._evaluator.definitions.method(made, "to")
        return None

    def copies_unblocked(self, moved: cst.BaseExpression) -> bool:
        """Return whether what is moved has a ``to`` of its own, in this file, that does not wait for its copies."""
        method = self.own_move(moved)
        if method is None and self._evaluator.value(moved).kind is Kind.BATCH:  # then it may be of any of these
            return bool(self._own_moves) and all(map(self._is_unblocked, self._own_moves))
        return method is not None and self._is_unblocked(method)

    def _is_unblocked(self, method: cst.FunctionDef) -> bool:
        given = self._evaluator.tree.below(method, cst.Arg)
        return any(a.keyword is not None and a.keyword.value == "non_blocking" for a in given)

    @cached_property
    def _own_moves(self) -> list[cst.FunctionDef]:
        """The ``to`` of each class of the file that is no module, where it takes no flag."""
        definitions = self._evaluator.definitions
        classes = (c for c in self._evaluator.tree.nodes(cst.ClassDef) if definitions.class_kind(c) is not Kind.MODULE)
        methods = (definitions.method(c, "to") for c in classes if not self._takes_flag(c))
        return [method for method in methods if method is not None]

    def _goes_with_lists(self, part: cst.Name) -> bool:
        """Whether a loop unpacks a list beside a part, whose items are moved, or a part beside the list it is in.

        So are the batches of detectors, whose images may be an object that pads them, and the items objects of boxes.
        """
        tree = self._evaluator.tree
        lists = [v for path, v in self._sources(part) if isinstance(v, cst.Name) and not path]
        owner = lists[0] if lists else part
        for binding in self._evaluator.flow.definitions(owner):
            loop = tree.enclosing(binding.node, cst.For, cst.CompFor)
            if binding.kind is not BindingKind.ITERATION or not isinstance(loop, cst.For):
                continue
            bound = {name.value for name in tree.below(loop.target, cst.Name)} - {owner.value}
            moved = {identifier(m.value) for m in map(_move, tree.below(loop.body, cst.Call)) if m is not None}
            walked = {identifier(w.iter) for w in tree.below(loop.body, cst.CompFor) if self._moves(w)}
            if bound & (moved if lists else walked):
                return True
        return False

    def _moves(self, walk: cst.CompFor) -> bool:
        """Whether a comprehension moves what it goes over."""
        tree = self._evaluator.tree
        around = tree.parent(walk)
        return around is not None and any(_move(call) is not None for call in tree.below(around, cst.Call))

    def _declared(self, moved: cst.BaseExpression) -> Iterator[cst.ClassDef | None]:
        """The classes of the file that the function says a variable is of: ``batch: Batch``, ``isinstance``."""
        if not isinstance(moved, cst.Name):
            return
        tree, definitions = self._evaluator.tree, self._evaluator.definitions
        around = definitions.enclosing_function(moved)
        for declared in tree.nodes(cst.AnnAssign):
            is_it = declared.value is None and identifier(declared.target) == moved.value
            if is_it and definitions.enclosing_function(declared) is around:
                yield self._named_class(declared.annotation.annotation)
        bound = [id(binding.node) for binding in self._evaluator.flow.definitions(moved)]
        for test in tree.nodes(cst.Assert):
            asked = _asked(test.test, moved.value) if definitions.enclosing_function(test) is around else None
            if asked is not None and [id(b.node) for b in self._evaluator.flow.definitions(asked[0])] == bound:
                yield self._named_class(asked[1])

    def _named_class(self, named: cst.BaseExpression) -> cst.ClassDef | None:
        found = self._evaluator.definitions.definition(named)
        return found if isinstance(found, cst.ClassDef) else None

    def _class_of(self, made: cst.BaseExpression, depth: int = _DEPTH) -> cst.ClassDef | None:
        """The class of the file that an expression makes an object of."""
        if isinstance(made, cst.Name) and depth:
            parts = (binding.part for binding in self._evaluator.flow.definitions(made))
            found = (self._class_of(part, depth - 1) for part in parts if part is not None)
            return next((each for each in found if each is not None), None)
        return self._named_class(made.func) if isinstance(made, cst.Call) else None

    def _sources(self, part: cst.BaseExpression) -> Iterator[tuple[tuple[int, ...], cst.BaseExpression]]:
        """What loops take a part from, and where in each item it stands."""
        bindings = self._evaluator.flow.definitions(part) if isinstance(part, cst.Name) else []
        yield from ((b.path, b.value) for b in bindings if b.kind is BindingKind.ITERATION and b.value is not None)

    def _loaders(self, source: cst.CSTNode | None, depth: int) -> Iterator[cst.Call | None]:
        """The calls that make what a loop goes over; None for what cannot be followed."""
        if isinstance(source, cst.Name) and depth:
            bindings = self._evaluator.flow.definitions(source)
            found = [each for b in bindings for each in self._loaders(b.part, depth - 1)]
            yield from found or (None,)
        elif isinstance(source, cst.Call) and depth:
            name = self._evaluator.names.qualified(source.func) or ""
            given = source.args[0].value if source.args else None
            maker = self._evaluator.definitions.definition(source.func)
            if name in LOADER_KINDS:
                yield source
            elif isinstance(maker, cst.FunctionDef):
                results = self._evaluator.definitions.results(maker)
                yield from [each for r in results for each in self._loaders(r, depth - 1)] or (None,)
            else:
                yield from self._loaders(given, depth - 1) if name.startswith(_HANDS_ON) else (None,)
        else:
            yield None

    def _is_default(self, loader: cst.Call | None) -> bool:
        if loader is None or self._evaluator.names.qualified(loader.func) != _DATALOADER:
            return False
        given = bind(loader.args, LOADER_KINDS[_DATALOADER].parameters.split())
        collate = given.get("collate_fn")
        return not given.open and (collate is None or is_none(collate))

    def _made(self, part: cst.BaseExpression, depth: int = _DEPTH) -> Iterator[cst.BaseExpression]:
        """The expressions that a part of a batch comes from in the collate functions of the file."""
        for path, source in self._sources(part):
            if isinstance(source, cst.Name) and depth and not path:  # one of a list: `[t.to(device) for t in targets]`
                yield from filter(None, map(_item, self._made(source, depth - 1)))
            for loader in self._loaders(source, _DEPTH):
                collate = bind(loader.args).get("collate_fn") if loader is not None else None
                for result in self._results(collate, _DEPTH):
                    made = (element_at(result, path[start:]) for start in range(len(path)))
                    yield from (each for each in (*made, None if path else result) if each is not None)

    def _in_dictionary(self, part: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The expressions that a part of a batch may come from in a dictionary that a collate function writes out.

        So are ``batch["boxes"]``, ``batch[key]`` and the values that ``batch.items()`` or ``batch.values()`` gives.
        """
        key = None
        if isinstance(part, cst.Subscript) and isinstance(part.slice[0].slice, cst.Index):
            key, owner = literal(part.slice[0].slice.value), part.value
        else:
            bound = self._evaluator.flow.definitions(part) if isinstance(part, cst.Name) else []
            owners = [walk.value for walk in (method_call(b.value, "items", "values") for b in bound) if walk]
            owner = owners[0] if owners else part
        if owner is part:
            return
        for _, source in self._sources(owner):
            for loader in self._loaders(source, _DEPTH):
                collate = bind(loader.args).get("collate_fn") if loader is not None else None
                for result in self._results(collate, _DEPTH):
                    elements = result.elements if isinstance(result, cst.Dict) else ()
                    for element in elements:
                        if isinstance(element, cst.DictElement) and key in (None, literal(element.key)):
                            yield element.value

    def _results(self, collate: cst.CSTNode | None, depth: int) -> Iterator[cst.BaseExpression]:
        """What a collate function returns, also one that is made by a function, a class or ``partial``."""
        if isinstance(collate, cst.Lambda):
            yield collate.body
        if collate is None or not depth or isinstance(collate, cst.Lambda):
            return
        definitions = self._evaluator.definitions
        if isinstance(collate, cst.Call) and self._evaluator.names.qualified(collate.func) == "functools.partial":
            yield from self._results(collate.args[0].value, depth - 1) if collate.args else ()
            return
        made = definitions.definition(collate.func if isinstance(collate, cst.Call) else collate)
        if made is None and isinstance(collate, cst.Name):
            for binding in self._evaluator.flow.definitions(collate):
                is_given = binding.kind is BindingKind.PARAMETER
                for value in passed_for(binding, self._evaluator) if is_given else (binding.part,):
                    yield from self._results(value, depth - 1)
        if isinstance(made, cst.ClassDef):
            made = definitions.method(made, "__call__")
        elif isinstance(made, cst.FunctionDef) and isinstance(collate, cst.Call):
            for inner in definitions.results(made):
                yield from self._results(inner, depth - 1)
            return
        yield from definitions.results(made) if isinstance(made, cst.FunctionDef) else ()

    def _is_object(self, made: cst.BaseExpression, depth: int = _DEPTH) -> bool:
        """Whether an expression makes an object of a class that is not torch's, or what a tokenizer gives."""
        if isinstance(made, cst.Name) and depth:
            bindings = self._evaluator.flow.definitions(made)
            return any(b.part is not None and self._is_object(b.part, depth - 1) for b in bindings)
        if isinstance(made, cst.Subscript) and isinstance(made.value, cst.Name):  # an item as the dataset gives it
            bindings = self._evaluator.flow.definitions(made.value)
            return bool(self._own_moves) and any(b.kind is BindingKind.PARAMETER for b in bindings)
        if not isinstance(made, cst.Call):
            return False
        if any(a.keyword is not None and a.keyword.value in _TOKENIZES for a in made.args):
            return True
        name = self._evaluator.names.qualified(made.func)
        definition = self._evaluator.definitions.definition(made.func)
        if isinstance(definition, cst.ClassDef):
            return not self._takes_flag(definition)
        return bool(name) and identifier(made.func)[:1].isupper() and not (name or "").startswith(_TENSORS)

    def _takes_flag(self, made: cst.ClassDef) -> bool:
        """Whether the ``to`` of a class of the file takes what that of a tensor takes."""
        method = self._evaluator.definitions.method(made, "to")
        if method is None:
            return "torch.Tensor" in self._evaluator.definitions.ancestry(made)
        names = [param.name.value for param in (*method.params.params, *method.params.kwonly_params)]
        return "non_blocking" in names or method.params.star_kwarg is not None


def _move(call: cst.Call) -> cst.Attribute | None:
    return method_call(call, "to", "cuda")


def _asked(test: cst.BaseExpression, variable: str) -> tuple[cst.Name, cst.BaseExpression] | None:
    """Return the variable and the class of ``isinstance(variable, Class)``."""
    if not isinstance(test, cst.Call) or identifier(test.func) != "isinstance" or len(test.args) != len(("x", "kind")):
        return None
    asked, kind = (argument.value for argument in test.args)
    return (asked, kind) if isinstance(asked, cst.Name) and asked.value == variable else None


def _item(made: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return what stands for the items of a list that is written out: of ``[Box(b) for b in boxes]`` the call."""
    if isinstance(made, (cst.ListComp, cst.GeneratorExp)):
        return made.elt
    return made.elements[0].value if isinstance(made, (cst.List, cst.Tuple)) and made.elements else None
