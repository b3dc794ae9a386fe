"""What torch functions, classes and tensor methods return."""

from __future__ import annotations


def _names(prefix: str, text: str) -> frozenset[str]:
    return frozenset(f"{prefix}.{name}" for name in text.split())


# Functions that make a tensor out of nothing, and take `device=`.
SIZED_FACTORIES = _names(
    "torch", "zeros ones empty full rand randn randint randperm arange linspace logspace eye normal"
)
DATA_FACTORIES = _names("torch", "tensor as_tensor")
INDEX_FACTORIES = _names("torch", "tril_indices triu_indices")
WINDOW_FACTORIES = _names("torch", "bartlett_window blackman_window hamming_window hann_window")
FACTORIES = SIZED_FACTORIES | DATA_FACTORIES | INDEX_FACTORIES | WINDOW_FACTORIES
# Of these any dtype can be asked, also that of another tensor.
CASTABLE_FACTORIES = _names("torch", "zeros ones full empty eye tensor")
RANDOM_FACTORIES = _names("torch", "rand randn randint randperm normal")
LIKE_FACTORIES = _names("torch", "zeros_like ones_like empty_like full_like rand_like randn_like randint_like")
LEGACY_CONSTRUCTORS = _names(
    "torch",
    "Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor "
    "LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
)
CUDA_CONSTRUCTORS = _names(
    "torch.cuda",
    "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor "
    "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
)
# Methods that arrays of other libraries, modules and frames do not have.
TENSOR_ONLY = frozenset(
    "unsqueeze masked_fill masked_fill_ masked_select index_select index_add_ scatter_ scatter_add_ expand_as view_as "
    "type_as new_zeros new_ones new_full new_empty new_tensor logsumexp bmm expand contiguous "
    "isfinite isinf add_ sub_ mul_ div_ addcmul_ addcdiv_ copy_ lerp_ clamp_".split()
)
# Methods that only strings have.
STRING_ONLY = frozenset(
    "isspace isalpha isdigit isalnum isnumeric isdecimal isupper islower istitle startswith endswith strip lstrip "
    "rstrip lower upper casefold capitalize splitlines rsplit removeprefix removesuffix ljust rjust zfill".split()
)
# Methods and attributes of arrays of any library, of which a model is given tensors only.
OF_ARRAYS = frozenset("any all sum max min mean size dim ndim shape view reshape permute transpose float long".split())
DTYPE_OF_CONSTRUCTOR = {
    "FloatTensor": "torch.float32",
    "Tensor": "torch.float32",
    "DoubleTensor": "torch.float64",
    "HalfTensor": "torch.float16",
    "BFloat16Tensor": "torch.bfloat16",
    "LongTensor": "torch.int64",
    "IntTensor": "torch.int32",
    "ShortTensor": "torch.int16",
    "CharTensor": "torch.int8",
    "ByteTensor": "torch.uint8",
    "BoolTensor": "torch.bool",
}
DTYPES = _names(
    "torch",
    "float32 float64 float16 bfloat16 float double half int8 int16 "
    "int32 int64 uint8 short int long bool complex64 complex128 cfloat",
)
# The name that NumPy has for a dtype.
NDARRAY_DTYPES = {
    "torch.float32": "float32",
    "torch.float": "float32",
    "torch.float64": "float64",
    "torch.double": "float64",
    "torch.float16": "float16",
    "torch.half": "float16",
    "torch.int64": "int64",
    "torch.long": "int64",
    "torch.int32": "int32",
    "torch.int": "int32",
    "torch.uint8": "uint8",
    "torch.bool": "bool",
}
DTYPE_CASTS = {
    "float": "torch.float32",
    "double": "torch.float64",
    "half": "torch.float16",
    "bfloat16": "torch.bfloat16",
    "long": "torch.int64",
    "int": "torch.int32",
    "short": "torch.int16",
    "char": "torch.int8",
    "byte": "torch.uint8",
    "bool": "torch.bool",
}

IN_MEMORY_DATASETS = frozenset(
    ("torch.utils.data.TensorDataset", "monai.data.CacheDataset", "torch_geometric.data.InMemoryDataset")
)
DATASET_WRAPPERS = frozenset(
    (
        "torch.utils.data.ConcatDataset",
        "torch.utils.data.Subset",
        "torch.utils.data.random_split",
        "torch.utils.data.StackDataset",
    )
)

# Arguments by which a framework sets a switch of torch, by the class that takes them.
FRAMEWORK_SWITCHES = {
    "lightning.pytorch.Trainer": {
        "deterministic": "torch.use_deterministic_algorithms",
        "benchmark": "torch.backends.cudnn.benchmark",
    },
    "transformers.TrainingArguments": {"full_determinism": "torch.use_deterministic_algorithms"},
    "transformers.Seq2SeqTrainingArguments": {"full_determinism": "torch.use_deterministic_algorithms"},
}
# Calls that can stand for an assignment to a switch.
SETTERS = ("setattr", "setdefault", "putenv", "__setitem__", "update", *FRAMEWORK_SWITCHES)

# What gives a tensor, of the classes in torch.distributions.
DISTRIBUTION_METHODS = frozenset(
    "sample sample_n rsample log_prob entropy cdf icdf perplexity enumerate_support".split()
)
DISTRIBUTION_ATTRIBUTES = frozenset("mean mode stddev variance probs logits loc scale".split())

NO_GRAD_CONTEXTS = frozenset(("torch.no_grad", "torch.inference_mode"))
LOSS_CLASSES = _names(
    "torch.nn",
    "CrossEntropyLoss MSELoss L1Loss BCELoss BCEWithLogitsLoss NLLLoss SmoothL1Loss KLDivLoss HuberLoss CTCLoss "
    "CosineEmbeddingLoss MarginRankingLoss TripletMarginLoss HingeEmbeddingLoss GaussianNLLLoss PoissonNLLLoss "
    "MultiLabelSoftMarginLoss MultiLabelMarginLoss MultiMarginLoss "
    "SoftMarginLoss TripletMarginWithDistanceLoss NLLLoss2d",
)
LOSS_FUNCTIONS = _names(
    "torch.nn.functional",
    "cross_entropy mse_loss l1_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits nll_loss smooth_l1_loss kl_div "
    "huber_loss ctc_loss cosine_embedding_loss "
    "margin_ranking_loss triplet_margin_loss gaussian_nll_loss poisson_nll_loss",
)
OPTIMIZERS = _names(
    "torch.optim",
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam",
)
OPTIMIZER_MODULES = ("torch.optim.", "apex.optimizers.", "timm.optim.", "bitsandbytes.optim.", "torch_optimizer.")
SCALERS = frozenset(("torch.cuda.amp.GradScaler", "torch.amp.GradScaler"))

# Torch functions that return no tensor.
TORCH_NUMBERS = _names(
    "torch",
    "is_tensor is_floating_point is_complex numel equal allclose initial_seed get_num_threads manual_seed seed "
    "is_grad_enabled get_default_dtype typename is_storage finfo iinfo broadcast_shapes promote_types result_type "
    "can_cast get_rng_state set_printoptions are_deterministic_algorithms_enabled get_float32_matmul_precision",
)
# Tensor methods by what they return.
NUMBER_METHODS = frozenset(
    (
        "item size dim ndimension numel nelement element_size data_ptr get_device stride storage_offset is_contiguous "
        "is_floating_point is_complex is_pinned is_shared is_set_to is_same_size is_inference is_coalesced _is_view "
        "__len__ equal allclose _nnz sparse_dim dense_dim"
    ).split()
)
DETACHED_RESULTS = frozenset(
    (
        "argmax argmin multinomial eq ne lt le gt ge isnan isinf isfinite long int short byte bool nonzero argsort "
        "bincount logical_and logical_or logical_not sign signbit new_zeros "
        "new_ones new_empty new_full new_tensor count_nonzero any all"
    ).split()
)
SEQUENCE_METHODS = {"max": 2, "min": 2, "topk": 2, "sort": 2, "kthvalue": 2, "median": 2, "mode": 2}
LIST_METHODS = frozenset("split chunk unbind tensor_split".split())
# Methods that keep data, so that a factory and a move around them are still one creation.
RESHAPING_METHODS = frozenset(
    "view reshape unsqueeze squeeze expand repeat transpose "
    "permute flatten contiguous view_as expand_as t unflatten movedim".split()
)
FILLING_METHODS = frozenset("fill_ zero_ normal_ uniform_ random_ bernoulli_ exponential_ squeeze_ unsqueeze_".split())
# What computes a tensor of tensors and numbers alone, as a function and as a method, and asks the host for nothing.
_COMPUTING = (
    "abs acos add asin atan atan2 bitwise_and bitwise_not bitwise_or ceil clamp clamp_max clamp_min clip cos cosh "
    "cumprod cumsum deg2rad diag diagonal div divide eq erf exp exp2 expm1 flip floor floor_divide fmod frac ge gt le "
    "lerp log log10 log1p log2 logical_and logical_not logical_or logical_xor lt masked_fill matmul maximum mean "
    "minimum mm mul multiply ne neg outer pow prod rad2deg reciprocal relu remainder roll rot90 round rsqrt sigmoid "
    "sign sin sinh softmax sqrt square sub subtract sum tan tanh tile tril triu true_divide trunc swapaxes "
    "broadcast_to unsqueeze squeeze reshape permute transpose flatten movedim"
)
COMPUTING_FUNCTIONS = (
    _names("torch", _COMPUTING)
    | _names(
        "torch",
        "stack cat concat concatenate hstack vstack dstack column_stack meshgrid cartesian_prod einsum complex "
        "polar kron block_diag logaddexp where zeros_like ones_like full_like empty_like",
    )
    | _names("torch.nn.functional", "pad softmax log_softmax normalize")
)
COMPUTING_METHODS = (
    frozenset(_COMPUTING.split())
    | {"clone", "contiguous", "logaddexp", "unbind"}
    | frozenset("add_ sub_ mul_ div_ pow_ neg_ exp_ sin_ cos_ clamp_ tril_ triu_ masked_fill_ fill_diagonal_".split())
)
RANDOM_METHODS = frozenset("normal_ uniform_ random_ bernoulli_ exponential_".split())
# Contexts in which a factory without `device=` works elsewhere than on the CPU, or on another stream.
DEVICE_CONTEXTS = frozenset(
    "torch.device torch.cuda.device torch.cuda.device_of torch.cuda.stream torch.cuda.StreamContext torch.xpu.device "
    "torch.xpu.stream torch.accelerator.device_index".split()
)
DEFAULT_DEVICE_SETTERS = frozenset(("torch.set_default_device", "torch.set_default_tensor_type"))
NUMBER_ATTRIBUTES = frozenset(
    "ndim is_cuda requires_grad is_leaf itemsize nbytes is_sparse is_quantized is_mps is_cpu".split()
)
TENSOR_ATTRIBUTES = frozenset("T H mT mH real imag".split())

HOST_CLASSES = frozenset(
    ("numpy", "math", "random", "time", "os", "pandas", "scipy", "json", "re", "sys", "argparse", "pathlib")
)
NUMPY_NUMBERS = frozenset(
    "numpy.mean numpy.sum numpy.std numpy.max numpy.min numpy.prod numpy.float32 numpy.float64 numpy.int64".split()
)
# Wrappers that hand out the items of what they are given.
ITERATION_WRAPPERS = frozenset(
    (
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.rich.tqdm",
        "tqdm.contrib.tenumerate",
        "tqdm.std.tqdm",
        "builtins.iter",
        "builtins.reversed",
        "builtins.list",
        "builtins.tuple",
        "builtins.sorted",
        "itertools.cycle",
        "itertools.islice",
        "rich.progress.track",
        "tqdm.trange",
    )
)

_COMPARISONS = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_not equal any all".split()
)
_INDICES = frozenset("argmax argmin argsort count_nonzero bincount nonzero".split())
_KEEPS_DTYPE = frozenset(
    "detach clone contiguous view reshape squeeze unsqueeze flatten "
    "t view_as expand expand_as max min abs cpu cuda".split()
) | frozenset(FILLING_METHODS)


def result_dtype(operation: str, operand: str | None) -> str | None:
    """Return the dtype of the result of a torch function or tensor method, None where it is not certain."""
    if operation in _COMPARISONS:
        return "torch.bool"
    if operation in _INDICES:
        return "torch.int64"
    if operation in DTYPE_CASTS:
        return DTYPE_CASTS[operation]
    if operation == "sum" and operand in ("torch.bool", "torch.int64", "torch.int32", "torch.uint8"):
        return "torch.int64"
    if operation in ("mean", "sum", "norm") and operand in ("torch.float32", "torch.float16", "torch.bfloat16"):
        return operand
    return operand if operation in _KEEPS_DTYPE else None


MOCKS = frozenset(
    f"{module}.{name}"
    for module in ("unittest.mock", "mock", "mock.mock")
    for name in "Mock MagicMock AsyncMock NonCallableMock NonCallableMagicMock create_autospec".split()
)
"""What stands for something else in a test, and only counts how it is used."""
