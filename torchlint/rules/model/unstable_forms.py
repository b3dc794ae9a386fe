"""A formula loses digits, or overflows, for which torch has a function that does not.

`torch.log(1 + x)`, `torch.exp(x) - 1`, `torch.log(torch.sum(torch.exp(x), dim))`, `torch.log(torch.sigmoid(x))` and
`torch.log(1 + torch.exp(x))`, also as methods of tensors.

## Why it costs

`1 + x` rounds a small `x` away: of 1e-8 in float32 `torch.log(1 + x)` is 0, and so is `torch.exp(x) - 1`, where
`torch.log1p(x)` and `torch.expm1(x)` are 1e-8. `torch.exp` of 89 is infinite, so a logarithm around it is, and the
sigmoid of -104 is 0, so its logarithm is -inf: then the loss is inf or nan, and so are the gradients.

## What to write instead

`torch.log1p(x)`, `torch.expm1(x)`, `torch.logsumexp(x, dim)`, `torch.nn.functional.logsigmoid(x)`,
`torch.nn.functional.softplus(x)`: all supported versions have them. The values above are those of torch 2.13.

The fix is unsafe: the result is more exact, so it is not the same number. It is not offered where the tensor is visibly
one of integers, nor where it or the result is written to, which the backward pass may refuse then.

## When to ignore it

Where `x` is known to be large. The rule is silent about whole numbers (durations, degrees, counts), which lose nothing,
and about exponentials that are taken after their maximum was subtracted, which cannot overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.edits.operations import Edit, Replace, Unwrap
from torchlint.edits.renaming import spelled
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.operators.integral import is_whole, refuses_integers
from torchlint.semantics.operators.operands import Applied, applied
from torchlint.syntax.calls import identifier, is_none, literal

rule = Rule(
    code="TL412",
    name="unstable-forms",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`log(1 + x)`, `exp(x) - 1` and other formulas that lose digits or overflow",
    triggers=Triggers.all_of("torch", ("log", "exp")),
    examples=(
        Example(bad="import torch\n\ny = torch.log(1 + x)\n", good="import torch\n\ny = torch.log1p(x)\n"),
        Example(
            bad="import torch\n\ny = torch.log(torch.sum(torch.exp(x), dim=1))\n",
            good="import torch\n\ny = torch.logsumexp(x, dim=1)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.log1p.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.expm1.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.LogSigmoid.html",
    ),
    documentation=__doc__,
    silences={
        "whole-numbers": "The tensor holds whole numbers, by its dtype, written out, or by its name: 1 more is exact.",
        "shifted": "The maximum is subtracted before the exponentials are taken: they are at most 1.",
        "no-dimension": "The sum names no dimension, which `logsumexp` needs.",
        "other-terms": "Something else is added as well, or another number than 1.",
        "not-a-tensor": "The function is that of NumPy or `math`, or nothing says that the value is a tensor.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


class Form(NamedTuple):
    """The function that stands for a formula, what the formula loses, and what goes into the function."""

    name: str
    loses: str
    evidence: Evidence
    arguments: tuple[cst.CSTNode, ...]


@rule.check(cst.Call, called=("log",))
def logarithm(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a logarithm of something that should not have been computed by itself."""
    found = _alone(call, "log", model)
    if found is None:
        return
    plus_one = _plus_one(found.operand)
    if plus_one is not None:
        yield from _log_of_sum(call, plus_one, found.evidence, model)
        return
    sigmoid = _alone(found.operand, "sigmoid", model)
    if sigmoid is not None:
        loses = "of a very negative value the sigmoid is 0, and its logarithm -inf"
        yield _finding(call, Form("torch.nn.functional.logsigmoid", loses, found.evidence, (sigmoid.operand,)), model)
    summed = _sum_of_exponentials(found.operand, model)
    if summed and not rule.silent("shifted", _is_shifted(summed[0], model)):
        loses = "the exponential of a large value is infinite"
        yield _finding(call, Form("torch.logsumexp", loses, found.evidence, summed), model)


@rule.check(cst.BinaryOperation)
def exponential(operation: cst.BinaryOperation, model: Model) -> Iterator[Finding]:
    """Report an exponential of which 1 is subtracted."""
    if not isinstance(operation.operator, cst.Subtract) or not _is_one(operation.right):
        return
    found = _alone(operation.left, "exp", model)
    if found is None or rule.silent("whole-numbers", is_whole(found.operand, model)):
        return
    loses = "of a small value the exponential rounds to 1, and nothing is left"
    yield _finding(operation, Form("torch.expm1", loses, found.evidence, (found.operand,)), model)


def _log_of_sum(call: cst.Call, term: cst.BaseExpression, evidence: Evidence, model: Model) -> Iterator[Finding]:
    if rule.silent("whole-numbers", is_whole(term, model)):
        return
    power = _alone(term, "exp", model)
    if power is not None:
        loses = "the exponential of a large value is infinite"
        yield _finding(call, Form("torch.nn.functional.softplus", loses, evidence, (power.operand,)), model)
        return
    loses = "a small value is rounded away when 1 is added to it"
    yield _finding(call, Form("torch.log1p", loses, evidence, (term,)), model)


def _plus_one(node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the other term of a sum with 1."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return None
    if _is_one(node.left):
        return node.right
    return node.left if _is_one(node.right) else None


def _is_one(node: cst.CSTNode) -> bool:
    return literal(node) == 1 and isinstance(node, (cst.Integer, cst.Float))


def _sum_of_exponentials(node: cst.CSTNode, model: Model) -> tuple[cst.CSTNode, ...]:
    """Return what is exponentiated, and the arguments of the sum over it, if that is over dimensions that it names."""
    found = applied(node, "sum", model, "dim", "keepdim")
    power = _alone(found.operand, "exp", model) if found is not None else None
    if found is None or power is None or found.arguments.extra:
        return ()
    given, kept = found.arguments.nodes, found.arguments.get("keepdim")
    dimension = found.arguments.get("dim")
    if rule.silent("no-dimension", dimension is None or is_none(dimension)):
        return ()
    is_visible = found.arguments.named.keys() == given.keys() <= {"input", "dim", "keepdim"}
    if not is_visible or (kept is not None and not isinstance(literal(kept), bool)):
        return ()
    return (power.operand, *(argument for name, argument in given.items() if name != "input"))


def _alone(node: cst.CSTNode, operation: str, model: Model) -> Applied | None:
    """Return an operation that gets nothing but its tensor."""
    found = applied(node, operation, model)
    return found if found is not None and isinstance(node, cst.Call) and len(node.args) <= 1 else None


def _is_shifted(node: cst.CSTNode, model: Model) -> bool:
    """Whether an expression is a difference to a maximum."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
        return False
    bound = [binding.value for binding in model.reaching(node.right)] if isinstance(node.right, cst.Name) else []
    parts = (part for value in (node.right, *bound) if value is not None for part in model.descendants(value))
    return any("max" in identifier(part).lower() for part in parts)


def _finding(node: cst.BaseExpression, form: Form, model: Model) -> Finding:
    return Finding(
        node,
        f"{model.shown(node, 'The formula')} is not exact: {form.loses}. `{form.name}` computes it at once.",
        _fix(node, form, model),
    )


def _fix(node: cst.BaseExpression, form: Form, model: Model) -> Fix | None:
    new, term = spelled(form.name, node, model), form.arguments[0]
    if new is None or model.writes.may_break_backward(node, form.arguments) or refuses_integers(form.name, term, model):
        return None
    edits: tuple[Edit, ...]
    if form.name == "torch.log1p" and isinstance(node, cst.Call) and node.args and isinstance(term, cst.BaseExpression):
        edits = (Replace(node.func, new.code), Unwrap(node.args[0].value, term))  # comments around the term stay
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.left, cst.Call) and node.left.args:
        edits = (Replace(node.left.func, new.code), Unwrap(node, node.left))  # those around the argument, too
    else:
        shown = ", ".join(model.code(argument).strip().rstrip(",").rstrip() for argument in form.arguments)
        edits = (Replace(node, f"{new.code}({shown})"),)
    return Fix(
        f"Use `{form.name}`",
        (*edits, *new.imports),
        Safety.UNSAFE,
        "The result is another number, mostly a more exact one, and can have another dtype under autocast.",
        form.evidence,
    )
