"""What a program does with the batches of a loader: moves them, looks at one, computes on the host."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.host_modules import runs_on_host
from torchlint.semantics.loading.epochs import Epochs
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import bind, identifier, method_call

_ENDS = frozenset("numpy tolist item size dim numel nelement keys shape ndim dtype".split())
"""Methods and attributes that give something which is no tensor, or one of the host."""

_MOVES = frozenset("cuda type type_as pin_memory xpu npu".split())
_COMPUTES = ("torch.", "torchvision.utils.", "torchvision.transforms.functional.")
_NO_FUNCTIONS = ("torch.cuda.", "torch.nn.", "torch.utils.", "torch.jit.", "torch.distributed.", "torch.autograd.")
_LOOKS = frozenset(f"builtins.{name}" for name in "print len str repr float int isinstance type range".split())
_PASSES_ON = frozenset(f"builtins.{name}" for name in "list tuple sum max min abs sorted zip enumerate".split())
_HOSTS = ("numpy.", "matplotlib.", "sklearn.", "pandas.", "PIL.", "cv2.", "scipy.", "seaborn.")
_KEEPERS = frozenset(("torch.save", "torchvision.utils.save_image"))
_READS_TEXT = ("return_tensors", "truncation")
_DEPTH = 4


class _Take(Enum):
    """How a use of a loader takes batches."""

    ALL = "all of them, in a loop"
    ONE = "one, by next(iter(loader))"
    NONE = "none: len(loader)"


class Batches:
    """Follows the batches of a loader that one function uses."""

    def __init__(self, evaluator: Evaluator, epochs: Epochs) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._epochs = epochs

    def stay_on_host(self, made: cst.Call) -> bool:
        """Return whether all uses of what a loader gives are visible, and none takes it off the host."""
        takes = self._takes(made)
        taken = [node for take, node in takes or () if take is not _Take.NONE]
        return bool(taken) and all(map(self._stays, taken))

    def only_one(self, made: cst.Call) -> bool:
        """Return whether nothing but single batches is ever taken, ``next(iter(loader))``, or none at all."""
        found = {take for take, _ in self._takes(made) or ()}
        return (_Take.ONE in found and _Take.ALL not in found) or self._is_dropped(made)

    def _is_dropped(self, made: cst.Call) -> bool:
        """Whether a function hands out a loader among others, and all callers drop it: ``train, _ = loaders()``."""
        parent = self._tree.parent(made)
        target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
        reads = self._reads(target) if isinstance(target, cst.Name) else []
        element = self._tree.parent(reads[0]) if len(reads) == 1 else None
        handed = self._tree.parent(element) if isinstance(element, cst.Element) else None
        function = self._evaluator.definitions.enclosing_function(made)
        if function is None or self._evaluator.definitions.owner(function) is not None:
            return False  # other files may call a method
        if not isinstance(handed, cst.Tuple) or not isinstance(self._tree.parent(handed), cst.Return):
            return False
        place = next(index for index, each in enumerate(handed.elements) if each is element)
        calls = self._evaluator.callers(function)
        return bool(calls) and all(self._is_dropped_by(call, place) for call in calls)

    def _is_dropped_by(self, call: cst.Call, place: int) -> bool:
        """Whether a function takes a tuple apart, and has no use for one element of it."""
        assignment, function = self._tree.parent(call), self._evaluator.definitions.enclosing_function(call)
        if function is None or not isinstance(assignment, cst.Assign) or not _drops(assignment, place):
            return False  # what stands at the top level may only try it out
        named = [name for name in self._tree.below(function.body, cst.Name) if name.value == "_"]
        return all(self._is_bound(name) for name in named)

    # How batches are taken

    def _takes(self, made: cst.Call) -> list[tuple[_Take, cst.CSTNode]] | None:
        """All uses of a loader with what each takes; None where one of them cannot be followed."""
        parent = self._tree.parent(made)
        if isinstance(parent, cst.Assign):
            target = parent.targets[0].target
            if len(parent.targets) != 1 or not isinstance(target, cst.Name):
                return None
            uses: list[cst.BaseExpression] = [*self._reads(target)]
        else:
            uses = [made]
        found = [self._take(each) for use in uses for each in self._handed(use) or (use,)]
        known = [take for take in found if take is not None]
        return known if len(known) == len(found) else None

    def _handed(self, use: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
        """The uses of a loader in the function of the file that is given it: ``statistics(DataLoader(data))``."""
        argument = self._tree.parent(use)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(argument, cst.Arg) or not isinstance(call, cst.Call) or self._epochs.wraps(call):
            return []
        return self._epochs.handed(call, argument)

    def _reads(self, target: cst.Name) -> list[cst.Name]:
        """The reads of what a target binds, wherever it may be that."""
        names = (name for name in self._tree.named(target.value) if name is not target and not self._is_bound(name))
        return [name for name in names if any(b.node is target for b in self._evaluator.flow.definitions(name))]

    def _is_bound(self, name: cst.Name) -> bool:
        """Whether a name stands where it is bound again: the target of the next loop, or of an assignment."""
        bindings = self._evaluator.scopes.bindings(name)
        return any(b.node is name and b.kind in (BindingKind.ITERATION, BindingKind.ASSIGNMENT) for b in bindings)

    def _take(self, use: cst.BaseExpression) -> tuple[_Take, cst.CSTNode] | None:
        node: cst.BaseExpression = use
        parent = self._tree.parent(node)
        while True:
            if isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is node:
                return _Take.ALL, parent
            if isinstance(parent, cst.Attribute):
                return (_Take.NONE, parent) if parent.attr.value in ("dataset", "batch_size", "sampler") else None
            call = self._tree.parent(parent) if isinstance(parent, cst.Arg) else None
            if not isinstance(call, cst.Call):
                return None
            name = self._evaluator.names.qualified(call.func)
            if name == "builtins.len":
                return _Take.NONE, call
            if name == "builtins.iter":
                return self._first(call)
            if not self._epochs.wraps(call):
                return None
            node, parent = call, self._tree.parent(call)

    def _first(self, iterator: cst.Call) -> tuple[_Take, cst.CSTNode] | None:
        argument = self._tree.parent(iterator)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        is_next = isinstance(call, cst.Call) and self._evaluator.names.qualified(call.func) == "builtins.next"
        return (_Take.ONE, call) if is_next and call is not None else None

    # What happens to a batch

    def _stays(self, taken: cst.CSTNode) -> bool:
        if isinstance(taken, (cst.For, cst.CompFor)):
            return self._stays_bound(taken.target, 0)
        return isinstance(taken, cst.Call) and self._is_used_here(taken, 0)

    def _stays_bound(self, target: cst.BaseExpression, depth: int) -> bool:
        """Whether no use of the names in a target takes what they hold off the host."""
        names = [node for node in (target, *self._tree.descendants(target)) if isinstance(node, cst.Name)]
        if depth > _DEPTH or (not names and not isinstance(target, cst.Name)):
            return False
        return all(self._is_used_here(read, depth) for name in names for read in self._reads(name))

    def _is_used_here(self, node: cst.BaseExpression, depth: int) -> bool:
        """Whether an expression that holds a part of a batch only serves computations on the host."""
        if self._evaluator.value(node).kind is Kind.NUMBER:
            return True
        while True:
            parent = self._tree.parent(node)
            if isinstance(parent, cst.ComparisonTarget):
                parent = self._tree.parent(parent)
            if isinstance(parent, cst.Attribute) and parent.value is node:
                above = self._tree.parent(parent)
                is_called = isinstance(above, cst.Call) and above.func is parent
                found = self._after_method(above) if isinstance(above, cst.Call) and is_called else parent
                if parent.attr.value in _ENDS or found is None:
                    return True
                if parent.attr.value in _MOVES or isinstance(found, bool):
                    return False
                node = found
            elif isinstance(parent, (cst.Subscript, cst.UnaryOperation, cst.BinaryOperation, cst.Comparison)):
                node = parent
            elif isinstance(parent, cst.Arg):
                call = self._tree.parent(parent)
                given = self._after_call(call, parent, depth) if isinstance(call, cst.Call) else False
                if isinstance(given, bool):
                    return given
                node = given
            else:
                return self._ends_here(node, parent, depth)

    def _after_method(self, call: cst.Call) -> cst.Call | bool | None:
        """What a method call gives: itself, None where that stays on the host, False where it may be moved."""
        method = method_call(call, "to")
        if method is None:
            return call
        given = bind(call.args, ("device", "dtype")).get("device")
        value = self._evaluator.value(given) if given is not None else None
        if value is None or value.kind is Kind.DTYPE:
            return call
        return None if value.kind is Kind.DEVICE and value.device is Device.CPU else False

    def _after_call(self, call: cst.Call, argument: cst.Arg, depth: int) -> cst.Call | bool:
        """What a function makes of a batch: a tensor as well, or whether it leaves it on the host."""
        name = self._evaluator.names.qualified(call.func) or ""
        is_read = any(a.keyword is not None and a.keyword.value in _READS_TEXT for a in call.args)
        if name in _LOOKS or name in _KEEPERS or name.startswith(_HOSTS) or is_read:
            return True  # what tokenizers read is text
        if name in _PASSES_ON or (name.startswith(_COMPUTES) and not name.startswith(_NO_FUNCTIONS)):
            return call
        if runs_on_host(call, self._evaluator) and self._evaluator.value(call.func).kind is Kind.MODULE:
            return call
        used = self._epochs.handed(call, argument) if depth < _DEPTH else []
        return bool(used) and all(self._is_used_here(each, depth + 1) for each in used)

    def _ends_here(self, node: cst.BaseExpression, parent: cst.CSTNode | None, depth: int) -> bool:
        """Whether the statement around an expression does nothing with it but compute on the host."""
        if isinstance(parent, cst.Assign):
            targets = [target.target for target in parent.targets]
            names = all(isinstance(target, (cst.Name, cst.Tuple)) for target in targets)
            return names and all(self._stays_bound(target, depth + 1) for target in targets)
        if isinstance(parent, (cst.For, cst.CompFor)):
            return parent.iter is node and self._stays_bound(parent.target, depth + 1)
        tests = (cst.If, cst.While, cst.Assert, cst.FormattedStringExpression)
        return isinstance(parent, (cst.AugAssign, cst.Expr, *tests))


def _drops(assignment: cst.Assign, place: int) -> bool:
    """Return whether an assignment takes a tuple apart and gives one element a name that says nobody reads it."""
    targets = [target.target for target in assignment.targets]
    return all(
        isinstance(target, cst.Tuple)
        and not any(isinstance(each, cst.StarredElement) for each in target.elements)
        and place < len(target.elements)
        and identifier(target.elements[place].value) == "_"
        for target in targets
    )
