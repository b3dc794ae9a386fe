"""The keys and values of earlier tokens are concatenated with the new ones in each decoding step.

`k = torch.cat([past_key, k], dim=-2)` in the forward pass of an attention layer, where the result is handed on as the
cache of the next step.

## Why it costs

For each new token a tensor for all tokens so far is allocated, and all of them are copied, in each layer and for keys
and values: n tokens copy about n²/2 of them. The shapes change with each step, so that neither CUDA graphs nor
`torch.compile` without dynamic shapes can be used, and memory is fragmented by blocks that are each a little larger.

## What to write instead

A static cache: keys and values for the largest length, made once, into which each step writes its slice.

```python
cache_k[:, :, position : position + length] = k
k = cache_k[:, :, : position + length]
```

`transformers` has it as `StaticCache`. With `torch.compile`, attend over the whole cache with a mask.

## When to ignore it

Where few tokens are decoded, or the layer came from a decoder and never gets a cache here. Where the cache is small and
the GPU waits for Python, to write and to slice is more to ask for than to concatenate (measured below).
TL211 reports tensors that grow in a loop.

Holds for all supported versions of torch; read in the documentation of `torch.cat` of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier

CATENATES = ("torch.cat", "torch.concat", "torch.concatenate")
EARLIER = re.compile(r"(^|_)(past|prev|previous|cached?|saved|history)(_|s?$)", re.IGNORECASE)
KEYS = re.compile(r"^(k|v|keys?|values?)(_|$)|(_|^)(keys?|values?)(_|$)", re.IGNORECASE)
RESHAPES = ("view", "reshape", "transpose", "permute", "contiguous", "detach", "to")
NO_KEYS = re.compile("mask|pad|position|bias|id", re.IGNORECASE)

rule = Rule(
    code="TL419",
    name="kv-cache-concat",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ADVICE,
    summary="keys and values are concatenated with a cache in each decoding step",
    triggers=Triggers.all_of("torch", ("cat", "concat", "concatenate"), "forward"),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v, past):
        past_key, past_value = past
        k = torch.cat([past_key, k], dim=-2)
        v = torch.cat([past_value, v], dim=-2)
        return self.attend(q, k, v), (k, v)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.cat.html",
        "https://huggingface.co/docs/transformers/kv_cache",
    ),
    documentation=__doc__,
    silences={
        "not-kept": "The result is not handed on: what stands before the keys is a prompt or a memory of fixed length.",
        "window": "Only the last ones are kept: the length does not grow.",
        "other-names": "Nothing says that these are keys or values, or that the others are earlier ones.",
        "not-a-layer": "The function belongs to no module.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=CATENATES)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a concatenation of earlier keys with new ones."""
    if model.qualified_name(call.func) not in CATENATES:
        return
    target = _target(call, model)
    function = model.enclosing_function(call)
    owner = model.definitions.owner(function) if function is not None else None
    if target is None or function is None:
        return
    if rule.silent("not-a-layer", owner is None or model.definitions.class_kind(owner) is not Kind.MODULE):
        return
    if rule.silent("not-kept", not _is_kept(target, model)) or rule.silent("test", model.in_test(call)):
        return
    if _is_second(call, function, model):  # the values beside the keys are the same decision
        return
    yield Finding(
        call,
        f"`{model.code(target)}` grows by one `torch.cat` for each token: every decoding step allocates and copies all "
        "earlier ones again, in each layer. Write into slices of a cache that has the largest length.",
    )


def _target(call: cst.Call, model: Model) -> cst.Name | None:
    """Return the keys or values to which a call binds what is earlier and new of them."""
    statement = model.parent(call)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    parts = call.args[0].value if call.args else None
    if not isinstance(target, cst.Name) or not isinstance(parts, (cst.List, cst.Tuple)) or len(parts.elements) != 2:
        return None
    earlier, new = (element.value for element in parts.elements)
    if not isinstance(new, cst.Name) or rule.silent("window", _is_slice(earlier)):
        return None
    is_named = KEYS.search(target.value) and not NO_KEYS.search(target.value) and _is_earlier(earlier, model)
    return target if not rule.silent("other-names", not is_named) and new.value == target.value else None


def _is_earlier(expression: cst.BaseExpression, model: Model) -> bool:
    """Whether a name says that something comes from earlier steps, or what it is unpacked from."""
    bound = model.reaching(expression) if isinstance(expression, cst.Name) else []
    sources = [binding.value for binding in bound if binding.path and binding.value is not None]
    return any(EARLIER.search(_name(source)) for source in (expression, *sources))


def _name(expression: cst.BaseExpression) -> str:
    """Return the name of a variable, of what it is taken from, or of what a method is called on."""
    while isinstance(expression, (cst.Call, cst.Subscript)):
        expression = expression.func if isinstance(expression, cst.Call) else expression.value
        if isinstance(expression, cst.Attribute) and not EARLIER.search(expression.attr.value):
            expression = expression.value
    return identifier(expression)


def _is_slice(expression: cst.BaseExpression) -> bool:
    if not isinstance(expression, cst.Subscript):
        return False
    return any(isinstance(part.slice, cst.Slice) and part.slice.lower is not None for part in expression.slice)


def _is_kept(target: cst.Name, model: Model) -> bool:
    """Whether what a name is bound to is returned in a tuple, or stored in a tuple, a container or an attribute."""
    for binding in (binding for binding in model.bindings(target) if binding.node is target):
        for name in model.uses(binding):
            is_read = name is not target and any(found.node is target for found in model.reaching(name))
            if is_read and _keeps(name, model):
                return True
    return False


def _keeps(name: cst.Name, model: Model) -> bool:
    node, parent = _unreshaped(name, model)
    if isinstance(parent, cst.Element):
        around = model.parent(parent)
        stored = model.parent(around) if isinstance(around, (cst.Tuple, cst.List)) else None
        stored = model.parent(stored) if isinstance(stored, (cst.IfExp, cst.Element)) else stored
        return isinstance(stored, (cst.Return, cst.Assign, cst.Tuple))
    if not isinstance(parent, cst.Assign) or parent.value is not node:
        return False
    stored_in = parent.targets[0].target
    if isinstance(stored_in, cst.Name):
        return bool(EARLIER.search(stored_in.value))
    return isinstance(stored_in, (cst.Subscript, cst.Attribute))


def _unreshaped(node: cst.CSTNode, model: Model) -> tuple[cst.CSTNode, cst.CSTNode | None]:
    """Return the outermost method call on a node, as in ``k.view(..)``, and what stands around it."""
    parent = model.parent(node)
    while isinstance(parent, cst.Attribute) and parent.attr.value in RESHAPES:
        node = model.parent(parent) or node
        parent = model.parent(node)
    return node, parent


def _is_second(call: cst.Call, function: cst.FunctionDef, model: Model) -> bool:
    """Whether a function concatenates others before."""
    calls = (node for node in model.descendants(function.body) if isinstance(node, cst.Call))
    before = (node for node in calls if model.order(node) < model.order(call))
    found = (
        _target(node, model)
        for node in before
        if model.qualified_name(node.func) in CATENATES and model.enclosing_function(node) is function
    )
    return any(target is not None and _is_kept(target, model) for target in found)
