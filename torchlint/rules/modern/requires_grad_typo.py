"""`require_grad` is assigned, which torch does not know: the attribute is `requires_grad`.

`x.require_grad = False`, and `setattr(x, "require_grad", False)`.

## Why it costs

Python adds the misspelt attribute to the tensor without a word. A layer that was meant to be frozen goes on training:
its gradients are computed, stored and applied, and a tensor that was meant to get a gradient never does.

## What to write instead

`x.requires_grad = False`. On a module not even that has an effect, since modules have no such switch:
`module.requires_grad_(False)` sets it for all parameters.

The fix is unsafe, because what the line says begins to happen. There is none for tensors that are no parameters and are
not made in sight: torch refuses the attribute on what was computed, and gradients of integers.

## When to ignore it

Where the class has an attribute of that name on purpose. The rule is silent where the file reads it back, and where the
receiver is certainly neither a tensor nor a module: settings, or an object of a class that the file defines.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace, ReplaceStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import identifier, literal

TYPO, NAME = "require_grad", "requires_grad"
POSSIBLE = frozenset((Kind.TENSOR, Kind.MODULE, Kind.SEQUENCE, Kind.BATCH, Kind.UNKNOWN, Kind.PENDING))
"""What a receiver can be for the line to be a mistake: a tensor, a module, or nobody knows."""

SETTINGS = frozenset(
    "args cfg conf config configuration ctx flags hparams namespace opt options opts self settings".split()
)
CARRIERS = frozenset(
    (
        "argparse.Namespace",
        "types.SimpleNamespace",
        "unittest.mock.MagicMock",
        "unittest.mock.Mock",
        "easydict.EasyDict",
        "ml_collections.ConfigDict",
        "omegaconf.OmegaConf.create",
    )
)
"""What makes objects that carry any attribute."""
FLOATS = frozenset(f"torch.{name}" for name in "zeros ones rand randn empty linspace eye".split())
"""What makes floats where no dtype is given."""

rule = Rule(
    code="TL803",
    name="requires-grad-typo",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`require_grad` is assigned where `requires_grad` is meant",
    triggers=Triggers.all_of(TYPO),
    examples=(
        Example(
            bad="import torch\n\nweights = torch.zeros(3)\nweights.require_grad = True\n",
            good="import torch\n\nweights = torch.zeros(3)\nweights.requires_grad = True\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html",),
    documentation=__doc__,
    silences={
        "read": "The file reads that attribute: it is one of its own.",
        "own-attribute": "An object that is no module assigns it to itself.",
        "not-torch": "The receiver is neither a tensor nor a module: an object of a class of the file, or settings.",
        "other-form": "The name is a variable, a key, a parameter, a longer name, or stands in a string or comment.",
    },
    fixes=(Safety.UNSAFE,),
    in_tests=True,
)


@rule.check(cst.Assign)
def assigned(statement: cst.Assign, model: Model) -> Iterator[Finding]:
    """Report an assignment to the misspelt attribute."""
    for attribute in (part for target in statement.targets for part in _parts(target.target)):
        if not isinstance(attribute, cst.Attribute) or attribute.attr.value != TYPO:
            continue
        if not _is_meant(attribute.value, model):
            yield Finding(statement, _message(attribute.value, model), _assignment_fix(statement, attribute, model))


def _parts(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what a target assigns to: itself, or all that it takes apart."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        yield target
        return
    for element in target.elements:
        yield from _parts(element.value)


@rule.check(cst.Call, called=("setattr",))
def set_by_name(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a `setattr` of the misspelt attribute."""
    if model.qualified_name(call.func) != "builtins.setattr" or len(call.args) != 3:
        return
    receiver, name = call.args[0].value, call.args[1].value
    if literal(name) == TYPO and isinstance(name, cst.SimpleString) and not _is_meant(receiver, model):
        may = not _is_module(receiver, model) and _may_be_set(receiver, call.args[2].value, model)
        fix = _fix(Replace(name, f"{name.quote}{NAME}{name.quote}")) if may else None
        yield Finding(call, _message(receiver, model), fix)


def _is_meant(receiver: cst.BaseExpression, model: Model) -> bool:
    if rule.silent("read", _is_read(receiver, model)):
        return True
    kind = model.value(receiver).kind
    itself = isinstance(receiver, cst.Name) and model.definitions.receiver(receiver) is not None
    if itself and kind is not Kind.MODULE:
        return rule.silent("own-attribute", True)
    is_settings = kind is Kind.UNKNOWN and (identifier(receiver) in SETTINGS or _carries_anything(receiver, model))
    return rule.silent("not-torch", kind not in POSSIBLE or is_settings)


def _is_read(receiver: cst.BaseExpression, model: Model) -> bool:
    """Whether the file reads the attribute of something with the name of the receiver, or an object reads its own."""
    targets = [target.target for target in model.nodes(cst.AssignTarget)]
    targets += [statement.target for statement in model.nodes(cst.AnnAssign)]
    written = {id(part) for target in targets for part in _parts(target)}
    read = [a.value for a in model.nodes(cst.Attribute) if a.attr.value == TYPO and id(a) not in written]
    asked = (call for call in model.nodes(cst.Call) if identifier(call.func) in ("getattr", "hasattr"))
    read += [call.args[0].value for call in asked if len(call.args) > 1 and literal(call.args[1].value) == TYPO]
    names = {identifier(receiver)} | (set() if model.value(receiver).kind is Kind.TENSOR else {"self"})
    return any(identifier(owner) in names for owner in read)


def _carries_anything(receiver: cst.BaseExpression, model: Model) -> bool:
    """Whether all that a variable is bound to are objects that carry any attribute."""
    values = [binding.value for binding in model.bindings(receiver)] if isinstance(receiver, cst.Name) else []
    made = [model.qualified_name(value.func) for value in values if isinstance(value, cst.Call)]
    return bool(made) and len(made) == len(values) and all(name in CARRIERS for name in made)


def _is_module(receiver: cst.BaseExpression, model: Model) -> bool:
    return model.value(receiver).kind is Kind.MODULE


def _message(receiver: cst.BaseExpression, model: Model) -> str:
    owner = model.shown(receiver, "the object")
    what = f"`{TYPO}` is no attribute of torch: the line adds it to {owner} and changes nothing else. "
    if _is_module(receiver, model):
        return f"{what}A module has no such switch: call `requires_grad_(...)`, which sets it for all its parameters."
    return f"{what}Write `{NAME}`."


def _assignment_fix(statement: cst.Assign, attribute: cst.Attribute, model: Model) -> Fix | None:
    if not _is_module(attribute.value, model):
        may = _may_be_set(attribute.value, statement.value, model)
        return _fix(Replace(attribute.attr, NAME)) if may else None
    is_alone = len(statement.targets) == 1 and statement.targets[0].target is attribute
    if not is_alone or model.value(attribute.value).evidence < Evidence.INFERRED:
        return None
    line = f"{model.code(attribute.value)}.requires_grad_({model.code(statement.value)})"
    return _fix(ReplaceStatement(statement, (line,)))


def _may_be_set(receiver: cst.BaseExpression, value: cst.BaseExpression, model: Model) -> bool:
    """Whether a tensor is a parameter, or made on the spot, of floats if it is to have gradients: others refuse it."""
    known = model.value(receiver)
    is_named = isinstance(receiver, cst.Attribute) and receiver.attr.value in ("weight", "bias")
    if known.origin is Origin.PARAMETER or is_named:
        return True
    is_leaf = known.is_tensor and known.origin is Origin.FACTORY
    made = [binding.part for binding in model.reaching(receiver)] if isinstance(receiver, cst.Name) else []
    called = [model.qualified_name(each.func) if isinstance(each, cst.Call) else None for each in made]
    is_float = all(name in FLOATS for name in called) and not any(map(_has_dtype, made))
    return is_leaf and bool(made) and (literal(value) is False or is_float)


def _has_dtype(made: cst.BaseExpression | None) -> bool:
    given = made.args if isinstance(made, cst.Call) else ()
    return any(argument.keyword is not None and argument.keyword.value == "dtype" for argument in given)


def _fix(edit: Replace | ReplaceStatement) -> Fix:
    return Fix(
        f"Write `{NAME}`", (edit,), Safety.UNSAFE, "What the line says begins to happen: training freezes or thaws it."
    )
