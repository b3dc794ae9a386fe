"""Functions, methods and modules of torch by whether they always compute with all that they are given."""

from __future__ import annotations

# Prefixes of functions that compute with every argument, whatever its values are.
PLAIN_FUNCTIONS = (
    "torch.",
    "math.",
    "einops.",
    "numpy.",
    "random.random",
    "random.uniform",
    "random.randint",
    "builtins.abs",
    "builtins.dict",
    "builtins.enumerate",
    "builtins.float",
    "builtins.int",
    "builtins.len",
    "builtins.list",
    "builtins.print",
    "builtins.range",
    "builtins.reversed",
    "builtins.str",
    "builtins.sum",
    "builtins.tuple",
    "builtins.zip",
    "time.",
)
# Those among them that choose, or that reach into autograd.
VARYING_FUNCTIONS = (
    "torch.autograd.",
    "torch.cond",
    "torch.func.",
    "torch.hub.",
    "torch.jit.",
    "torch.load",
    "torch.ops.",
    "torch.utils.",
    "torch.distributed.",
    "torch.nn.utils.",
    "torch.nn.parallel.",
    "torch.nn.DataParallel",
    "torch.nn.Module",
    "torch.set_grad_enabled",
    "numpy.random.choice",
    "numpy.random.permutation",
    "numpy.random.shuffle",
)
# Modules whose parameters take part only for some inputs, or that are not a module by themselves.
VARYING_MODULES = frozenset(
    (
        "torch.nn.AdaptiveLogSoftmaxWithLoss",
        "torch.nn.Module",
        "torch.nn.Transformer",
        "torch.nn.TransformerDecoder",
        "torch.nn.TransformerEncoder",
        "torch.nn.ModuleDict",
        "torch.nn.ModuleList",
        "torch.nn.ParameterDict",
        "torch.nn.ParameterList",
        "torch.nn.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
    )
)
CONTAINERS = frozenset(("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"))
# Methods of tensors and of Python's own containers that leave out nothing.
PLAIN_METHODS = frozenset(
    (
        "abs add add_ addmm all amax amin any append argmax argmin baddbmm bfloat16 bmm bool chunk clamp "
        "clamp_ clamp_max clamp_min clone contiguous cos cpu cuda cumsum detach diff dim div div_ dot double "
        "eq exp expand expand_as extend fill_ flatten flip float format gather ge gt half index_select int "
        "is_cuda item items keys le log log_softmax logsumexp long lt masked_fill masked_fill_ masked_select "
        "matmul max mean min mm mul mul_ narrow ne neg new_full new_ones new_tensor new_zeros norm normal_ "
        "numel numpy permute pow prod reciprocal relu repeat repeat_interleave reshape roll round rsqrt scale "
        "scatter scatter_ scatter_add scatter_add_ sigmoid sign sin size softmax split sqrt square squeeze "
        "squeeze_ stack std sub sub_ sum t tanh tile to tolist topk transpose tril triu type type_as unbind "
        "unfold unscale_ unsqueeze unsqueeze_ update values var view view_as where zero_"
    ).split()
)
# Names whose presence in a file says that gradients are looked at, or that parameters come and go.
MEDDLING_NAMES = frozenset(
    (
        "grad grad_fn requires_grad requires_grad_ retain_grad retain_graph create_graph register_hook "
        "register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
        "register_backward_hook register_module_forward_hook register_post_accumulate_grad_hook add_param_group "
        "set_submodule setattr delattr exec __dict__ sparse prune parametrize functional_call deepcopy no_sync "
        "find_unused_parameters freeze unfreeze register_parameter _parameters _modules assign __setattr__ "
        "__getattribute__ attrgetter swap_tensors parametrizations remove_parametrizations orthogonal weight_norm "
        "remove_weight_norm spectral_norm remove_spectral_norm prepare_qat "
        "set_overwrite_module_params_on_conversion set_swap_module_params_on_conversion"
    ).split()
)
# Optimizers that call the step themselves, or whose gradients are no plain tensors.
STRANGE_OPTIMIZERS = frozenset(("torch.optim.LBFGS", "torch.optim.SparseAdam", "torch.optim.Optimizer"))
