"""Who may read a variable of the environment: the file itself, or a program that it starts."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.process.switches import ENVIRONMENT, Switches
from torchlint.syntax.calls import literal

_OTHER_PROGRAMS = (
    "subprocess.",
    "os.popen",
    "os.system",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.path.expandvars",
    "os.environb",
    "os.getenvb",
    "asyncio.create_subprocess_",
    "asyncio.subprocess",
    "posix.",
    "nt.",
    "pty.",
    "pexpect.",
    "ctypes.",
)
_STARTING = ("subprocess_shell", "subprocess_exec")
"""Methods of event loops that start other programs."""

_BY_KEY = ("get", "setdefault", "pop", "__setitem__")


class Environment:
    """Looks for readers of variables."""

    def __init__(self, evaluator: Evaluator, switches: Switches) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._switches = switches

    def may_be_read(self, variable: str) -> bool:
        """Return whether the file speaks of a variable where it does not set it, or of some that it does not name."""
        spoken = (text for text in self._tree.nodes(cst.SimpleString) if literal(text) == variable)
        if any(not self._sets(self._evaluator.flow.statement(text), variable) for text in spoken):
            return True
        if any(map(_is_magic, self._tree.nodes(cst.Attribute))):
            return True
        nodes: list[cst.Name | cst.Attribute] = [*self._tree.nodes(cst.Name), *self._tree.nodes(cst.Attribute)]
        named = ((node, self._evaluator.names.qualified(node)) for node in nodes)
        if any(isinstance(node, cst.Attribute) and node.attr.value in _STARTING for node in nodes):
            return True
        return any(name is not None and self._reads_any(node, name) for node, name in named)

    def _sets(self, line: cst.CSTNode, variable: str) -> bool:
        node = line.value if isinstance(line, cst.Expr) else line
        return any(setting.name == f"{ENVIRONMENT}[{variable}]" for setting in self._switches.settings(node))

    def _reads_any(self, node: cst.CSTNode, name: str) -> bool:
        """Whether a variable may be read that is named elsewhere, or another program gets all of them."""
        parent = self._tree.parent(node)
        if isinstance(parent, (cst.ImportFrom, cst.ImportAlias)):
            return False
        if name == "os.getenv":
            key = parent.args[0].value if isinstance(parent, cst.Call) and parent.func is node and parent.args else None
            return key is None or literal(key) is None
        return name.startswith(_OTHER_PROGRAMS) or (name == ENVIRONMENT and not self._names_one(node))

    def _names_one(self, environ: cst.CSTNode) -> bool:
        """Whether ``os.environ`` is asked for, or given, variables whose names are written out."""
        parent = self._tree.parent(environ)
        if isinstance(parent, cst.Subscript):
            index = parent.slice[0].slice
            return isinstance(index, cst.Index) and literal(index.value) is not None
        call = self._tree.parent(parent) if isinstance(parent, cst.Attribute) else None
        if not isinstance(call, cst.Call) or call.func is not parent or not isinstance(parent, cst.Attribute):
            return False
        by_key = parent.attr.value in _BY_KEY and bool(call.args)
        return parent.attr.value == "update" or (by_key and literal(call.args[0].value) is not None)


def _is_magic(method: cst.Attribute) -> bool:
    """Return whether it is the method by which IPython starts other programs."""
    shell = method.value
    named = isinstance(shell, cst.Call) and isinstance(shell.func, cst.Name) and shell.func.value == "get_ipython"
    return named and method.attr.value in ("system", "getoutput", "run_line_magic", "run_cell_magic")
