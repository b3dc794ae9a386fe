"""What a rule reports: findings on nodes, without files or offsets."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.edits.operations import Edit
from torchlint.safety import Safety
from torchlint.semantics.evidence import Evidence

__all__ = ["Finding", "Fix", "Safety"]


@dataclass(frozen=True, slots=True)
class Fix:
    """A rewrite in terms of nodes: all of its edits are applied together or none is."""

    message: str
    """What the fix does, in the imperative: "Pass `device=` to `torch.zeros`"."""

    edits: tuple[Edit, ...]
    safety: Safety
    why: str = ""
    """One sentence on what could change; mandatory unless the fix is safe."""

    evidence: Evidence = Evidence.PROVEN
    """The weakest evidence that the rewrite relies on: a safe fix needs PROVEN, an unsafe one INFERRED."""

    def __post_init__(self) -> None:
        if self.safety is not Safety.SAFE and not self.why:
            raise ValueError("a fix that is not safe must say why")


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that wastes time, as a rule sees it."""

    node: cst.CSTNode
    """The node whose source range is reported."""

    message: str
    """What is wrong, why it costs, what to write instead: up to three short sentences, with the user's own names."""

    fix: Fix | None = None
    owner: cst.CSTNode | None = None
    """The expression or statement that the node belongs to, where the node is a mere name in it."""
