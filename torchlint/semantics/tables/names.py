"""Canonical names: every public or non-public path of an object under the one name that rules use."""

from __future__ import annotations

from torchlint.semantics.tables.loaders import GRAPH_LOADERS

BUILT_ON_TORCH = frozenset(
    "torch lightning fairseq detectron2 mmcv mmengine monai kornia ignite timm allennlp gpytorch botorch".split()
)
"""Libraries one of which a file imports that computes with tensors of torch; others have arrays of several kinds."""

OPTIONS = frozenset("args opt opts options cfg config conf hparams hps FLAGS".split())
"""What holds the options of a program by its name."""

# Modules whose members are re-exported: the longest matching prefix is replaced.
CANONICAL_PREFIXES: dict[str, str] = {
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
    "torch.utils.data.distributed": "torch.utils.data.distributed",
    "torch.utils.data.sampler": "torch.utils.data",
    "torch.nn.modules.activation": "torch.nn",
    "torch.nn.modules.batchnorm": "torch.nn",
    "torch.nn.modules.container": "torch.nn",
    "torch.nn.modules.conv": "torch.nn",
    "torch.nn.modules.dropout": "torch.nn",
    "torch.nn.modules.instancenorm": "torch.nn",
    "torch.nn.modules.linear": "torch.nn",
    "torch.nn.modules.loss": "torch.nn",
    "torch.nn.modules.module": "torch.nn",
    "torch.nn.modules.normalization": "torch.nn",
    "torch.nn.modules.pooling": "torch.nn",
    "torch.nn.modules.rnn": "torch.nn",
    "torch.nn.modules.sparse": "torch.nn",
    "torch.nn.modules.transformer": "torch.nn",
    "torch.nn.modules": "torch.nn",
    "torch.nn.parallel.data_parallel": "torch.nn.parallel",
    "torch.nn.parallel.distributed": "torch.nn.parallel",
    "torch.nn.parameter": "torch.nn",
    "torch.optim.adadelta": "torch.optim",
    "torch.optim.adagrad": "torch.optim",
    "torch.optim.adam": "torch.optim",
    "torch.optim.adamax": "torch.optim",
    "torch.optim.adamw": "torch.optim",
    "torch.optim.lbfgs": "torch.optim",
    "torch.optim.nadam": "torch.optim",
    "torch.optim.optimizer": "torch.optim",
    "torch.optim.radam": "torch.optim",
    "torch.optim.rmsprop": "torch.optim",
    "torch.optim.rprop": "torch.optim",
    "torch.optim.sgd": "torch.optim",
    "torch.optim.sparse_adam": "torch.optim",
    "torch.autograd.anomaly_mode": "torch.autograd",
    "torch.autograd.grad_mode": "torch.autograd",
    "torch.autograd.gradcheck": "torch.autograd",
    "torch.autograd.variable": "torch.autograd",
    "torch.cuda.amp.autocast_mode": "torch.cuda.amp",
    "torch.cuda.amp.grad_scaler": "torch.cuda.amp",
    "torch.amp.autocast_mode": "torch.amp",
    "torch.amp.grad_scaler": "torch.amp",
    "torch.tensor": "torch",
    "torch._tensor": "torch",
    "torch.functional": "torch",
    "torch_geometric.data.dataloader": "torch_geometric.loader",
    "torch_geometric.loader.dataloader": "torch_geometric.loader",
    "torch_geometric.utils.dataloader": "torch_geometric.loader",
    "torch_geometric.loader.neighbor_loader": "torch_geometric.loader",
    "torch_geometric.loader.prefetch": "torch_geometric.loader",
    "pytorch_lightning": "lightning.pytorch",
    "lightning.pytorch.core.module": "lightning.pytorch",
    "lightning.pytorch.core.lightning": "lightning.pytorch",
    "lightning.pytorch.core": "lightning.pytorch",
    "lightning.pytorch.trainer.trainer": "lightning.pytorch",
    "lightning.pytorch.trainer": "lightning.pytorch",
    "monai.data.dataloader": "monai.data",
    "monai.data.dataset": "monai.data",
    "monai.data.thread_buffer": "monai.data",
    "dgl.dataloading.pytorch": "dgl.dataloading",
    "speechbrain.data_io.dataloader": "speechbrain.dataio.dataloader",
    "timm.data.loader": "timm.data",
    "accelerate.accelerator": "accelerate",
}
# Single objects that live under several names.
CANONICAL_NAMES: dict[str, str] = {
    "torch.autograd.no_grad": "torch.no_grad",
    "torch.autograd.enable_grad": "torch.enable_grad",
    "torch.autograd.set_grad_enabled": "torch.set_grad_enabled",
    "torch.autograd.inference_mode": "torch.inference_mode",
    "torch.autograd.set_detect_anomaly": "torch.autograd.set_detect_anomaly",
    "torch.nn.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.torch": "torch",
    # What editors import from where they find it first.
    "torch.functional.F": "torch.nn.functional",
    "torch.nn.functional.Tensor": "torch.Tensor",
    "torch.types.Tensor": "torch.Tensor",
    "torch.nn.functional.torch": "torch",
    "torch.serialization.load": "torch.load",
    "torch.serialization.save": "torch.save",
    "torch.cuda.memory.empty_cache": "torch.cuda.empty_cache",
    "torch.hub.tqdm": "tqdm.tqdm",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "torch_geometric.utils.DataLoader": "torch_geometric.loader.DataLoader",
    **{f"torch_geometric.data.{name}": f"torch_geometric.loader.{name}" for name in GRAPH_LOADERS},
    "lightning.LightningModule": "lightning.pytorch.LightningModule",
    "lightning.LightningDataModule": "lightning.pytorch.LightningDataModule",
    "lightning.Trainer": "lightning.pytorch.Trainer",
    "lightning.Fabric": "lightning.fabric.Fabric",
    "transformers.trainer.Trainer": "transformers.Trainer",
    "transformers.training_args.TrainingArguments": "transformers.TrainingArguments",
    "transformers.training_args_seq2seq.Seq2SeqTrainingArguments": "transformers.Seq2SeqTrainingArguments",
    "torch.autograd.profiler.profile": "torch.autograd.profiler.profile",
    "torch.utils.checkpoint.checkpoint": "torch.utils.checkpoint.checkpoint",
    "numpy.random.mtrand.RandomState": "numpy.random.RandomState",
    "math.inf": "math.inf",
}
# What `from module import *` brings into a file, as far as rules ask for it.
STAR_EXPORTS: dict[str, frozenset[str]] = {
    "torch": frozenset(
        "Tensor FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ByteTensor "
        "BoolTensor zeros ones empty full rand "
        "randn randint randperm arange linspace logspace eye tensor as_tensor from_numpy cat stack no_grad enable_grad "
        "set_grad_enabled inference_mode device load save nn optim "
        "cuda autograd float32 float16 float64 int64 long".split()
    ),
    "torch.utils.data": frozenset(
        "DataLoader Dataset IterableDataset TensorDataset ConcatDataset ChainDataset Subset random_split Sampler "
        "RandomSampler SequentialSampler BatchSampler WeightedRandomSampler SubsetRandomSampler "
        "default_collate get_worker_info".split()
    ),
    "torch.nn": frozenset(
        "Module Sequential ModuleList ModuleDict Parameter Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
        "ConvTranspose3d Linear BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d GroupNorm LayerNorm ReLU LeakyReLU GELU SiLU Sigmoid Tanh Softmax LogSoftmax Dropout Dropout2d "
        "MaxPool2d AvgPool2d AdaptiveAvgPool2d Flatten Identity Embedding LSTM GRU RNN CrossEntropyLoss MSELoss L1Loss "
        "BCELoss BCEWithLogitsLoss NLLLoss SmoothL1Loss KLDivLoss DataParallel".split()
    ),
    "torch.optim": frozenset(
        "Optimizer SGD Adam AdamW Adagrad Adadelta Adamax "
        "NAdam RAdam RMSprop Rprop LBFGS SparseAdam ASGD lr_scheduler".split()
    ),
    "torch.autograd": frozenset(
        "Variable Function backward grad set_detect_anomaly detect_anomaly gradcheck profiler".split()
    ),
}
# What everybody calls these modules, and so what a star import of a module of one's own binds them to.
CONVENTIONAL_NAMES: dict[str, str] = {
    "F": "torch.nn.functional",
    "Variable": "torch.autograd.Variable",
    "cudnn": "torch.backends.cudnn",
    "nn": "torch.nn",
    "np": "numpy",
    "optim": "torch.optim",
    "torch": "torch",
}
STAR_EXPORTS["torch.utils.data.dataloader"] = frozenset(("DataLoader", "Dataset", "IterableDataset", "Sampler"))
STAR_EXPORTS["torch.nn.modules"] = STAR_EXPORTS["torch.nn"]


def canonical(name: str) -> str:
    """Return the one name that rules use for an object given by any of its paths."""
    if name in CANONICAL_NAMES:
        return CANONICAL_NAMES[name]
    module, _, last = name.rpartition(".")
    rest = ""
    while module:
        replacement = CANONICAL_PREFIXES.get(module)
        if replacement is not None and (module != "torch.tensor" or last.startswith("Tensor")):
            renamed = f"{replacement}.{last}{rest}"
            return renamed if renamed == name else canonical(renamed)
        module, _, head = module.rpartition(".")
        rest = f".{last}{rest}"
        last = head
    return name


NAMESAKES = frozenset(
    f"torch.{name}"
    for name in (
        "abs absolute all any arange arccos arcsin arctan arctan2 argmax argmin argsort argwhere bincount "
        "broadcast_to ceil clip corrcoef cos cosh cov cumprod cumsum deg2rad diag diff dot einsum exp exp2 expm1 "
        "fft.fft fft.ifft fft.irfft fft.rfft flip fliplr flipud floor fmax fmin hypot imag inner isclose "
        "isfinite isinf isnan kron linalg.det linalg.eigh linalg.inv linalg.norm linalg.pinv linalg.qr linalg.solve "
        "linalg.svd log log10 log1p log2 logaddexp logical_and logical_not logical_or matmul maximum mean "
        "minimum nan_to_num nanmean nanquantile nansum outer prod quantile rad2deg real roll round "
        "searchsorted sign sin sinc sinh sqrt square stack sum take tan tanh tensordot tile trace trapezoid "
        "tril triu trunc unique vstack hstack where"
    ).split()
)
"""Functions of torch that compute what those of the same name in NumPy do, and those on any device.

`median`, `std`, `var`, `cross` and `meshgrid` give other values, `sort` gives the order as well.
"""
