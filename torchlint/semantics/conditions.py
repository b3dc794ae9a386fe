"""What tests test, and whether a clock runs around a statement."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator

_CLOCKS = ("time.", "timeit.", "datetime.")


class Conditions:
    """Takes conditions and their surroundings apart."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def operands(self, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield the expressions whose truth a test asks for, through ``and``, ``or`` and ``not``."""
        if isinstance(test, cst.BooleanOperation):
            yield from self.operands(test.left)
            yield from self.operands(test.right)
        elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            yield from self.operands(test.expression)
        else:
            yield test

    def is_timed(self, node: cst.CSTNode) -> bool:
        """Return whether a clock is read, or an event recorded, in a block around a node (its function at most)."""
        for block, _ in self._evaluator.flow.blocks(node):
            for line in getattr(block, "body", ()):
                if not isinstance(line, cst.SimpleStatementLine):
                    continue
                if any(self._reads_clock(below) for below in self._tree.descendants(line)):
                    return True
        return False

    def _reads_clock(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Call):
            return False
        name = self._evaluator.names.qualified(node.func)
        if name is not None:
            return name.startswith(_CLOCKS) or name == "torch.cuda.Event"
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in (
            "elapsed_time",
            "record",
            "time",
            "perf_counter",
        )
