"""What runs only with some versions of a library: behind a test of one, or where a name can be missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.flow import last_statement
from torchlint.syntax.calls import code, identifier, literal

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_WORD = r"(?<!\bin)(?<!_in)(?<!\bcon)(?<!_con)version"  # not in a conversion, nor an inversion
_CERTAIN = rf"{_WORD}|find_spec|signature\(|(hasattr|getattr|\bdir)\((func)?torch|is_torch|(torch|\bpt)_?v?\d"
_TESTS_VERSION = re.compile(_CERTAIN, re.IGNORECASE)
# A draft of a tree writes the operator of `x > 0` by the name of its class.
_MAY_TEST_VERSION = re.compile(
    rf"{_CERTAIN}|hasattr|getattr|(\b|_)has_|greater(?!Than(Equal)?\(\))|(_|\b)(ge|gt|gte|lt|lte)(_|\b)|['\"]v?\d+\.\d",
    re.IGNORECASE,
)
_MISSING = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError"))
_UNKNOWN_ARGUMENT = frozenset(("TypeError", "Exception"))
"""What also sends the program to an older form, though a whole ``try`` says nothing with them."""

_LIBRARIES = ("torch", "functorch")
_MAX_DEPTH = 3


def depends_on_version(node: cst.CSTNode, model: Model, depth: int = 0) -> bool:
    """Return whether a node runs only with some versions.

    A check that ends in an error says which versions the program supports, and guards nothing.
    """
    child = node
    for ancestor in model.ancestors(node):
        if _decides(ancestor, child, model, depth):
            return True
        child = ancestor
    return False


def _decides(ancestor: cst.CSTNode, child: cst.CSTNode, model: Model, depth: int) -> bool:
    """Whether a node decides by the version whether a child of it runs."""
    if isinstance(ancestor, (cst.If, cst.IfExp)):
        return child is not ancestor.test and _asks(ancestor.test, model, depth)
    if isinstance(ancestor, cst.BooleanOperation):
        return child is ancestor.right and _asks(ancestor.left, model, depth)
    if isinstance(ancestor, cst.Match):
        return child is not ancestor.subject and _asks(ancestor.subject, model, depth)
    if isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
        return _left_earlier(ancestor, child, model, depth)
    if isinstance(ancestor, cst.Try):
        kinds = _MISSING | {"Exception"} if _only_imports(ancestor.body) else _MISSING
        return child is not ancestor.finalbody and any(_catches(h.type, kinds) for h in ancestor.handlers)
    if isinstance(ancestor, cst.ExceptHandler):
        return _catches(ancestor.type, _UNKNOWN_ARGUMENT)
    if isinstance(ancestor, cst.With):
        return any(_suppresses_missing(item.item, model) for item in ancestor.items)
    if isinstance(ancestor, cst.Call):
        return _is_default_of_lookup(ancestor, child, model)
    if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
        return any(_TESTS_VERSION.search(code(decorator.decorator)) for decorator in ancestor.decorators)
    return False


def _asks(test: cst.BaseExpression, model: Model, depth: int) -> bool:
    """Whether a test is for a version or for something that some versions lack, also by a variable or function."""
    return bool(_MAY_TEST_VERSION.search(code(test))) or _asks_by_variable(test, model, depth)


def _asks_by_variable(test: cst.BaseExpression, model: Model, depth: int) -> bool:
    if depth == _MAX_DEPTH:
        return False
    for binding in (binding for name in _variables(test) for binding in model.bindings(name)):
        if isinstance(binding.node, cst.FunctionDef) and _tells_version(binding.node, model):
            return True
        if binding.value is None:
            continue
        if _TESTS_VERSION.search(code(binding.value)):
            return True
        if isinstance(literal(binding.value), bool) and depends_on_version(binding.node, model, depth + 1):
            return True
    return False


def _tells_version(function: cst.FunctionDef, model: Model) -> bool:
    """Whether a function looks at the version of a library, or returns what a test of one gives."""
    if any(attribute.attr.value == "__version__" for attribute in model.tree.below(function.body, cst.Attribute)):
        return True
    results = model.definitions.results(function)
    return any(_TESTS_VERSION.search(code(result)) for result in results)


def _variables(test: cst.BaseExpression) -> list[cst.Name]:
    """The variables and called functions that a test consists of, also negated, joined and compared."""
    if isinstance(test, cst.Call):
        return _variables(test.func)
    if isinstance(test, cst.UnaryOperation):
        return _variables(test.expression)
    if isinstance(test, cst.BooleanOperation):
        return [*_variables(test.left), *_variables(test.right)]
    if isinstance(test, cst.Comparison):
        return _variables(test.left)
    return [test] if isinstance(test, cst.Name) else []


def _left_earlier(block: cst.IndentedBlock | cst.Module, child: cst.CSTNode, model: Model, depth: int) -> bool:
    """Whether an ``if`` for the version returns or goes on before a statement of its block."""
    for line in block.body:
        if line is child:
            return False
        if not isinstance(line, cst.If) or line.orelse is not None:
            continue
        if not isinstance(last_statement(line.body), (cst.Return, cst.Continue)):
            continue
        if _TESTS_VERSION.search(code(line.test)) or _asks_by_variable(line.test, model, depth):
            return True
    return False


def _only_imports(block: cst.BaseSuite) -> bool:
    """Whether a block does nothing but import, so that any error in it means that something is missing."""
    lines = [line.body if isinstance(line, cst.SimpleStatementLine) else [line] for line in block.body]
    return all(isinstance(small, (cst.Import, cst.ImportFrom)) for line in lines for small in line)


def _catches(caught: cst.BaseExpression | None, kinds: frozenset[str]) -> bool:
    """Whether a handler is for one of the kinds, or for everything."""
    elements = [element.value for element in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
    return any(element is None or identifier(element) in kinds for element in elements)


def _suppresses_missing(expression: cst.BaseExpression, model: Model) -> bool:
    if not isinstance(expression, cst.Call) or model.qualified_name(expression.func) != "contextlib.suppress":
        return False
    return any(_catches(argument.value, _MISSING) for argument in expression.args)


def _is_default_of_lookup(call: cst.Call, child: cst.CSTNode, model: Model) -> bool:
    """Whether an argument is what ``getattr(torch, name, default)`` falls back to."""
    if len(call.args) != 3 or child is not call.args[2] or model.qualified_name(call.func) != "builtins.getattr":
        return False
    return (model.qualified_name(call.args[0].value) or "").startswith(_LIBRARIES)
