"""Which model a call runs, and calls of models about whose gradients others decide."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import bind, identifier

# Arguments of the `encode` of sentence transformers.
_OF_SENTENCES = frozenset(
    "batch_size show_progress_bar convert_to_numpy convert_to_tensor output_device normalize_embeddings".split()
)

# What runs the model that it is given, on windows of an image.
_INFERERS = frozenset(("monai.inferers.sliding_window_inference", "monai.inferers.utils.sliding_window_inference"))


def model_run_by(call: cst.Call, evaluator: Evaluator) -> cst.BaseExpression:
    """Return the model that a call runs: what is called, or what MONAI's inferers are given."""
    if evaluator.names.qualified(call.func) not in _INFERERS:
        return call.func
    given = bind(call.args, ("inputs", "roi_size", "sw_batch_size", "predictor"))
    return given.get("predictor") or call.func


def cares_for_itself(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call of a model is none of PyTorch's, is without gradients anyhow, or is left to its caller.

    A lambda is handed to what may need gradients, or may switch them off.
    """
    named = {argument.keyword.value for argument in call.args if argument.keyword is not None}
    if "training" in named:  # models of Keras are told with each call
        return True
    if identifier(call.func) == "encode" and (
        not named.isdisjoint(_OF_SENTENCES) or evaluator.scopes.imports("sentence_transformers")
    ):
        return True  # a sentence transformer batches all texts itself, and records no graph
    if evaluator.scopes.imports("ultralytics") and _is_made_by(call.func, "ultralytics.", evaluator):
        return True
    return isinstance(evaluator.tree.enclosing(call, cst.Lambda, cst.FunctionDef), cst.Lambda)


def is_dry_run(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call of a model stands in no loop, and its result is dropped at once.

    Without arguments it computes from what its object holds, and keeps what it computes there: ``self.forward()``.
    """
    if not call.args:
        return False
    statement = evaluator.flow.statement(call)
    if isinstance(statement, cst.Assign):
        dropped = all(identifier(target.target) == "_" for target in statement.targets)
    else:
        dropped = isinstance(statement, cst.Expr) and statement.value is call
    return dropped and not any(isinstance(a, (cst.For, cst.While)) for a in evaluator.tree.ancestors(call))


def _is_made_by(model: cst.BaseExpression, library: str, evaluator: Evaluator) -> bool:
    """Whether a variable holds what a class of a library makes, which runs without gradients by itself."""
    bindings = evaluator.flow.definitions(model) if isinstance(model, cst.Name) else ()
    made = [binding.value for binding in bindings]
    names = (evaluator.names.qualified(value.func) for value in made if isinstance(value, cst.Call))
    return any(name is not None and name.startswith(library) for name in names)
