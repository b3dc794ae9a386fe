"""Tensors that are made and wrapped at once, with everything that a tensor of one's own allows afterwards."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search
from tests.torch.stand_in import FAKE_CUDA, META, VALUES

_MADE = (
    "torch.zeros(2, 3)",
    "torch.ones(n)",
    "torch.full((2,), 1.5)",
    "torch.eye(3)",
    "torch.rand(2, 3)",
    "torch.randn(n, n)",
    "torch.arange(4.0)",
    "torch.arange(n)",
    "torch.empty(0)",
    "torch.zeros(())",
    "torch.tensor([1.0, 2.0])",
    "torch.tensor([[1, 2], [3, 4]])",
    "torch.tensor(other)",
    "torch.from_numpy(array)",
    "torch.from_numpy(array[1:])",
    "torch.FloatTensor([1, 2])",
    "torch.FloatTensor(2, 3).zero_()",
    "torch.FloatTensor(array32)",
    "torch.Tensor(array32)",
    "torch.LongTensor([1, 2])",
    "torch.zeros(2, 3, requires_grad=True)",
    "torch.zeros(2, 3, out=room)",
    "torch.zeros(2, 3, device='cuda')",
    "torch.as_tensor(array)",
    "torch.as_tensor(other)",
    "torch.linspace(0, 1, n)",
    "other",
    "leaf",
    "leaf * 2",
    "other[0]",
    "torch.zeros_like(marked)",
    "torch.Tensor(leaf * 2)",
    "torch.FloatTensor(other)",
    "torch.normal(leaf, 1.0)",
    "torch.normal(0.0, leaf)",
    "torch.normal(0.0, 1.0, (n,))",
)
_THEN = (
    *("", "", "", "", "", ".float()", ".double()", ".long()", ".half()", ".to(torch.float64)", ".clone()", ".cpu()"),
    *(".contiguous()", ".detach()", ".data", ".view(-1)", ".t()", "[0]", ".requires_grad_()", ".cuda()", ".numpy()"),
    *(".type(torch.float64)", ".expand(2, 2, 3)", ".unsqueeze(0)", ".detach().clone()", ".data.clone()", ".to('cpu')"),
    *(".to(marked)", ".type_as(marked)", ".to(other)"),
)
_OPTIONS = (
    *("", "", "", "", "", "", ", requires_grad=True", ", requires_grad=False", ", requires_grad=False", ", False"),
    *(", requires_grad=flag", ", volatile=False", ", requires_grad=True, volatile=False", ", requires_grad=n > 2"),
    *(", requires_grad=0", ", requires_grad=1", ", requires_grad=number", ", number"),
)
_NAMES = ("Variable", "Variable", "V", "torch.autograd.Variable", "autograd.Variable")
_AFTER = (
    "x += 1",
    "x.zero_()",
    "x[0] = 5",
    "y = x * 2",
    "x.detach_()",
    "x.requires_grad_()",
    "x.requires_grad = False",
    "x.resize_(1)",
    "x.unsqueeze_(0)",
    "x.t_()",
    "x.data = torch.ones(1)",
    "x.set_(torch.ones(2))",
    "(x * x).sum().backward()",
    "y = x.grad",
    "array[0] = 9",
    "other.mul_(3)",
    "y = [x, x]",
    "y = x.is_leaf, x._version, x._is_view()",
    "y = x.view(-1); y += 1",
    "y = torch.nn.Parameter(x)",
    "y = copy.deepcopy(x)",
    "y = isinstance(x, Variable), type(x)",
    "x.retain_grad()",
    "y = x.detach().numpy()",
    "x.register_hook(lambda gradient: gradient * 2); x.sum().backward()",
    "torch.nn.init.ones_(x)",
    "with torch.no_grad(): x.add_(1)",
    "torch.add(x.detach(), 1, out=x)",
)
_SETUP = (
    ["n = 3"],
    ["flag = True"],
    ["number = 1"],
    ["array = np.arange(3.0)"],
    ["array32 = np.arange(3, dtype=np.float32)"],
    ["other = torch.ones(2, 3)"],
    ["leaf = torch.ones(2, 3, requires_grad=True)"],
    ["room = torch.zeros(2, 3)"],
    ["class Marked(torch.Tensor):", "    pass"],
    ["marked = torch.ones(2).as_subclass(Marked)"],
)


def _site(choices: Choices) -> Lines:
    made = choices.of(*_MADE) + choices.of(*_THEN)
    if choices.chance(8):
        made += choices.of(*_THEN)
    given = f"data={made}" if choices.chance(10) else made
    wrapped = f"{choices.of(*_NAMES)}({given}{choices.of(*_OPTIONS)})"
    form = choices.below(8)
    if form == 0:
        return [f"x, again = {wrapped}, {wrapped}"]
    if form == 1:
        return [f"x = [{wrapped} for k in range(2)][0]"]
    if form == 2:
        return [f"x = {wrapped}{choices.of('.float()', '.view(-1)', '[:1]', ' + 1', '.sum()')}"]
    if form == 3:
        return [f"t = {made}", "x = Variable(t)"]
    return [f"x = {wrapped}"]


def program(choices: Choices) -> Program:
    """Return a program that wraps a tensor and goes on with it."""
    head = ["import copy", "import numpy as np", "import torch", "from torch import autograd"]
    head += ["from torch.autograd import Variable", "from torch.autograd import Variable as V"]
    site = placed(choices, [*_site(choices), *choices.some(_AFTER, 3)])
    if choices.chance(12):
        site = [f"with torch.device({choices.of(repr('cpu'), repr('cuda'))}):", *indented(site)]
    return Program(text(head, needed(_SETUP, site), site))


search = Search("TL504", program, places=(VALUES, META, FAKE_CUDA))
