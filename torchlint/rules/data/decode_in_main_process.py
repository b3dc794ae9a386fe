"""The training loop reads and decodes images, sounds or arrays itself, one after the other.

`PIL.Image.open`, `cv2.imread`, `torchvision.io.read_image`, `torchaudio.load`, `librosa.load`, `soundfile.read`,
`numpy.load` and the like, in the body of a loop that trains, or in a function that it calls.

## Why it costs

The same process that launches the kernels reads files and decodes them: the GPU waits for as long as that takes, in
every step, and only one core of the machine works on it.

## What to write instead

Read in the `Dataset`, whose items the workers of a `DataLoader` make ahead of time:

```python
class Images(Dataset):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]))

for images in DataLoader(Images(paths), batch_size=64, num_workers=4):
    ...
```

## When to ignore it

Where a step reads something that only the step before decides.

Holds for all supported versions of torch. Read in "Multi-process data loading" on the page of `torch.utils.data` of
torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.semantics.tables.files import DECODERS
from torchlint.syntax.calls import literal

rule = Rule(
    code="TL109",
    name="decode-in-main-process",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ADVICE,
    summary="the training loop reads and decodes files itself",
    triggers=Triggers.all_of(
        tuple(sorted({name.rpartition(".")[2] for name in DECODERS})), ("backward", "training_step", "train_step")
    ),
    examples=(
        Example(
            bad="""
from PIL import Image
from torch import optim

optimizer = optim.SGD(model.parameters(), lr=0.1)
for path, label in samples:
    image = transform(Image.open(path))
    criterion(model(image.unsqueeze(0)), label).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    documentation=__doc__,
    silences={
        "in-dataset": "It is read where items or batches are made, which workers do.",
        "not-every-step": "It is read once, every few steps, if a flag asks for it, or in a loop that does not train.",
        "constant": "The file is always the same: it is not data.",
        "cached": "What is read is kept, and read again only if it is missing.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=DECODERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a file that every training step reads."""
    if model.callee(call) not in DECODERS or not call.args:
        return
    if rule.silent("constant", literal(call.args[0].value) is not None):
        return
    heat = model.heat(call)
    if heat is None or heat.role is Role.DATA:
        return
    if rule.silent("not-every-step", heat.role not in (Role.TRAINING_LOOP, Role.STEP)):
        return
    if rule.silent("cached", _is_conditional(call, heat.root, model)) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        call,
        f"{model.shown(call, f'`{model.code(call.func)}`')} reads and decodes in the training loop, while the GPU "
        "waits. Read in the `__getitem__` of a `Dataset`, which the workers of a `DataLoader` run ahead of time.",
    )


def _is_conditional(call: cst.Call, root: cst.CSTNode, model: Model) -> bool:
    """Whether a condition between a call and what makes it hot decides whether it runs."""
    child: cst.CSTNode = call
    for ancestor in model.ancestors(call):
        if ancestor is root or isinstance(ancestor, cst.FunctionDef):
            return False
        branch = isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test
        if branch or isinstance(ancestor, (cst.ExceptHandler, cst.BooleanOperation)):
            return True
        child = ancestor
    return False
