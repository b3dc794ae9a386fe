"""Training steps of which the file shows everything: which parameters get a gradient never changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.flow import LOOPS
from torchlint.semantics.tables.uniform_api import MEDDLING_NAMES, STRANGE_OPTIMIZERS
from torchlint.semantics.uniform import Uniform
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import identifier, literal, method_call

_HARMLESS_METHODS = frozenset("to cuda cpu train eval float double half bfloat16 state_dict load_state_dict".split())

_REVEALING_METHODS = frozenset("parameters named_parameters modules named_modules children named_children".split())


class TrainingStep(NamedTuple):
    """One pass through a loop body or function that holds one backward pass and one update."""

    root: cst.For | cst.While | cst.FunctionDef
    backward: cst.Call
    update: cst.Call


class _Program(NamedTuple):
    """The only model of a file, and what trains it."""

    model: Value
    backward: cst.Call
    update: cst.Call


class Training:
    """Finds training steps in which every parameter that ever gets a gradient gets one each time."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._definitions = evaluator.definitions
        self._uniform = Uniform(evaluator)
        self._program: tuple[_Program | None] | None = None

    def step(self, clearing: cst.Call) -> TrainingStep | None:
        """Return the step that a ``zero_grad`` call begins or ends, None unless all of it is certain.

        Certain means: a script with one optimizer over all parameters of one model, one backward pass and one update,
        no branch around them; the model and the loss are made of code that runs the same way every time; nobody
        reads or writes gradients, changes ``requires_grad`` or hands the model to code that cannot be seen.
        """
        root = self._root(clearing)
        if self._program is None:
            self._program = (self._find(),)
        program = self._program[0]
        if root is None or program is None or not isinstance(root.body, cst.IndentedBlock):
            return None
        calls = (clearing, program.backward, program.update)
        lines = self._flattened(root.body)
        if any(self._root(call) is not root or self._place(call, lines) is None for call in calls):
            return None
        if not self._in_order(*calls) or not self._is_of(clearing, program.model):
            return None
        if not self._computes_uniformly(lines, program.backward, clearing):
            return None
        return TrainingStep(root, program.backward, program.update)

    # One step

    def _root(self, node: cst.CSTNode) -> cst.For | cst.While | cst.FunctionDef | None:
        """Return the loop or function in whose body a node runs."""
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (*LOOPS, cst.FunctionDef)):
                return ancestor if child is ancestor.body else None
            if isinstance(ancestor, (cst.Lambda, cst.ClassDef)):
                return None
            child = ancestor
        return None

    def _flattened(self, block: cst.IndentedBlock) -> list[cst.CSTNode]:
        """Return the statements that run on every pass, those inside torch's own contexts included."""
        found: list[cst.CSTNode] = []
        for statement in block.body:
            if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
                found += self._flattened(statement.body) if self._uniform.context(statement) else [statement]
            else:
                found.append(statement)
        return found

    def _place(self, call: cst.Call, lines: list[cst.CSTNode]) -> int | None:
        """Return which of the statements a call makes up."""
        small = self._tree.parent(call)
        line = self._tree.parent(small) if isinstance(small, (cst.Expr, cst.Assign)) else None
        return next((index for index, statement in enumerate(lines) if statement is line), None)

    def _in_order(self, clearing: cst.Call, backward: cst.Call, update: cst.Call) -> bool:
        """Whether gradients are cleared before the backward pass or after the update, and clipped between the two."""
        cleared, passed, updated = map(self._tree.order, (clearing, backward, update))
        if not (cleared < passed < updated or passed < updated < cleared):
            return False
        clips = (c for c in self._tree.nodes(cst.Call) if "grad_" in (self._evaluator.names.qualified(c.func) or ""))
        return all(passed < self._tree.order(clip) < updated for clip in clips)

    def _computes_uniformly(self, lines: list[cst.CSTNode], backward: cst.Call, clearing: cst.Call) -> bool:
        """Whether everything before the backward pass runs the same way; the batch may be prepared as it likes."""
        before = lines[: (self._place(backward, lines) or 0) + 1]
        first = next((index for index, line in enumerate(before) if self._runs_module(line)), None)
        if first is None or not all(map(self._keeps_models, before)):
            return False
        return all(self._is_uniform(line, backward, clearing) for line in before[first:])

    def _is_uniform(self, line: cst.CSTNode, backward: cst.Call, clearing: cst.Call) -> bool:
        if not isinstance(line, cst.SimpleStatementLine):
            return self._uniform.statement(line)
        for small in line.body:
            if small is self._tree.parent(clearing):
                continue
            if small is self._tree.parent(backward):
                return isinstance(backward.func, cst.Attribute) and self._uniform.expression(backward.func.value)
            if not self._uniform.small(small):
                return False
        return True

    def _runs_module(self, line: cst.CSTNode) -> bool:
        calls = (node for node in self._tree.descendants(line) if isinstance(node, cst.Call))
        return any(map(self._may_run_module, calls))

    def _may_run_module(self, call: cst.Call) -> bool:
        if self._evaluator.names.qualified(call.func) is not None:
            return False
        if isinstance(call.func, cst.Attribute) and self._definitions.definition(call.func) is None:
            receiver = self._evaluator.value(call.func.value)
            is_plain = call.func.attr.value in _HARMLESS_METHODS or call.func.attr.value == "zero_grad"
            return not is_plain and Kind.MODULE in (receiver.kind, self._evaluator.value(call.func).kind)
        return True

    def _keeps_models(self, line: cst.CSTNode) -> bool:
        """Whether a statement binds no model and no optimizer, and no attribute."""
        for node in self._tree.descendants(line):
            if isinstance(node, (cst.AssignTarget, cst.AnnAssign)):
                statement = self._tree.parent(node) if isinstance(node, cst.AssignTarget) else node
                given = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
                value = self._evaluator.value(given) if given is not None else Value()
                kinds = {value.kind, *(element.kind for element in value.elements or ())}
                if isinstance(node.target, cst.Attribute) or kinds & {Kind.MODULE, Kind.OPTIMIZER}:
                    return False
        return True

    def _is_of(self, clearing: cst.Call, model: Value) -> bool:
        """Whether a call clears the gradients of the model or of the optimizer."""
        receiver = self._evaluator.value(clearing.func.value) if isinstance(clearing.func, cst.Attribute) else Value()
        return receiver.kind is Kind.OPTIMIZER or self._is_model(receiver, model)

    @staticmethod
    def _is_model(value: Value, model: Value) -> bool:
        same = value.definition is model.definition and value.name == model.name
        return value.kind is Kind.MODULE and (same or (value.definition is None and value.name is None))

    # The file as a whole

    def _find(self) -> _Program | None:
        """Return the model of a file that trains one, with its only backward pass and its only update."""
        if not self._is_program() or self._meddles():
            return None
        passes, updates, optimizer = self._calls("backward"), self._updates(), self._optimizer()
        if len(passes) != 1 or passes[0].args or len(updates) != 1 or not self._is_update(updates[0]):
            return None
        model = self._optimised(optimizer) if optimizer is not None else None
        if model is None or not self._uniform.module(model) or not self._uniform.containers_are_visible():
            return None
        if self._makers(model) != 1 or not self._stays_visible():
            return None
        return _Program(model, passes[0], updates[0])

    def _calls(self, *methods: str) -> list[cst.Call]:
        return [call for call in self._tree.nodes(cst.Call) if method_call(call, *methods) is not None]

    def _is_program(self) -> bool:
        """Whether the file is run and not imported: it asks for ``__main__``, or trains at its top level."""
        tests = (test.left for test in self._tree.nodes(cst.Comparison))
        if any(isinstance(left, cst.Name) and left.value == "__name__" for left in tests):
            return True
        return any(self._definitions.enclosing_function(call) is None for call in self._calls("backward"))

    def _meddles(self) -> bool:
        """Whether anything in the file looks into gradients or changes who takes part."""
        if any(attribute.attr.value in MEDDLING_NAMES for attribute in self._tree.nodes(cst.Attribute)):
            return True
        if any(name.value in MEDDLING_NAMES or name.value == "eval" for name in self._tree.nodes(cst.Name)):
            return True
        if any(text.raw_value in ("params", "grad") for text in self._tree.nodes(cst.SimpleString)):
            return True
        if any(map(self._changes_module, self._tree.nodes(cst.Assign))):
            return True
        if any(self._asks(call) or _may_assign(call) for call in self._tree.nodes(cst.Call)):
            return True
        named = ((a.keyword.value, a.value) for a in self._tree.nodes(cst.Arg) if a.keyword is not None)
        return any(name in MEDDLING_NAMES and literal(value) is not False for name, value in named)

    def _asks(self, call: cst.Call) -> bool:
        """Whether a ``getattr`` may ask for a gradient: it works a name out, and does not look it up in an import."""
        if identifier(call.func) != "getattr" or len(call.args) < 2 or isinstance(call.args[1].value, cst.SimpleString):
            return False
        return self._evaluator.names.qualified(call.args[0].value) is None

    def _changes_module(self, statement: cst.Assign) -> bool:
        """Whether a statement gives a module another parameter, or another way to run, when it is made already."""
        function = self._definitions.enclosing_function(statement)
        if function is not None and function.name.value == "__init__":
            return False
        name = self._evaluator.names.qualified(statement.value.func) if isinstance(statement.value, cst.Call) else None
        is_parameter = (name or "").startswith("torch.nn.") and (name or "").endswith("Parameter")
        attributes = (t.target.attr.value for t in statement.targets if isinstance(t.target, cst.Attribute))
        return any(is_parameter or attribute in ("weight", "bias", "forward", "__class__") for attribute in attributes)

    def _optimizer(self) -> cst.Call | None:
        """Return the call that makes the only optimizer of the file, if it is one of torch's plain ones."""
        made = [c for c in self._tree.nodes(cst.Call) if self._evaluator.value(c).kind is Kind.OPTIMIZER]
        name = self._evaluator.names.qualified(made[0].func) if len(made) == 1 else None
        if name is None or not name.startswith("torch.optim.") or name in STRANGE_OPTIMIZERS:
            return None
        return made[0]

    def _optimised(self, optimizer: cst.Call) -> Value | None:
        """Return the model all of whose parameters an optimizer is given."""
        first = optimizer.args[0] if optimizer.args else None
        if first is None or first.star or (first.keyword is not None and first.keyword.value != "params"):
            return None
        listed = method_call(first.value, "parameters")
        if listed is None or not isinstance(first.value, cst.Call) or first.value.args:
            return None
        value = self._evaluator.value(listed.value)
        return value if value.kind is Kind.MODULE and value.evidence >= Evidence.INFERRED else None

    def _updates(self) -> list[cst.Call]:
        """Return the calls of ``step`` that may be the optimizer's: its own, a scaler's, one of something unknown."""
        receivers = ((c, c.func.value) for c in self._calls("step") if isinstance(c.func, cst.Attribute))
        return [c for c, receiver in receivers if self._evaluator.value(receiver).kind is not Kind.SCHEDULER]

    def _is_update(self, call: cst.Call) -> bool:
        kind = self._evaluator.value(call.func.value).kind if isinstance(call.func, cst.Attribute) else Kind.UNKNOWN
        return not call.args if kind is Kind.OPTIMIZER else kind is Kind.SCALER

    def _makers(self, model: Value) -> int:
        """Return how many calls of the file give a model of this class."""
        calls = (c for c in self._tree.nodes(cst.Call) if method_call(c, *_HARMLESS_METHODS) is None)
        made = (self._evaluator.value(call) for call in calls)
        return sum(v.kind is Kind.MODULE and v.definition is model.definition and v.name == model.name for v in made)

    def _stays_visible(self) -> bool:
        """Whether modules and the optimizer are handed to torch and to functions of the file only."""
        return all(
            self._is_visible(call) or not any(self._hands_over(argument.value) for argument in call.args)
            for call in self._tree.nodes(cst.Call)
        )

    def _hands_over(self, expression: cst.BaseExpression) -> bool:
        values = map(self._evaluator.value, self._variables(expression))
        return any(v.kind is Kind.OPTIMIZER or (v.kind is Kind.MODULE and v.origin is not Origin.LOSS) for v in values)

    def _variables(self, expression: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute]:
        """Yield the variables below an expression that are not called, nor only asked for one of their own parts."""
        for node in self._tree.descendants(expression):
            parent = self._tree.parent(node)
            if not isinstance(node, (cst.Name, cst.Attribute)):
                continue
            if isinstance(parent, cst.Attribute) and parent.attr.value not in _REVEALING_METHODS:
                continue
            if not isinstance(parent, cst.Call) or parent.func is not node:
                yield node

    def _is_visible(self, call: cst.Call) -> bool:
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            return name.startswith(("torch.", "builtins.")) and name != "builtins.vars"
        if self._definitions.definition(call.func) is not None:
            return True
        called = self._evaluator.value(call.func)
        if called.kind is Kind.MODULE and (called.definition is not None or called.name is not None):
            return True
        scaler = method_call(call, "step", "unscale_")
        return scaler is not None and self._evaluator.value(scaler.value).kind is Kind.SCALER


def _may_assign(call: cst.Call) -> bool:
    """Whether a ``load_state_dict`` may put other parameters in place of those that the optimizer moves."""
    if method_call(call, "load_state_dict") is None:
        return False
    return len(call.args) > 2 or any(argument.star for argument in call.args)
