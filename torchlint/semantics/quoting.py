"""A model whose tree has got its text: what does not quote it stays known."""

from __future__ import annotations

from torchlint.semantics.model import Model
from torchlint.semantics.process.target import Target
from torchlint.semantics.process.versions import proven_target

# The parts and answers in which no source text is kept, and which are made from no others.
_KEPT = frozenset(
    (
        "tree options scopes names flow definitions evaluator vocabulary _reads _heats _accelerator is_program "
        "_callee_of _scalar_read_of _is_kept_on_host_of _traced differentiates_twice "
        "calls_by_name guards tensor_functions hotness layers norms epochs batches kept_workers mode_questions "
        "module_calls choices gradient_clearing steps training_code local_graph modes writes hoistable invariants "
        "backward host_reads parameter_loops pinned dynamic_shapes precision arrays random_generators elementwise "
        "inference detached shown_forwards retentions conditions accumulations"
    ).split()
)


def with_text(model: Model, target: Target) -> Model:
    """Return a model of the same tree, some of which has got its text since, for the same target.

    They have most answers in common, and are released together.
    """
    other = Model.__new__(Model)
    vars(other).update((name, known) for name, known in vars(model).items() if name in _KEPT)
    other.target = proven_target(model.tree, model.names, target)
    return other
