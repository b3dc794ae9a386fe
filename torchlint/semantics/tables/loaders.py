"""What makes batches: loaders, and the arguments that decide about their workers and about pinned memory."""

from __future__ import annotations

from typing import NamedTuple


class Choice(NamedTuple):
    """A parameter, and what it is unless it is given."""

    keyword: str
    default: bool | int


_WORKERS = Choice("num_workers", 0)
_PINNED = Choice("pin_memory", False)


class LoaderKind(NamedTuple):
    """What is known of a class or function that makes a loader."""

    parameters: str = ""
    """The positional parameters by name."""

    workers: Choice | None = _WORKERS
    """None where it is given a loader."""

    pinned: Choice | None = _PINNED
    data: str = "dataset"
    """The parameter that is given the data."""

    indexes: bool = True
    """Whether the data are items, rather than a graph from which each batch is sampled."""

    moves: bool = False
    """Whether the batches are on the device when they are handed out."""

    moves_unless_off: str = ""
    """A parameter that switches the move off."""

    title: str = "this loader"
    """What a message calls it."""

    threaded: bool = False
    """Whether a thread makes the batches ahead of time, without workers."""

    host_only: tuple[str, ...] = ()
    """Parameters that keep everything on the CPU if they are true."""


_TORCH = (
    "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last timeout "
    "worker_init_fn multiprocessing_context generator"
)
_LINKS = (
    "data num_neighbors edge_label_index edge_label edge_label_time neg_sampling neg_sampling_ratio replace "
    "subgraph_type"
)
_SAINT = LoaderKind("data batch_size num_steps sample_coverage save_dir log", data="data", indexes=False)
_LISTS = LoaderKind("dataset batch_size shuffle")
_TRAINING_ARGUMENTS = LoaderKind(
    "output_dir",
    workers=Choice("dataloader_num_workers", 0),
    pinned=Choice("dataloader_pin_memory", True),
    data="train_dataset",
    title="the trainer's loader",
    moves=True,
    host_only=("use_cpu", "no_cuda"),
)
_GRAPH_LOADERS = {
    "DataLoader": LoaderKind("dataset batch_size shuffle follow_batch exclude_keys"),
    "DataListLoader": _LISTS,
    "DenseDataLoader": _LISTS,
    "NeighborLoader": LoaderKind("data num_neighbors input_nodes input_time replace", data="data", indexes=False),
    "LinkNeighborLoader": LoaderKind(_LINKS, data="data", indexes=False),
    "NodeLoader": LoaderKind("data node_sampler input_nodes input_time", data="data", indexes=False),
    "LinkLoader": LoaderKind("data link_sampler edge_label_index edge_label", data="data", indexes=False),
    "HGTLoader": LoaderKind("data num_samples input_nodes is_sorted transform", data="data", indexes=False),
    "ClusterLoader": LoaderKind("cluster_data", data="cluster_data", indexes=False),
    "RandomNodeLoader": LoaderKind("data num_parts", data="data", indexes=False),
    "RandomNodeSampler": LoaderKind("data num_parts", data="data", indexes=False),
    "GraphSAINTNodeSampler": _SAINT,
    "GraphSAINTEdgeSampler": _SAINT,
    "GraphSAINTRandomWalkSampler": LoaderKind(
        "data batch_size walk_length num_steps sample_coverage save_dir log", data="data", indexes=False
    ),
    "ShaDowKHopSampler": LoaderKind("data depth num_neighbors node_idx replace", data="data", indexes=False),
    "NeighborSampler": LoaderKind(
        "edge_index sizes node_idx num_nodes return_e_id transform", data="edge_index", indexes=False
    ),
}
GRAPH_LOADERS = frozenset(_GRAPH_LOADERS)
LOADER_KINDS: dict[str, LoaderKind] = {
    "torch.utils.data.DataLoader": LoaderKind(_TORCH),
    "torchdata.stateful_dataloader.StatefulDataLoader": LoaderKind(_TORCH),
    "speechbrain.dataio.dataloader.SaveableDataLoader": LoaderKind(_TORCH),
    "webdataset.WebLoader": LoaderKind(_TORCH),
    "dgl.dataloading.GraphDataLoader": LoaderKind("dataset collate_fn use_ddp ddp_seed", pinned=None),
    **{f"torch_geometric.loader.{name}": kind for name, kind in _GRAPH_LOADERS.items()},
    "torch_geometric.loader.PrefetchLoader": LoaderKind("loader device", None, None, data="loader", moves=True),
    "torch_geometric.loader.CachedLoader": LoaderKind("loader device transform", None, None, data="loader", moves=True),
    "monai.data.DataLoader": LoaderKind("dataset num_workers"),
    "monai.data.ThreadDataLoader": LoaderKind(
        "dataset buffer_size buffer_timeout repeats use_thread_workers", threaded=True
    ),
    "timm.data.create_loader": LoaderKind(
        "dataset input_size batch_size is_training",
        workers=Choice("num_workers", 1),
        moves=True,
        moves_unless_off="use_prefetcher",
    ),
    "accelerate.data_loader.DataLoaderShard": LoaderKind(_TORCH, None, None, moves=True),
    **{
        f"nvidia.dali.plugin.pytorch.DALI{name}Iterator": LoaderKind("pipelines", None, None, moves=True)
        for name in ("Generic", "Classification", "Ragged")
    },
}
# Settings of a trainer that makes its loaders itself.
TRAINER_SETTINGS: dict[str, LoaderKind] = {
    "transformers.TrainingArguments": _TRAINING_ARGUMENTS,
    "transformers.Seq2SeqTrainingArguments": _TRAINING_ARGUMENTS,
}
# Iterators of torchtext before 0.12: they take `device=`, and have neither workers nor pinned memory.
TEXT_ITERATORS = frozenset(
    f"torchtext.{module}.{name}"
    for module in ("data", "legacy.data")
    for name in ("Iterator", "BucketIterator", "BPTTIterator")
)
# Transforms of MONAI after which the items of a dataset are on a device.
PLACING_TRANSFORMS = frozenset(f"monai.transforms.{name}" for name in ("ToDevice", "ToDeviced", "ToDeviceD"))
TYPING_TRANSFORMS = frozenset(
    f"monai.transforms.{name}" for name in ("EnsureType", "EnsureTyped", "EnsureTypeD", "ToTensor", "ToTensord")
)
# Identifiers of which one stands in every file that makes a loader whose workers are its own.
WITH_WORKERS = frozenset(
    name.rpartition(".")[2] for name, kind in (LOADER_KINDS | TRAINER_SETTINGS).items() if kind.workers is not None
)
CPU_COUNTS = frozenset(f"{module}.cpu_count" for module in ("os", "multiprocessing", "torch.multiprocessing", "psutil"))
# Methods of accelerate and Fabric that hand back what they are given, in its order.
PREPARES = ("prepare", "prepare_data_loader", "setup_dataloaders")
# Identifiers of which one stands in every file where a framework moves batches.
FRAMEWORK_MOVES = (
    *PREPARES,
    *("Trainer", "Fabric", "LightningCLI"),
    *("create_supervised_trainer", "create_supervised_evaluator"),
    *(name.rpartition(".")[2] for name, kind in (LOADER_KINDS | TRAINER_SETTINGS).items() if kind.moves),
)

BLOCKING_CLASSES = ("NestedTensor", "BoxList", "ImageList", "Meshes", "Pointclouds", "Volumes", "BatchEncoding")
"""What collate functions of detectors, of pytorch3d and of tokenizers make: their ``to`` may take no flag."""
