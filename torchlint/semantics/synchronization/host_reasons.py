"""Why code computes on the host what a device might compute: it asks where it runs, or needs what only the host has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import bind, identifier

_LIBRARIES = re.compile(
    r"^(scipy|sklearn|cv2|PIL|skimage|networkx|faiss|munkres|lap|lapsolver|numba|ot|trimesh|open3d|pyworld|librosa|"
    r"soundfile|parselmouth|pysptk|pesq|pystoi|nltk|editdistance|Levenshtein|pycocotools|torchaudio\.(io|sox_effects))\."
    r"|(^|\.)(linalg|fft|sparse)\."
)
# What devices lack, or do worse than the host: decompositions, searches, texts, random numbers, alignments.
_FUNCTIONS = re.compile(
    r"^(svd|symeig|eigh?|eigvalsh?|p?inv(erse)?|pinverse|qr|lu|lu_\w+|cholesky\w*|lstsq|l?solve\w*|slogdet|det|logdet|"
    r"i?r?fft[n2]?|matrix_exp|\w*nms|\w*linear_sum_assignment|(\w+_)?decode(_\w+)?|\w*tokeni[sz]e\w*|"
    r"randperm|sample(_\w+)?|\w*(align|viterbi|dtw)\w*|pack_padded_sequence|ctc_loss)$"
)
_WHERE = re.compile(
    r"device|cuda|mps|npu|xpu|xla|tpu|hpu|mlu|cpu|onnx|export|trac(e|ing)|script|backend|debug|verbose|visual|available|isinstance|tensor",
    re.IGNORECASE,
)
# Is there a device at all? Of those of Apple and of TPUs many programs know what they lack.
_ACCELERATORS = re.compile(r"(^|_)(cuda|npu|xpu|mlu|musa|hpu)(_|$)")
_TARGETS = (cst.AssignTarget, cst.AugAssign)


class HostReasons:
    """Finds such reasons."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def belongs_there(self, call: cst.Call) -> bool:
        """Return whether a call runs what is at its best on the host, or of a library that computes there only.

        A generator belongs to a device: what draws from that of the host draws there.
        """
        if bind(call.args).get("generator") is not None:
            return True
        return bool(_FUNCTIONS.match(identifier(call.func))) or any(map(_LIBRARIES.search, self._origins(call)))

    def _origins(self, call: cst.Call) -> Iterator[str]:
        """Yield the full name of what is called, and of what made the object whose method it is."""
        yield self._evaluator.names.qualified(call.func) or ""
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        for made in self._evaluator.held_by(receiver):
            if isinstance(made, cst.Call):
                yield self._evaluator.names.qualified(made.func) or ""

    def is_deliberate(self, call: cst.Call) -> bool:
        """Return whether a test of where or how the program runs, a missing value or an error decides about a call."""
        child: cst.CSTNode = call
        for ancestor in self._tree.ancestors(call):
            if isinstance(ancestor, (cst.If, cst.IfExp)) and self._decides(ancestor, child):
                return True
            if isinstance(ancestor, cst.Try):
                return True
            if isinstance(ancestor, cst.IndentedBlock) and self._is_left_before(ancestor, child):
                return True
            if isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def _decides(self, branch: cst.If | cst.IfExp, child: cst.CSTNode) -> bool:
        """Whether the test of a branch is of that kind: not only if there is the device to which a result goes."""
        if child is branch.test or not self._asks(branch.test):
            return False
        return child is not branch.body or not self._is_availability(branch.test)

    def _is_left_before(self, block: cst.IndentedBlock, child: cst.CSTNode) -> bool:
        """Whether a test of that kind leaves a block before a part of it."""
        before = block.body[: block.body.index(child)] if child in block.body else ()
        branches = (each for each in before if isinstance(each, cst.If) and ends_in_jump(each.body))
        return any(self._asks(branch.test) for branch in branches)

    def _asks(self, test: cst.BaseExpression) -> bool:
        """Whether a test asks where or how the program runs, what was given, or if an object keeps a result already."""
        parts = (part for part in self._tree.descendants(test) if isinstance(part, (cst.Name, cst.Attribute)))
        kept = (c for c in self._tree.below(test, cst.Comparison) if isinstance(c.left, cst.Attribute))
        return any(_WHERE.search(identifier(part)) for part in parts) or any(
            identifier(target.comparator) == "None" for each in kept for target in each.comparisons
        )

    def _is_availability(self, test: cst.BaseExpression) -> bool:
        """Whether a test only asks if there is an accelerator: ``torch.cuda.is_available()``."""
        if not isinstance(test, cst.Call) or test.args or not identifier(test.func).endswith("available"):
            return False
        return any(_ACCELERATORS.search(identifier(part)) for part in self._tree.descendants(test.func))

    def goes_step_by_step(self, start: cst.Call, end: cst.Call, function: cst.FunctionDef) -> bool:
        """Return whether a loop between two calls needs in each pass what the last one found."""
        tree = self._tree
        loops = (loop.body for kind in (cst.For, cst.While) for loop in tree.below(function.body, kind))
        between = (body for body in loops if tree.order(body) < tree.order(end) and tree.last(body) > tree.order(start))
        return any(self._carries(body) for body in between if not tree.within(end, body))

    def _carries(self, body: cst.BaseSuite) -> bool:
        tree, flow = self._tree, self._evaluator.flow
        stored = {id(s.target): identifier(s.target) for s in tree.below(body, cst.AssignTarget) if _is_part(s.target)}
        read = (part for part in tree.below(body, cst.Subscript) if id(part) not in stored)
        if any(identifier(part) in stored.values() for part in read):
            return True
        names = (name for name in tree.below(body, cst.Name) if not isinstance(tree.parent(name), _TARGETS))
        found = ((name, b) for name in names for b in flow.definitions(name) if b.kind is BindingKind.ASSIGNMENT)
        made = ((name, b.node) for name, b in found if name is not b.node and tree.within(b.node, body))
        return any(tree.order(n) < tree.order(b) or flow.statement(n) is flow.statement(b) for n, b in made)


def _is_part(target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Subscript)
