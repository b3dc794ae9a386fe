"""Which model a call runs, and calls of models about whose gradients others decide."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.host_modules import INTEGER_MODULES
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call

# Arguments of the `encode` of sentence transformers.
_OF_SENTENCES = frozenset(
    "batch_size show_progress_bar convert_to_numpy convert_to_tensor output_device normalize_embeddings".split()
)

# What other runtimes call the models that they run.
_RUNTIMES = re.compile(
    r"((ORT|OV)(Model|Stable|Diffusion|Pipeline)\w*|(TensorRT|OpenVINO|CoreML|TFLite)\w*|"
    r"(TRT|Onnx|ONNX)\w*(Engine|Module|Model|Runner|Runtime|Session|Predictor|Infer\w*))$"
)
# What hands a model on as it is.
_KEPT = ("to", "cuda", "cpu", "half", "float", "eval", "fuse")
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
    made = _made(call.func, evaluator)
    if any(_is_of_integers(each, evaluator) or _switches_off_itself(each, evaluator) for each in made):
        return True
    if any(_is_wrapped(each, evaluator) or _is_of_other_runtime(each, evaluator) for each in made):
        return True
    return isinstance(evaluator.tree.enclosing(call, cst.Lambda, cst.FunctionDef), cst.Lambda)


def is_dry_run(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call of a model stands in no loop and nobody reads its result, or weighs what it takes.

    Without arguments it computes from what its object holds, and keeps what it computes there: ``self.forward()``. What
    takes the time of whatever it is given, ``function(*args)``, also does so in a loop.
    """
    if not call.args:
        return False
    if _is_weighed(call, evaluator):
        return True
    statement = evaluator.flow.statement(call)
    if isinstance(statement, cst.Assign):
        dropped = statement.value is call and not any(
            _is_read(target.target, evaluator) for target in statement.targets
        )
    else:
        dropped = isinstance(statement, cst.Expr) and statement.value is call
    in_loop = any(isinstance(a, (cst.For, cst.While)) for a in evaluator.tree.ancestors(call))
    return dropped and (not in_loop or all(argument.star for argument in call.args))


def _is_read(target: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether anything reads what a variable is bound to; an attribute may be read elsewhere."""
    if not isinstance(target, cst.Name):
        return True
    others = (name for name in evaluator.tree.named(target.value) if name is not target)
    return any(binding.node is target for name in others for binding in evaluator.flow.definitions(name))


def _is_weighed(call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a function asks before and after a call how much memory is taken: by the graph, among others."""
    function = evaluator.definitions.enclosing_function(call)
    if evaluator.tree.enclosing(call, cst.For, cst.While, cst.FunctionDef) is not function:
        return False
    asked = evaluator.tree.calls_named("memory_allocated", "memory_reserved")
    before = [evaluator.tree.order(a) < evaluator.tree.order(call) for a in asked if _is_in(a, function, evaluator)]
    return True in before and False in before


def _is_in(node: cst.CSTNode, function: cst.FunctionDef | None, evaluator: Evaluator) -> bool:
    return evaluator.definitions.enclosing_function(node) is function


def _made(model: cst.BaseExpression, evaluator: Evaluator) -> list[cst.BaseExpression]:
    """What a variable or an attribute of the object holds, but for what changes where or in which mode it runs."""
    return [_bare(value) for value in evaluator.held_by(model) if value is not None]


def _bare(made: cst.BaseExpression) -> cst.BaseExpression:
    while (method := method_call(made, *_KEPT)) is not None:
        made = method.value
    return made


def _is_of_integers(made: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a quantised model is made, of which nothing has a gradient, also by a function of the file."""
    if not isinstance(made, cst.Call):
        return False
    function = evaluator.definitions.definition(made.func)
    calls = evaluator.tree.below(function.body, cst.Call) if isinstance(function, cst.FunctionDef) else ()
    return any(evaluator.names.qualified(call.func) in INTEGER_MODULES for call in (made, *calls))


def _is_wrapped(made: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a model is called through a context: ``net = torch.no_grad()(model)``."""
    return isinstance(made, cst.Call) and bool(evaluator.gradients.switches_off(made.func)) and bool(made.args)


def _is_of_other_runtime(made: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether another runtime runs a model, or adapters are loaded, which are frozen unless somebody asks for more."""
    if not isinstance(made, cst.Call):
        return False
    loaded = method_call(made, "from_pretrained", "load")
    name = identifier(loaded.value if loaded is not None else made.func)
    is_loaded = loaded is not None and name.startswith("Peft")
    if is_loaded and literal(bind(made.args).get("is_trainable")) is not True:
        return True
    qualified = evaluator.names.qualified(made.func) or ""
    is_own = evaluator.definitions.definition(made.func) is not None
    return (_RUNTIMES.match(name) is not None and not is_own) or qualified.startswith(
        ("optimum.onnxruntime.", "optimum.intel.")
    )


def _switches_off_itself(made: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a detector is made by a library whose models switch gradients off themselves."""
    name = evaluator.names.qualified(made.func) if isinstance(made, cst.Call) else None
    if not isinstance(made, cst.Call) or name is None:
        return False
    repository = literal(made.args[0].value) if name == "torch.hub.load" and made.args else None
    if name.startswith("facenet_pytorch."):
        return name.endswith(".MTCNN")  # its networks of faces leave gradients to their users
    return name.startswith("ultralytics.") or (isinstance(repository, str) and repository.startswith("ultralytics/"))


def runs_without_graph(forward: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a forward pass runs all modules, and makes all that it gives, where gradients are off."""
    calls = [c for c in evaluator.tree.below(forward.body, cst.Call) if evaluator.value(c.func).kind is Kind.MODULE]
    given = evaluator.definitions.results(forward)
    bound = [each.node for r in given if isinstance(r, cst.Name) for each in evaluator.flow.definitions(r)]
    made = [r for r in given if not isinstance(r, cst.Name)]
    return bool(calls) and all(map(evaluator.gradients.disabled, (*calls, *bound, *made)))


def switches_off_a_part(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function switches gradients off for a part of itself."""
    blocks = evaluator.tree.below(function.body, cst.With)
    switches = evaluator.gradients.switches_off
    return any(switches(item.item) is True for block in blocks for item in block.items)
