"""Options of the command line and settings of a file that are off unless somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.walk import Tree


def off_by_default(tree: Tree) -> Iterator[str]:
    """Yield the names of the options and settings that a file defines and that are off by default."""
    for call in tree.nodes(cst.Call):
        if not (isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument" and call.args):
            continue
        given = {a.keyword.value: literal(a.value) for a in call.args if a.keyword is not None}
        if given.get("default") is False or (given.get("action") == "store_true" and not given.get("default")):
            options = [literal(a.value) for a in call.args if a.keyword is None]
            yield from (o.lstrip("-").replace("-", "_") for o in options if isinstance(o, str))
    for setting in tree.nodes(cst.AnnAssign):  # of a data class
        in_class = tree.enclosing(setting, cst.ClassDef, cst.FunctionDef)
        if isinstance(in_class, cst.ClassDef) and in_class.decorators and literal(setting.value) is False:
            yield identifier(setting.target)
