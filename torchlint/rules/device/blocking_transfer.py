"""A batch is moved to the device without `non_blocking=True`.

## Why it costs

`batch.to(device)` from pinned memory makes the host wait until the copy has finished; with `non_blocking=True` the
copy is queued on the stream like a kernel, and Python goes on to queue the forward pass. From pageable memory the
copy is staged through a pinned buffer and the flag changes little: it goes with `pin_memory=True` in the loader.

## What to write instead

`x.to(device, non_blocking=True)`, with a loader that pins its memory; `x.type(torch.cuda.FloatTensor)` is such a copy
too, and takes the flag as well. Kernels on the same stream wait for the copy, so nothing else has to change. The fix is
unsafe: the host must not write to the batch before the copy is over, a move that converts does so on the device, and
where the device is chosen at run time, copies to MPS have returned garbage. Where the file speaks of MPS or of streams,
or the batch or a part of it may be an object of its own (of a tokenizer, a graph, of images beside lists of targets),
there is no fix; nor in a function that moves whatever batch it is given, such as `to_device(batch)`.

A batch that a step makes of arrays, `torch.stack([torch.from_numpy(data[i]) for i in rows])`, or gathers by what the
loader gives, `features[batch.n_id]`, is not pinned, and `non_blocking=True` alone gains little. What helps is a loader
that pins it, or a buffer pinned once. `x.pin_memory()` in the step (TL220) pays where the next batch is fetched while
the device computes.

## When to ignore it

The batch is written to on the host right after the move, or the copy is a vanishing part of the step. A copy from the
device to the host must never be non-blocking without a synchronisation before the values are read.

Holds for all supported versions of torch; read in the tutorial on `pin_memory` and `non_blocking`, for torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import NO_FLAG, Role
from torchlint.semantics.model import Model
from torchlint.semantics.tensors.batch_movers import moves_batches
from torchlint.semantics.tensors.gathered import made_on_host
from torchlint.semantics.tensors.joined_batches import joins_batch
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Device, Kind, Origin, Value

_MOVING = ("to", "cuda", "cpu", "type")
_MOVED = (Kind.TENSOR, Kind.BATCH)
_FOR_EACH_BATCH = (Role.TRAINING_LOOP, Role.EVALUATION_LOOP, Role.STEP)
_MAY_WRITE = "The host may write to the batch before it is copied."
_MAY_BE_MPS = " The device is chosen at run time, and MPS has returned garbage from such copies."
_CONVERTS = " The device converts it then, and holds both: floats that no integer can hold come out otherwise."
_ASSUMED = " It is only assumed to be a tensor: the `to` of other classes may take no such flag."
_MOVE_PARTS = "It is joined from parts of a batch: move those, with `non_blocking=True`, and join them on the device."

rule = Rule(
    code="TL205",
    name="blocking-transfer",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="a batch moved to the device without `non_blocking=True`",
    triggers=Triggers.all_of(("cuda", "to")),
    examples=(
        Example(
            bad="""
import torch
from torch.utils.data import DataLoader

def train(model, dataset, optimizer):
    for x, y in DataLoader(dataset, num_workers=4, pin_memory=True):
        x = x.cuda()
        model(x).sum().backward()
        optimizer.step()
""",
            good="""
import torch
from torch.utils.data import DataLoader

def train(model, dataset, optimizer):
    for x, y in DataLoader(dataset, num_workers=4, pin_memory=True):
        x = x.cuda(non_blocking=True)
        model(x).sum().backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
        "https://github.com/pytorch/pytorch/issues/139550",
    ),
    documentation=__doc__,
    silences={
        "given": "`non_blocking` is given, also by the `to` of a class of this file that a batch is of, or arguments "
        "are unpacked that may carry it.",
        "no-batch": "What is moved is no batch of a loader on the host: a model, a loss, a tensor made in the loop, "
        "one item of a list that is not trained on (`for query in queries`).",
        "not-hot": "The move is not in a loop over batches.",
        "to-host": "The move goes to the CPU, to where a tensor is that it indexes and that moves on, or changes the "
        "dtype only.",
        "prepared": "The move goes to `accelerator.device`, where the loaders that accelerate prepares put batches.",
        "on-device": "The dataset, the collate function or a wrapper of the loader puts the tensors on the device.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=_MOVING)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a blocking move of a batch in a loop over batches."""
    move = model.move(call) or model.moves.to_other(call)
    if move is None or move.method not in _MOVING or model.loaders.needs_no_pinning:
        return
    moved = model.value(move.receiver)
    is_part = moved.origin is Origin.BATCH
    for_all = not is_part and moves_batches(move, model.evaluator)
    is_joined = not is_part and not for_all and joins_batch(move.receiver, model.evaluator)
    if not for_all and not is_joined and (not is_part or moved.kind not in _MOVED):
        return
    to_host = move.place is Device.CPU or model.moves.indexes_host(move)
    if rule.silent("on-device", is_part and moved.device is not Device.CPU) or rule.silent("to-host", to_host):
        return
    is_told = model.loaders.blocking_moves.is_told(move)
    if rule.silent("prepared", model.loaders.go_to_prepared(call, moved)) or rule.silent("given", is_told):
        return
    heat = None if for_all else model.heat(call, NO_FLAG)
    # A loss may move the targets that the step before it left on the host; a batch as a whole has gone along.
    moves_targets = heat is not None and heat.role is Role.LOSS and moved.kind is Kind.TENSOR
    if not for_all and (heat is None or not (heat.role in _FOR_EACH_BATCH or moves_targets)):
        return
    evaluates = heat is not None and heat.role is Role.EVALUATION_LOOP
    if rule.silent("no-batch", evaluates and model.loaders.blocking_moves.takes_items(move.receiver)):
        return
    if rule.silent("on-device", not for_all and model.loaders.placed_batches.hold(move.receiver)):
        return
    batch = model.code(move.receiver)
    waits = f"`{batch}` is copied to the device while the host waits."
    if is_joined:
        yield Finding(call, f"{waits} {_MOVE_PARTS}")
        return
    may_be_object = for_all or model.loaders.collations.may_be_object(move, moved.kind)
    is_unseen = may_be_object and model.loaders.collations.own_move(move.receiver) is None
    yield Finding(
        call,
        f"{waits} From pinned memory `non_blocking=True` lets Python go on queueing work: write "
        f"{_written(call, batch, model)}{', if its class takes that' * is_unseen}.",
        _fix(move, moved, model) if not may_be_object else None,
    )


@rule.check(cst.Call, called=("to", "cuda"))
def check_assembled(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a blocking move of a batch that the host makes of arrays, or gathers, in every step."""
    move = model.move(call)
    made = made_on_host(move.receiver, model.evaluator, model.pinned) if move is not None else None
    if move is None or made is None or model.loaders.needs_no_pinning:
        return
    is_told = model.loaders.blocking_moves.is_told(move)
    if rule.silent("to-host", move.place is Device.CPU) or rule.silent("given", is_told):
        return
    heats = [model.heat(node, NO_FLAG) for node in (call, made)]
    if rule.silent("not-hot", not all(heat is not None and heat.role in _FOR_EACH_BATCH for heat in heats)):
        return
    large = "Where batches are large"
    if isinstance(made, cst.Subscript):
        large = f"Move `{model.code(made.value)}` once before the loop if it fits on the device; else"
    yield Finding(
        call,
        f"{model.shown(move.receiver, 'the batch')} is put together on the host in every step, in memory that is not "
        f"pinned, and copied to the device while the host waits; `non_blocking=True` alone would change little. {large}"
        " let a `DataLoader` with `pin_memory=True` make them ahead, or fill a buffer pinned once.",
    )


def _written(call: cst.Call, batch: str, model: Model) -> str:
    """The call as it should be, and what pins the batch, where the code does not pin it itself."""
    if isinstance(call.func, cst.Attribute) and model.loaders.collations.own_move(call.func.value) is not None:
        return "`non_blocking=True` into the `to` of its class"
    whole = model.shown(call, "").strip("`")
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else "to"
    start = f"{whole[:-1]}{', ' if call.args else ''}" if whole else f"{batch}.{method}(..., "
    is_pinned = batch.endswith(".pin_memory()") or model.loaders.blocking_moves.loaders_pin
    return f"`{start}non_blocking=True)`{'' if is_pinned else ' and `pin_memory=True` in the loader'}"


def _fix(move: Move, moved: Value, model: Model) -> Fix | None:
    if model.vocabulary.mentions_mps or model.vocabulary.mentions_streams:
        return None  # other streams would not wait
    certain = move.place is Device.ACCELERATOR and move.evidence is Evidence.PROVEN
    assumed = f"{_CONVERTS if move.dtype else ''}{'' if model.loaders.collations.is_tensor(move) else _ASSUMED}"
    return Fix(
        "Add `non_blocking=True`",
        (AddKeyword(move.call, "non_blocking", "True"),),
        Safety.UNSAFE,
        f"{_MAY_WRITE}{'' if certain else _MAY_BE_MPS}{assumed}",
        min(moved.evidence, max(move.evidence, Evidence.INFERRED)),
    )
