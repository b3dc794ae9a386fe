"""Which of our rules finds what a check of another linter finds, or why none does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Counterpart:
    """One check of another linter. ``code`` may be that of a rule that is planned and not there yet."""

    theirs: str
    finds: str
    """What it reports, in a few words."""

    code: str = ""
    why: str = ""
    """Why no rule of ours stands for it, or why ours finds something else; never empty where ``code`` is."""


@dataclass(frozen=True, slots=True)
class Linter:
    """Another linter and all its checks that are about PyTorch."""

    title: str
    source: str
    """Where the list of its checks was read, and so how complete it can be."""

    checks: tuple[Counterpart, ...]

    @property
    def codes(self) -> Mapping[str, str]:
        """Return the code of ours for each check of theirs, empty where none is meant."""
        return MappingProxyType({check.theirs: check.code for check in self.checks})


_TORCHFIX = Linter(
    "TorchFix",
    "release 0.7.0 and the repository after it; a test compares the codes",
    (
        Counterpart("TOR001", "use of a removed function", "TL801"),
        Counterpart("TOR002", "`require_grad` assigned", "TL803"),
        Counterpart("TOR003", "`checkpoint` without `use_reentrant`", "TL804"),
        Counterpart("TOR004", "import of a removed function", "TL801"),
        Counterpart("TOR101", "use of a deprecated function", "TL802"),
        Counterpart("TOR102", "`torch.load` without `weights_only`", "TL805"),
        Counterpart("TOR103", "import of a deprecated function", "TL802"),
        Counterpart("TOR104", "use of a private name that has a public one", "TL806"),
        Counterpart("TOR105", "import of a private name that has a public one", "TL806"),
        Counterpart("TOR106", "`torch.log(1 + x)`", "TL412"),
        Counterpart("TOR107", "`torch.exp(x) - 1`", "TL412"),
        Counterpart("TOR108", "`torch.log(torch.sum(torch.exp(x)))`", "TL412"),
        Counterpart("TOR201", "`pretrained=` of torchvision", "TL807"),
        Counterpart("TOR202", "`v2.ToTensor` of torchvision", "TL808"),
        Counterpart("TOR203", "`import torchvision.models as models`", "TL809"),
        Counterpart("TOR401", "a DataLoader without workers", "TL101"),
        Counterpart("TOR402", "gradients set to zero instead of None", "TL301"),
        Counterpart("TOR901", "`torch.library.Library` in tests", why="it is about the tests of PyTorch itself"),
    ),
)

_SONAR = Linter(
    "Sonar",
    "the numbers that Sonar's rules for Python have; the pages of S6973, S6979 and S6985 were read",
    (
        Counterpart("S2201", "the result of a method without side effects is dropped", "TL413"),
        Counterpart(
            "S6929",
            "a reduction without its dimension",
            why="losses and metrics reduce over all of them; TL903 reports a softmax, which guesses its dimension",
        ),
        Counterpart("S6973", "an optimizer without its important hyperparameters", "TL904"),
        Counterpart("S6978", "a module whose `__init__` does not initialise `nn.Module`", "TL411"),
        Counterpart("S6979", "`torch.autograd.Variable`", "TL504"),
        Counterpart("S6982", "`load_state_dict` without `.eval()` or `.train()` after it", "TL503"),
        Counterpart("S6983", "a DataLoader without `num_workers`", "TL101"),
        Counterpart(
            "S6984",
            "an einops pattern that is malformed",
            why="einops checks it on the first call and says what is wrong",
        ),
        Counterpart("S6985", "`torch.load` that runs the code in a file", "TL805"),
    ),
)

_CODEGURU = Linter(
    "Amazon CodeGuru",
    "the detector library; five pages were read, the four about losses and gradients are known by their titles",
    (
        Counterpart("pytorch-avoid-softmax-with-nllloss", "softmax before `NLLLoss`", "TL414"),
        Counterpart("pytorch-control-sources-of-randomness", "a random number generator that is not seeded", "TL901"),
        Counterpart(
            "pytorch-data-loader-with-multiple-workers", "a dataset in a Python list, read by several workers", "TL111"
        ),
        Counterpart("pytorch-disable-gradient-calculation", "`no_grad` where `inference_mode` would do", "TL502"),
        Counterpart("pytorch-miss-call-to-eval", "a model that is loaded and used without `.eval()`", "TL503"),
        Counterpart("pytorch-miss-call-to-zero-grad", "a training loop that never resets its gradients", "TL309"),
        Counterpart("pytorch-redundant-softmax", "softmax before `CrossEntropyLoss`", "TL409"),
        Counterpart("pytorch-sigmoid-before-bceloss", "sigmoid before `BCELoss`", "TL414"),
        Counterpart(
            "pytorch-use-nondeterministic-algorithm",
            "an operation that is not deterministic",
            why="deterministic algorithms cost time, so TL604 reports the opposite where nobody asked for them",
        ),
    ),
)

_DSLINTER = Linter(
    "dslinter",
    "release 2.0.9; a test compares the codes",
    (
        Counterpart("R5508", "a learning rate, batch size, momentum or weight decay left at its default", "TL904"),
        Counterpart(
            "W5507",
            "no `torch.use_deterministic_algorithms(True)`",
            why="deterministic algorithms cost time, so TL604 reports the opposite where nobody asked for them",
        ),
        Counterpart("W5511", "no `torch.manual_seed`", "TL901"),
        Counterpart(
            "W5512",
            "a DataLoader without `worker_init_fn` and `generator`",
            why="`torch.manual_seed` seeds the order and the workers as well",
        ),
        Counterpart("W5514", "`torch.log` of a value that is not clamped", "TL905"),
        Counterpart("W5516", "`model.forward(x)` instead of `model(x)`", "TL410"),
        Counterpart("W5517", "`backward` and `step` without `zero_grad`", "TL309"),
        Counterpart(
            "W5521",
            "an F1 score without the area under a curve",
            why="a score at one threshold is right where that threshold is used",
        ),
        Counterpart("W9998", "an evaluation that does not go back to training mode", "TL503"),
    ),
)

_SEMGREP = Linter(
    "Trail of Bits' semgrep rules",
    "the list in the README of its repository, by the titles of the rules",
    (
        Counterpart("automatic-memory-pinning", "a DataLoader without `pin_memory`", "TL102"),
        Counterpart("numpy-in-pytorch-datasets", "NumPy's random numbers in a dataset", "TL105"),
        Counterpart("numpy-in-pytorch-modules", "NumPy in a module", "TL415"),
        Counterpart("pickles-in-pytorch", "functions of torch that unpickle", "TL805"),
        Counterpart(
            "pickles-in-pytorch-distributed",
            "collectives that unpickle objects",
            why="the processes of one job run the same program anyway",
        ),
        Counterpart(
            "pytorch-classes-load-library",
            "`torch.classes.load_library`",
            why="a compiled extension is code by its nature, as the program that names it",
        ),
        Counterpart("pytorch-package", "`torch.package`, which unpickles", "TL805"),
        Counterpart("pytorch-tensor", "`torch.Tensor(...)` as a constructor", "TL810"),
        Counterpart("waiting-with-pytorch-distributed", "`isend` or `irecv` without a wait", "TL706"),
    ),
)

_BANDIT = Linter(
    "Bandit",
    "release 1.9.4; a test compares the codes",
    (Counterpart("B614", "`torch.load` that runs the code in a file", "TL805"),),
)

_PROFILER = Linter(
    "torch's profiler",
    "`torch/profiler/_pattern_matcher.py` of torch 2.13; a test compares the names",
    (
        Counterpart("Conv2dBiasFollowedByBatchNorm2dPattern", "a bias that the batch norm behind it removes", "TL401"),
        Counterpart("ExtraCUDACopyPattern", "a tensor filled on the CPU and moved at once", "TL201"),
        Counterpart("FP32MatMulPattern", "matrix products in float32 without TF32", "TL607"),
        Counterpart("ForLoopIndexingPattern", "a loop that indexes a tensor element by element", "TL216"),
        Counterpart("GradNotSetToNonePattern", "gradients set to zero instead of None", "TL301"),
        Counterpart("MatMulDimInFP16Pattern", "sizes of a float16 product that are no multiples of 8", "TL404"),
        Counterpart(
            "NamePattern", "operators of a given name", why="it looks for what its user names, nothing is wrong"
        ),
        Counterpart("OptimizerSingleTensorPattern", "an optimizer that works tensor by tensor", "TL306"),
        Counterpart("SynchronizedDataLoaderPattern", "a DataLoader without workers", "TL101"),
    ),
)

PLANNED: Mapping[str, str] = MappingProxyType(
    {
        "TL105": "rng-in-dataset",
        "TL111": "list-dataset-with-workers",
        "TL216": "python-loop-over-tensor",
        "TL306": "optimizer-not-fused",
        "TL309": "step-order",
        "TL404": "dim-not-multiple-of-8",
        "TL409": "softmax-before-cross-entropy",
        "TL410": "forward-called-directly",
        "TL411": "missing-super-init",
        "TL412": "unstable-forms",
        "TL413": "pure-result-discarded",
        "TL414": "sigmoid-before-bce",
        "TL415": "numpy-in-forward",
        "TL607": "tf32-not-enabled",
        "TL706": "async-work-not-waited",
        "TL901": "seed-unset",
        "TL904": "optimizer-defaults",
        "TL905": "log-without-clamp",
    }
)
"""The names of the rules that are named above before they are there; an entry may stay when its rule has come."""

LINTERS: Mapping[str, Linter] = MappingProxyType(
    {
        "torchfix": _TORCHFIX,
        "sonar": _SONAR,
        "codeguru": _CODEGURU,
        "dslinter": _DSLINTER,
        "semgrep": _SEMGREP,
        "bandit": _BANDIT,
        "profiler": _PROFILER,
    }
)
"""By the word that `torchlint rules --map` takes."""


def same_as(theirs: str) -> str:
    """Return what to say about the code of a check of another linter, empty if it is none."""
    for linter in LINTERS.values():
        for check in linter.checks:
            if check.theirs.lower() == theirs.lower():
                ours = f"`{check.code}` finds what it does" if check.code else "no rule stands for it"
                return f"{check.theirs} is of {linter.title}; {ours}"
    return ""
