"""One process drives several GPUs by `nn.DataParallel`.

## Why it costs

In every forward pass one Python process copies the whole model to each GPU, splits the batch, runs one thread for each
GPU under the same interpreter lock, and gathers all outputs on the first GPU, which also computes the loss and sums the
gradients. The first GPU is full while the others wait. PyTorch recommends `DistributedDataParallel` instead, even on a
single machine: one process for each GPU keeps its own copy of the model and overlaps the sum of the gradients with the
backward pass. `DataParallel` is discouraged, not deprecated: no release is named that removes it.

## What to write instead

Start one process for each GPU (`torchrun --nproc_per_node=gpu train.py`), and in it

```python
torch.distributed.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DistributedDataParallel(model.cuda(), device_ids=[local_rank])
loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
```

There is no automatic fix: the program has to be started and its data divided in another way.

## When to ignore it

For a short run on two GPUs, or in a notebook that cannot start processes. The rule is silent where the class is only
named (`isinstance`, base classes, annotations), for other classes of that name, and in tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

WRAPPERS = frozenset(
    ("torch.nn.DataParallel", "torch_geometric.nn.DataParallel", "torch_geometric.nn.data_parallel.DataParallel")
)

_NAMED = re.compile(r"(?<!Distributed)DataParallel|^(Single\w*)?DP(Strategy|Wrapper|Plugin|Model)$")

rule = Rule(
    code="TL701",
    name="data-parallel",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.ON,
    summary="one process drives several GPUs by DataParallel",
    triggers=Triggers.all_of("DataParallel"),
    examples=(Example(bad="from torch import nn\n\nmodel = nn.DataParallel(nn.Linear(2, 2))\n"),),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead",
    ),
    documentation=__doc__,
    silences={
        "named": "The class is named and not called: `isinstance`, a base class, an annotation.",
        "other-class": "Another class is called: DistributedDataParallel, one that derives from none of them.",
        "test": "The code belongs to a test.",
        "meant": "The class around the call is named for it: a strategy or wrapper that somebody chose.",
    },
)


@rule.check(cst.Call)
def data_parallel(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a model that is wrapped."""
    made = model.definition(node.func)
    inherits = isinstance(made, cst.ClassDef) and not WRAPPERS.isdisjoint(model.ancestry(made))
    if inherits and isinstance(made, cst.ClassDef) and "forward" in model.definitions.methods(made):
        return  # it may run the module in another way
    if model.callee(node) not in WRAPPERS and not inherits:
        return
    if rule.silent("test", model.in_test(node)) or rule.silent("meant", _is_meant(node, model)):
        return
    given = model.arguments(node, ("module", "device_ids"))
    module = given.get("module")
    what = model.shown(module, "the model")
    named = what.strip("`") if module is not None and what != "the model" else "model"
    yield Finding(
        node,
        f"`{model.code(node.func)}` copies {what} to every GPU in each forward pass and gathers the outputs on one: "
        "a single Python process drives all GPUs, and they wait for it. Run one process for each GPU by `torchrun`, "
        f"and wrap the model there: `DistributedDataParallel({named}, device_ids=[local_rank])`.",
    )


def _is_meant(node: cst.CSTNode, model: Model) -> bool:
    classes = (ancestor for ancestor in model.ancestors(node) if isinstance(ancestor, cst.ClassDef))
    return any(_NAMED.search(each.name.value) for each in classes)
