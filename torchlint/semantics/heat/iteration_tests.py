"""Branches for certain passes of a loop: ``for i, block in enumerate(blocks): if i == 2: ...``."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal

_DICE = frozenset(("random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.random_sample"))
_DRAWN = frozenset(("random.randint", "random.randrange", "numpy.random.randint"))
_RARELY = 0.1
# Limits up to which something is only shown: `if i < args.num_vis`, `if step <= cfg.log_first_n`.
_SHOWN = re.compile(
    r"(^|_)(first|vis|visuals?|visuali[sz]e\w*|log(ged|s)?|shown?|plots?|plotted|display(ed)?|print(ed|s)?|debug|previews?)"
    r"(_|$)"
)
# Counts of all passes: `if step > cfg.max_steps - 5`.
_TOTAL = re.compile(r"^((n|num|total|max|train)_)*(steps|iters?|iterations|epochs|batches|updates)$")
_FEW = 100
_FEWEST = 10  # of a parameter: `num_guided=25` is half of all steps of a sampler


def picks_pass(statement: cst.CSTNode, branch: cst.CSTNode, root: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether a branch is for certain passes of a loop within ``root``, which go by whenever ``root`` runs."""
    test = statement.test if isinstance(statement, cst.If) and branch is statement.body else None
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return isinstance(test.expression, cst.Name) and _is_of_inner_loop(test.expression, root, evaluator)
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
        return False
    operator, picked = test.comparisons[0].operator, test.comparisons[0].comparator
    elements = picked.elements if isinstance(picked, (cst.List, cst.Tuple, cst.Set)) else ()
    values = [element.value for element in elements] if isinstance(operator, cst.In) else [picked]
    if not isinstance(operator, (cst.Equal, cst.In)) or any(literal(value) is None for value in values):
        return False
    return _is_of_inner_loop(test.left, root, evaluator)


def _is_of_inner_loop(counter: cst.Name, root: cst.CSTNode, evaluator: Evaluator) -> bool:
    bindings = evaluator.flow.definitions(counter)
    loops = [
        evaluator.tree.enclosing(binding.node, cst.For) if binding.kind is BindingKind.ITERATION else None
        for binding in bindings
    ]
    return bool(loops) and all(
        loop is not None and loop is not root and evaluator.tree.within(loop, root) for loop in loops
    )


def is_one_of_the_first(
    left: cst.BaseExpression, right: cst.BaseExpression, operator: cst.BaseCompOp, taken: bool, default: object = None
) -> bool:
    """Return whether a branch of a comparison is for the first passes of a loop: ``if i < 3``, ``if i < num_shown``.

    A parameter says how many by its default, unless that is for half of a short loop, or its name for all passes.
    """
    limit = literal(right)
    is_few = isinstance(limit, int) and limit < _FEW
    is_few |= isinstance(default, int) and default < _FEWEST and not _TOTAL.match(identifier(right))
    is_few |= isinstance(right, (cst.Name, cst.Attribute)) and _SHOWN.search(identifier(right)) is not None
    below = isinstance(operator, (cst.LessThan, cst.LessThanEqual))
    return is_few and below is taken and isinstance(left, (cst.Name, cst.Attribute))


def is_one_of_the_last(right: cst.BaseExpression, operator: cst.BaseCompOp, taken: bool, evaluator: Evaluator) -> bool:
    """Return whether a branch of a comparison is for the last passes of a loop: ``if i >= len(loader) - 1``.

    Also ``if step > max_steps - 5``.
    """
    above = isinstance(operator, (cst.GreaterThan, cst.GreaterThanEqual))
    below = isinstance(operator, (cst.LessThan, cst.LessThanEqual))
    return (above if taken else below) and _is_length(right, evaluator)


def _is_length(number: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a number is how long something is, or that less one, or the count of all passes less a few."""
    if isinstance(number, cst.BinaryOperation) and isinstance(number.operator, cst.Subtract):
        less = literal(number.right)
        number = number.left if isinstance(less, int) else number
        if isinstance(less, int) and less < _FEW and _TOTAL.match(identifier(number)):
            return True
    if isinstance(number, cst.Name):
        bindings = evaluator.flow.definitions(number)
        number = bindings[0].value if len(bindings) == 1 and bindings[0].value is not None else number
    return isinstance(number, cst.Call) and evaluator.names.qualified(number.func) == "builtins.len"


def is_chance(
    drawn: cst.BaseExpression,
    target: cst.ComparisonTarget,
    evaluator: Evaluator,
    default: bool | float | str | None = None,
) -> bool:
    """Return whether a number that is drawn seldom passes: ``random.random() < 0.01``, ``randint(0, 99) == 0``."""
    name = evaluator.names.qualified(drawn.func) if isinstance(drawn, cst.Call) else None
    limit, operator = evaluator.value(target.comparator).literal, target.operator
    limit = default if limit is None else limit
    if name in _DRAWN and isinstance(drawn, cst.Call) and isinstance(limit, int):
        highest = literal(drawn.args[-1].value) if drawn.args else None
        is_low = isinstance(operator, cst.LessThan) and isinstance(highest, int) and limit <= _RARELY * highest
        return is_low or isinstance(operator, cst.Equal)
    is_drawn = name in _DICE or (isinstance(drawn, cst.Call) and identifier(drawn.func) == "random" and not drawn.args)
    named = _SHOWN.search(identifier(target.comparator)) is not None
    if is_drawn and named and isinstance(operator, cst.LessThan):
        return True  # random.random() < cfg.log_probability
    if not is_drawn or not isinstance(limit, float):
        return False
    is_below = isinstance(operator, cst.LessThan) and limit <= _RARELY
    return is_below or (isinstance(operator, cst.GreaterThan) and limit >= 1 - _RARELY)
