"""Datasets: where their items come from, as far as the file shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.loading.item_sources import is_fed_meanwhile, is_streamed
from torchlint.semantics.loading.placed_datasets import PlacedDatasets, is_extracted, shows_accelerator
from torchlint.semantics.tables.torch_api import DATASET_WRAPPERS, IN_MEMORY_DATASETS
from torchlint.semantics.tensors.moves import Moves
from torchlint.semantics.values import Device, Kind, Value
from torchlint.syntax.calls import bind, element_at, identifier, is_none, literal, method_call
from torchlint.syntax.canonical import is_same

_HANDLES = frozenset(
    (
        "builtins.open h5py.File sqlite3.connect lmdb.open lmdb.Environment tables.open_file zipfile.ZipFile "
        "tarfile.open tarfile.TarFile cv2.VideoCapture netCDF4.Dataset pymongo.MongoClient psycopg2.connect "
        "redis.Redis gzip.open rasterio.open"
    ).split()
)
_CHEAP_CALLS = frozenset(
    (
        "torch.tensor torch.as_tensor torch.from_numpy torch.is_tensor torch.FloatTensor torch.LongTensor "
        "torch.Tensor torch.zeros torch.zeros_like torch.ones torch.stack torch.cat builtins.len builtins.int "
        "builtins.float builtins.dict builtins.tuple builtins.list builtins.isinstance numpy.array numpy.asarray "
        "numpy.int64 numpy.float32 numpy.expand_dims"
    ).split()
)
_CHEAP_METHODS = frozenset(
    (
        "float long int double half bool byte to type astype copy clone view reshape unsqueeze squeeze permute "
        "transpose tolist item size dim numpy detach contiguous flatten t items keys values get flip roll sum mean abs "
        "clamp argmax narrow expand add sub mul div neg"
    ).split()
)
_TENSOR_METHODS = ("nonzero", "unsqueeze", "squeeze", "view", "long", "argsort", "permute", "clone", "detach")
# Methods that others than tensors have; that of a tensor gives another tensor.
_ARITHMETIC = ("add", "sub", "mul", "div", "float", "double", "half", "type", "to", "transpose", "reshape")
_ARRAY_KINDS = (Kind.TENSOR, Kind.NDARRAY, Kind.SEQUENCE)
_VISION = "torchvision.datasets."
_CHAINS = frozenset(("Compose", "RandomApply", "RandomChoice", "RandomOrder"))
_TENSORS = "torch.utils.data.TensorDataset"
_INDICES = ("builtins.range", "torch.arange", "torch.randperm", "torch.nonzero", "torch.argsort", "numpy.arange")
_INDEX_METHODS = ("nonzero", "argsort")
_MOST_STEPS = 8
"""Through how many variables, parts and methods indices are followed back."""

_STAND_INS = ("torch.rand", "torch.randn")
_WRAPPERS = DATASET_WRAPPERS | {_TENSORS}
_WORK = (cst.For, cst.While, cst.With, cst.ListComp, cst.DictComp, cst.GeneratorExp, cst.Try)
_LAZY = re.compile(
    r"(^|_)(datasets?|data_?source|ds|subset|base|parent|wrapped|reader|store|db|env|h5\w*|hdf\w*|file|archive|"
    r"lmdb|zarr|mmap)$",
    re.IGNORECASE,
)
_EAGER = ("map", "filter")  # what Hugging Face's datasets store is no tensor of a device any more
_DEPTH = 5  # a transform in a chain in a chain, of a dataset in a wrapper


class Datasets:
    """Looks at what a loader is given."""

    def __init__(self, evaluator: Evaluator, moves: Moves) -> None:
        self._evaluator, self._tree = evaluator, evaluator.tree
        self._moves = moves
        self._placed = PlacedDatasets(evaluator, moves)

    def makes_items(self, class_def: cst.ClassDef) -> list[cst.FunctionDef]:
        """Return the methods in which a map-style dataset makes an item: ``__getitem__`` and those that it calls."""
        first = self._evaluator.definitions.method(class_def, "__getitem__")
        found = [first] if first is not None else []
        for method in found:
            for call in self._tree.below(method.body, cst.Call):
                owner = call.func.value if isinstance(call.func, cst.Attribute) else None
                if isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None:
                    called = self._evaluator.definitions.method(class_def, identifier(call.func))
                    if called is not None and called not in found:
                        found.append(called)
        return found

    def in_memory(self, expression: cst.BaseExpression) -> bool:
        """Return whether items are only taken out of tensors, arrays or lists that are in memory already."""
        value = self._evaluator.value(expression)
        made = self._making_call(expression)
        if made is not None and self._evaluator.names.qualified(made.func) in _STAND_INS:
            return False  # random numbers stand in for the dataset that is yet to come
        if value.kind in (*_ARRAY_KINDS, Kind.ITERATOR, Kind.MAPPING) or self._is_made_in_memory(expression):
            return True
        if value.name in IN_MEMORY_DATASETS or is_fed_meanwhile(made, self._evaluator):
            return True
        class_def = self.class_of(value)
        if class_def is None:
            return False
        if any(name in IN_MEMORY_DATASETS for name in self._evaluator.definitions.ancestry(class_def)):
            return True
        return self._evaluator.definitions.method(class_def, "__getitems__") is not None or self._only_indexes(
            class_def
        )

    def _is_made_in_memory(self, expression: cst.BaseExpression) -> bool:
        """Whether a value is ``[example] * 10``, or comes out of a method of tensors: ``mask.nonzero().view(-1)``."""
        if isinstance(expression, cst.Name):
            if "tensors" in self._evaluator.usage.attributes(expression):
                return True  # a `TensorDataset` has them
            bindings = self._evaluator.flow.definitions(expression)
            if bindings and all(b.value is not None and _ends_in_memory(b.value) for b in bindings):
                return True
        return _ends_in_memory(expression) or self._is_indices(expression)

    def class_of(self, value: Value) -> cst.ClassDef | None:
        """Return the class of a dataset, if the file defines it."""
        is_class = isinstance(value.definition, cst.ClassDef) and value.kind is not Kind.CLASS
        return value.definition if is_class and isinstance(value.definition, cst.ClassDef) else None

    def _only_indexes(self, class_def: cst.ClassDef) -> bool:
        """Whether making an item takes no work: no loop, no file, no call that could decode or transform anything."""
        method = self._evaluator.definitions.method(class_def, "__getitem__")
        if method is None:
            return False
        nodes = list(self._tree.descendants(method.body))
        if any(isinstance(node, _WORK) or _reads_frame(node) for node in nodes):
            return False
        indexed = (node.value for node in nodes if isinstance(node, cst.Subscript))
        calls = (node for node in nodes if isinstance(node, cst.Call))
        return not any(self._may_load(owner, class_def) for owner in indexed) and all(map(self._is_cheap, calls))

    def yields_constants(self, expression: cst.BaseExpression) -> bool:
        """Return whether items are indices, or what a dataset makes of nothing but its settings: prompts."""
        if self._is_indices(expression):
            return True
        class_def = self.class_of(self._evaluator.value(expression))
        method = self._evaluator.definitions.method(class_def, "__getitem__") if class_def is not None else None
        if method is None:
            return False
        nodes = list(self._tree.descendants(method.body))
        owners = (node.value for node in nodes if isinstance(node, cst.Subscript))
        return not any(isinstance(node, (cst.Call, *_WORK)) for node in nodes) and all(
            isinstance(owner, cst.Name) for owner in owners
        )

    def _is_indices(self, expression: cst.BaseExpression) -> bool:
        """Whether a loader draws from the places of data that lies elsewhere: ``range(n)``, ``mask.nonzero()``."""
        made: cst.CSTNode | None = expression
        for _ in range(_MOST_STEPS):
            if isinstance(made, cst.Name):
                bindings = self._evaluator.flow.definitions(made)
                made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
            elif isinstance(made, cst.Subscript):
                made = made.value
            elif isinstance(made, cst.Call):
                if self._evaluator.names.qualified(made.func) in _INDICES or identifier(made.func) in _INDEX_METHODS:
                    return True
                made = made.func.value if isinstance(made.func, cst.Attribute) else None
            else:
                return False
        return False

    def _may_load(self, owner: cst.BaseExpression, class_def: cst.ClassDef) -> bool:
        """Whether indexing something may read it from somewhere: another dataset, a file, a database."""
        if isinstance(owner, cst.Attribute) and isinstance(owner.value, cst.Name):
            if self._evaluator.definitions.receiver(owner.value) is None:
                return False
            bound = [binding.value for binding in self._evaluator.definitions.attribute(class_def, owner.attr.value)]
            names = [owner.attr.value, *(identifier(value) for value in bound if value is not None)]
            kinds = {self._evaluator.value(value).kind for value in bound if value is not None}
            return Kind.DATASET in kinds or any(_LAZY.search(name) for name in names)
        return isinstance(owner, cst.Name) and self._evaluator.value(owner).kind is Kind.DATASET

    def _is_cheap(self, call: cst.Call) -> bool:
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            return name in _CHEAP_CALLS
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHEAP_METHODS

    def holds_handle(self, expression: cst.BaseExpression) -> bool:
        """Return whether a dataset keeps an open file or database from its start, which workers cannot share."""
        class_def = self.class_of(self._evaluator.value(expression))
        return class_def is not None and any(self._opened_at_start(class_def))

    def _opened_at_start(self, class_def: cst.ClassDef) -> Iterator[bool]:
        function = self._evaluator.definitions.method(class_def, "__init__")
        for node in self._tree.descendants(function.body) if function is not None else ():
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
                targets = (target.target for target in node.targets)
                if self._evaluator.names.qualified(node.value.func) in _HANDLES:
                    yield any(isinstance(target, cst.Attribute) for target in targets)

    def yields_device_tensors(self, expression: cst.CSTNode) -> bool:
        """Return whether the items of a dataset, or what a collate function returns, live on an accelerator."""
        definition = self._evaluator.definitions.definition(expression)
        if isinstance(definition, cst.FunctionDef):
            return self._moves_to_device(definition.body)
        if isinstance(expression, cst.Lambda):
            return self._moves_to_device(expression.body)
        asked = (self._wraps_device_tensors, self._placed.holds, self._is_given_mover, self._is_set_mover)
        if any(holds(expression) for holds in asked):
            return True
        class_def = self.class_of(self._evaluator.value(expression))
        if class_def is None:
            return False
        iterates = (self._evaluator.definitions.method(class_def, name) for name in ("__iter__", "__call__"))
        methods = (*self.makes_items(class_def), *(method for method in iterates if method is not None))
        return any(self._moves_to_device(method.body) or self._takes_placed(class_def, method) for method in methods)

    def _takes_placed(self, class_def: cst.ClassDef, method: cst.FunctionDef) -> bool:
        """Whether a method takes from an attribute what the class itself has put on a device: ``self.x[index]``."""
        return any(
            self._is_placed(element_at(binding.value, binding.path) or binding.value)
            for owner in self._tree.below(method.body, cst.Subscript)
            if isinstance(owner.value, cst.Attribute) and isinstance(owner.value.value, cst.Name)
            if self._evaluator.definitions.receiver(owner.value.value) is not None
            for binding in self._evaluator.definitions.attribute(class_def, owner.value.attr.value)
        )

    def _is_placed(self, value: cst.CSTNode | None) -> bool:
        rows = self._tree.below(value, cst.Call) if isinstance(value, cst.ListComp) else []
        if any(map(self._is_on_device, [value] if isinstance(value, cst.Call) else rows)):
            return True
        found = self._evaluator.value(value) if isinstance(value, cst.BaseExpression) else None
        return found is not None and found.is_tensor and found.device in (Device.ACCELERATOR, Device.EITHER)

    def _is_given_mover(self, expression: cst.CSTNode, depth: int = _DEPTH) -> bool:
        """Whether a function that puts items on a device is given to what makes a dataset: a transform, a source."""
        made = self._making_call(expression)
        if made is None or not depth:
            return False
        given = [argument.value for argument in made.args]
        if is_streamed(made, self._evaluator) and isinstance(made.func, cst.Attribute):
            given.append(made.func.value)
        elif method_call(made, *_EAGER) is not None:
            return False
        return any(self._is_mover(each, depth - 1) for each in given)

    def _is_mover(self, given: cst.CSTNode, depth: int) -> bool:
        definition = self._evaluator.definitions.definition(given)
        if isinstance(definition, cst.FunctionDef):
            return self._moves_to_device(definition.body)
        if isinstance(given, cst.Lambda):
            return self._moves_to_device(given.body)
        if isinstance(given, (cst.List, cst.Tuple)):
            return any(self._is_mover(element.value, depth) for element in given.elements)
        return self._is_given_mover(given, depth)

    def _is_set_mover(self, expression: cst.CSTNode) -> bool:
        """Whether ``dataset.set_transform(f)`` says that a function which puts items on a device makes them."""
        if "set_transform" not in self._evaluator.vocabulary.attributes:
            return False
        whole = expression.value if isinstance(expression, cst.Subscript) else expression
        return any(
            is_same(owner.value, each) and self._is_mover(call.args[0].value, _DEPTH)
            for call in self._tree.nodes(cst.Call)
            if (owner := method_call(call, "set_transform")) is not None and call.args
            for each in (expression, whole)
        )

    def certain_move(self, expression: cst.CSTNode) -> cst.Call | None:
        """Return the call by which making an item or a batch certainly puts it on an accelerator, if there is one.

        The expression is a dataset or a collate function. A device that the file does not show decides nothing.
        """
        return next((call for call in self._calls_for_items(expression) if self._is_certain(call)), None)

    def _calls_for_items(self, expression: cst.CSTNode) -> Iterator[cst.Call]:
        made = self._making_call(expression)
        if made is not None and self._evaluator.names.qualified(made.func) == _TENSORS:
            yield from self._tree.below(made, cst.Call)
        definition = self._evaluator.definitions.definition(expression)
        class_def = self.class_of(self._evaluator.value(expression))
        if isinstance(expression, cst.Lambda):
            yield from self._tree.below(expression.body, cst.Call)
        elif isinstance(definition, cst.FunctionDef):
            yield from self._tree.below(definition.body, cst.Call)
        elif class_def is not None:
            iterates = (self._evaluator.definitions.method(class_def, name) for name in ("__iter__", "__call__"))
            for method in (*self.makes_items(class_def), *(found for found in iterates if found is not None)):
                yield from self._tree.below(method.body, cst.Call)

    def _is_certain(self, call: cst.Call) -> bool:
        move = self._moves.move(call)
        if move is not None:
            return move.method in ("to", "cuda") and shows_accelerator(move.place, move.evidence)
        device = bind(call.args).get("device")
        if device is None or not (self._evaluator.names.qualified(call.func) or "").startswith("torch."):
            return False
        where = self._evaluator.value(device)
        return shows_accelerator(where.device, where.evidence)

    def _wraps_device_tensors(self, expression: cst.CSTNode) -> bool:
        """Whether a ``TensorDataset`` of tensors on a device is made here, or in the assignment that gives the name."""
        call = self._wrapping_call(expression)
        if call is None:
            return False
        given = [argument.value for argument in call.args]
        is_plain = self._evaluator.names.qualified(call.func) == _TENSORS
        is_computed = is_plain and any(is_extracted(each, self._evaluator) for each in given)
        return is_computed or any(map(self._holds_device_tensor, given))

    def _holds_device_tensor(self, expression: cst.BaseExpression) -> bool:
        if isinstance(expression, cst.Call) and self._is_on_device(expression):
            return True
        on_device = self._evaluator.value(expression).device in (Device.ACCELERATOR, Device.EITHER)
        return on_device or self._wraps_device_tensors(expression)

    def _wrapping_call(self, expression: cst.CSTNode) -> cst.Call | None:
        """The call that makes a dataset of tensors or of datasets, here or in the one assignment to the name."""
        made = self._making_call(expression)
        return made if made is not None and self._evaluator.names.qualified(made.func) in _WRAPPERS else None

    def _making_call(self, expression: cst.CSTNode) -> cst.Call | None:
        """The call that an expression is, or that the one assignment to the name holds."""
        made: cst.CSTNode | None = expression
        if isinstance(expression, cst.Name):
            bindings = self._evaluator.flow.definitions(expression)
            made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        return made if isinstance(made, cst.Call) else None

    def on_host(self, expression: cst.BaseExpression) -> bool:
        """Return whether the items of a dataset are certainly tensors of the CPU: torchvision's, or made in view."""
        value = self._evaluator.value(expression)
        if (value.name or "").startswith(_VISION):
            return value.evidence is Evidence.PROVEN and self._transforms_are_known(expression)
        call = self._wrapping_call(expression)
        if call is None or self._evaluator.names.qualified(call.func) != _TENSORS:
            return False
        values = [self._evaluator.value(argument.value) for argument in call.args]
        return all(v.is_tensor and v.device is Device.CPU and v.evidence is Evidence.PROVEN for v in values)

    def yields_views(self, expressions: Sequence[cst.BaseExpression]) -> bool:
        """Return whether the items of one of these datasets may share memory with it."""
        return not all((self._evaluator.value(each).name or "").startswith(_VISION) for each in expressions)

    def _transforms_are_known(self, expression: cst.BaseExpression) -> bool:
        """Whether what a dataset of torchvision does to its items is torchvision's own too."""
        call = self._making_call(expression)
        if call is None or any(argument.star for argument in call.args):
            return False
        return all(
            literal(a.value) is not None or is_none(a.value) or self._is_known_transform(a.value)
            for a in call.args
            if a.keyword is None or a.keyword.value in ("transform", "target_transform", "transforms")
        )

    def _is_known_transform(self, expression: cst.BaseExpression) -> bool:
        call = self._making_call(expression)
        name = self._evaluator.names.qualified(call.func) if call is not None else None
        if call is None or name is None or not name.startswith("torchvision.transforms.") or name.endswith(".Lambda"):
            return False
        if name.rpartition(".")[2] not in _CHAINS:
            return True
        chain = call.args[0].value if call.args else None
        if not isinstance(chain, (cst.List, cst.Tuple)):
            return False
        return all(self._is_known_transform(element.value) for element in chain.elements)

    def makes_sparse_tensors(self) -> bool:
        """Return whether the file makes sparse tensors, which cannot be pinned."""
        names = (attribute.attr.value for attribute in self._tree.nodes(cst.Attribute))
        return any(name.startswith("sparse_") or name in ("to_sparse", "sparse") for name in names)

    def _moves_to_device(self, body: cst.CSTNode) -> bool:
        return any(self._is_on_device(node) for node in self._tree.descendants(body) if isinstance(node, cst.Call))

    def _is_on_device(self, call: cst.Call) -> bool:
        move = self._moves.move(call)
        if move is not None and move.method != "type_as":
            return move.place is not Device.CPU
        device = bind(call.args).get("device")
        return (
            device is not None and literal(device) != "cpu" and self._evaluator.value(device).device is not Device.CPU
        )


def _ends_in_memory(value: cst.CSTNode) -> bool:
    """Return whether a list is repeated, or calls end in a method that only tensors have, arithmetic aside."""
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.operator, cst.Multiply) and isinstance(value.left, cst.List)
    while (arithmetic := method_call(value, *_ARITHMETIC)) is not None:
        value = arithmetic.value
    return method_call(value, *_TENSOR_METHODS) is not None


def _reads_frame(node: cst.CSTNode) -> bool:
    """Return whether a row of a pandas table is looked up, which takes Python work for every item."""
    return isinstance(node, cst.Attribute) and node.attr.value in ("iloc", "loc", "iat", "at")
