"""Files that are tests by what is in them, whatever their names are."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

_FRAMEWORKS = ("pytest", "unittest", "absl.testing", "torch.testing._internal")
_RUNNERS = ("unittest.main", "pytest.main", "absltest.main", "run_tests")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TEST = "test_"
_TAKES_OPTIONS = frozenset(("argparse", "click", "fire", "hydra", "typer"))


def holds_tests(text: str) -> bool:
    """Return whether a file is one of tests: it imports a framework for them, and most of what it defines are tests.

    What takes options or runs more than its tests is a program that has some of its own.
    """
    if f"def {_TEST}" not in text or not any(name.partition(".")[0] in text for name in _FRAMEWORKS):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    imported = list(_imported(module))
    if not any(name.startswith(_FRAMEWORKS) for name in imported) or any(map(_TAKES_OPTIONS.__contains__, imported)):
        return False
    return _are_mostly_tests(module, any(name.partition(".")[0] == "pytest" for name in imported))


def _are_mostly_tests(module: ast.Module, imports_pytest: bool) -> bool:
    functions, others = 0, 0
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            found = _tests_in(statement, imports_pytest)
            functions, others = functions + found, others + (found == 0)
        elif isinstance(statement, _FUNCTIONS) and not _is_fixture(statement):
            is_test = imports_pytest and statement.name.startswith(_TEST)
            functions, others = functions + is_test, others + (not is_test)
        elif not isinstance(statement, _FUNCTIONS) and not _only_prepares(statement):
            return False
    return functions > 0 and functions >= others


def _imported(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module or ""


def _tests_in(definition: ast.ClassDef, imports_pytest: bool) -> int:
    """The tests of a test case, or of what pytest collects as a class of tests."""
    bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in definition.bases]
    is_collected = not bases and re.match(r"Test([A-Z_0-9]|$)", definition.name) is not None and imports_pytest
    is_case = any(name.endswith("TestCase") for name in bases) or is_collected
    return is_case * sum(isinstance(each, _FUNCTIONS) and each.name.startswith(_TEST) for each in definition.body)


def _is_fixture(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)


def _only_prepares(statement: ast.stmt) -> bool:
    """Whether a statement of the module runs no program: an import, a setting, ``unittest.main()`` at the end."""
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        calls = [ast.unparse(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return all(name.endswith(_RUNNERS) or name.startswith(_TEST) for name in calls if name != "sys.exit")
    return not isinstance(statement, (ast.For, ast.While, ast.With))
