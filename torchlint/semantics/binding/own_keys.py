"""Items that a loop over the keys of a dictionary asks it for: ``for key in losses: losses[key]``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import Flow
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.syntax.calls import method_call
from torchlint.syntax.canonical import is_same


def is_by_own_key(place: cst.Subscript, flow: Flow) -> bool:
    """Return whether the key of an item is one that a loop over the same dictionary binds."""
    index = place.slice[0].slice if len(place.slice) == 1 else None
    key = index.value if isinstance(index, cst.Index) and isinstance(index.value, cst.Name) else None
    bindings = flow.definitions(key) if key is not None else []
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.ITERATION or bindings[0].path:
        return False
    keys = method_call(bindings[0].value, "keys")
    held = keys.value if keys is not None else bindings[0].value
    return isinstance(held, cst.Name) and is_same(held, place.value)
