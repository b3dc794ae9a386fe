"""Dropout that a module applies in evaluation too, since nothing tells it the mode.

`F.dropout(x)` without `training=`, `F.scaled_dot_product_attention(q, k, v, dropout_p=p)` without a look at
`self.training`, and `nn.Dropout(p)(x)`, a layer made anew in the forward pass.

## Why it costs

The functions know nothing of `model.eval()`: `training` is True by default, and attention always drops what `dropout_p`
says. A layer made in the forward pass is a new module, and new modules are in training mode. So the model is evaluated,
validated and deployed with parts of its activations set to 0: worse results, other ones on each call, and time for
random numbers (read in the documentation and code of torch 2.13).

## What to write instead

`F.dropout(x, p, training=self.training)`, `dropout_p=p if self.training else 0.0`, or an `nn.Dropout` that is made in
`__init__`, which follows the mode by itself.

The fix is unsafe: nothing is dropped in evaluation then, so that its results change, which is the point.

## When to ignore it

Where dropout in evaluation is the method (Monte Carlo dropout, Tacotron's prenet): say `training=True`. The rule is
silent outside of modules, where there is no mode to ask for, and about `alpha_dropout`, which is off by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal
from torchlint.syntax.canonical import is_same

RANKS = ("", "1d", "2d", "3d")
DROPOUTS = tuple(f"torch.nn.functional.dropout{rank}" for rank in RANKS)
LAYERS = tuple(f"torch.nn.Dropout{rank}" for rank in RANKS)
NAMES = tuple(name.rpartition(".")[2] for name in (*DROPOUTS, *LAYERS))
ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
SIGNATURE = ("input", "p", "training", "inplace")
ATTENDED = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
WHOLE_PURPOSE = re.compile(
    r"mc|monte|bayes|always|stochastic|uncertain|prenet|epistemic|thompson|augment|nois[ey]|corrupt|perturb|masking|"
    r"Loss$|Criterion$|Transform$|Augmentor$",
    re.IGNORECASE,
)

rule = Rule(
    code="TL408",
    name="dropout-always-on",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ON,
    summary="dropout in a module that `model.eval()` does not switch off",
    triggers=Triggers.all_of((*NAMES, "scaled_dot_product_attention")),
    examples=(
        Example(
            bad="""
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)
""",
            good="""
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=self.training)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    ),
    documentation=__doc__,
    silences={
        "chosen": "`training` is given, or may be: by a `**` argument, or by position.",
        "guarded": "The code asks for the mode, or for a flag that says what is wanted: around the call, before it, in "
        "the probability, or where the method is called; or the method is a part of training by its name.",
        "outside-module": "The call stands in no method of a module: there is no mode to ask for.",
        "nothing-dropped": "The probability is 0, there by a condition too, or an assertion is about it.",
        "not-constant": "The probability of attention is computed: that may ask for the mode.",
        "meant": "Dropout in evaluation is what it is for: Monte Carlo, Bayesian, prenets, sampling without gradients.",
        "kept": "The layer is made once and kept, so that it follows the mode.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
    about_speed=False,
)


@rule.check(cst.Call, called=(*NAMES, ATTENTION))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report dropout that does not look at the mode of its module."""
    found, method = _dropped(call, model), _method(call, model)
    if found is None:
        return
    probability, cure = found
    if method is None or rule.silent("nothing-dropped", _is_nothing(call, probability, method, model)):
        return
    owner = model.definitions.owner(method)
    is_module = owner is not None and model.definitions.class_kind(owner) is Kind.MODULE
    if rule.silent("outside-module", not is_module or _has_no_object(method, model)):
        return
    names = f"{method.name.value} {owner.name.value if owner is not None else ''}"
    twice = model.qualified_name(call.func) != ATTENTION and model.mode_questions.is_doubled(call, method)
    samples = twice or (method.name.value != "forward" and model.evaluator.gradients.function_disabled(method))
    if rule.silent("meant", samples or WHOLE_PURPOSE.search(names) is not None):
        return
    if rule.silent("guarded", model.mode_questions.guards(call, method) or model.mode_questions.knows(probability)):
        return
    itself = model.definitions.receiver_at(call, method)
    is_short = probability is None or "\n" not in model.code(probability)
    edit = _edit(call, probability, f"{itself}.training", model) if itself and is_short else None
    yield Finding(
        call,
        f"`{model.code(call.func)}` drops values in evaluation too: {cure}.",
        None
        if edit is None
        else Fix(
            f"Drop only while `{itself}.training`",
            (edit,),
            Safety.UNSAFE,
            "Nothing is dropped in evaluation then, so that its results change.",
        ),
    )


def _dropped(call: cst.Call, model: Model) -> tuple[cst.BaseExpression | None, str] | None:
    """Return the probability and what to write instead, None for a call that is no dropout or says when it is."""
    name = model.qualified_name(call.func)
    if name in DROPOUTS:
        given = model.arguments(call, SIGNATURE)
        if rule.silent("chosen", "training" in given.named or given.open):
            return None
        return given.get("p"), "it knows nothing of `eval()`. Pass `training=self.training`"
    if name == ATTENTION:
        probability = model.arguments(call, ATTENDED).get("dropout_p")
        if probability is None or rule.silent("not-constant", not _is_constant(probability)):
            return None
        return probability, "attention always applies `dropout_p`. Pass 0.0 unless `self.training`"
    made = call.func
    if isinstance(made, cst.Call) and model.qualified_name(made.func) in LAYERS:
        probability = made.args[0].value if made.args else None
        return probability, "the layer is new on each call, and new layers are in training mode. Make it in `__init__`"
    return None


def _is_constant(probability: cst.BaseExpression) -> bool:
    """Whether a probability is a number or an attribute, which nothing computes from the mode."""
    return isinstance(probability, (cst.Float, cst.Integer, cst.Attribute))


def _is_nothing(call: cst.Call, probability: cst.BaseExpression | None, method: cst.FunctionDef, model: Model) -> bool:
    """Whether a probability is 0, or has to be by a condition around the call or an assertion of the method."""
    if probability is None or literal(probability) == 0 or model.mode_questions.is_never(probability):
        return probability is not None
    if model.mode_questions.is_zero_at(call, method, probability):
        return True
    tests = (node.test for node in model.descendants(method) if isinstance(node, cst.Assert))
    return any(is_same(part, probability) for test in tests for part in model.descendants(test))


def _method(node: cst.CSTNode, model: Model) -> cst.FunctionDef | None:
    """Return the method in which a node runs, through functions inside it; else the outermost function."""
    found = model.enclosing_function(node)
    while found is not None and model.definitions.owner(found) is None:
        outer = model.enclosing_function(found)
        if outer is None:
            break
        found = outer
    return found


def _has_no_object(method: cst.FunctionDef, model: Model) -> bool:
    names = (model.qualified_name(decorator.decorator) for decorator in method.decorators)
    return any(name in ("builtins.staticmethod", "builtins.classmethod") for name in names)


def _edit(call: cst.Call, probability: cst.BaseExpression | None, mode: str, model: Model) -> Edit | None:
    if isinstance(call.func, cst.Call) or model.writes.changes_result(call):
        return None  # in evaluation the result is the argument itself, which must stay as it is
    if model.qualified_name(call.func) != ATTENTION:
        return AddKeyword(call, "training", mode)
    return Replace(probability, f"{model.code(probability)} if {mode} else 0.0") if probability is not None else None
