"""The shape of the code: sizes, layers, names, one place for each rule."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from torchlint.registry import rules
from torchlint.rule import Rule

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "torchlint"
FIXTURES = ROOT / "fixtures"
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py"))
MOST_LINES_OF_RULE = 200
MOST_LINES_OF_MODULE = 400
MOST_LINES_OF_FUNCTION = 60
TABLES = "torchlint/semantics/tables/"
HEAVY = ("torch", "numpy", "scipy")
HARNESS = "torchlint/harness/"
PROGRAMS = "torchlint/harness/cases/"
"""What the harness measures: programs that import torch as any user's do."""

EVERY_MODULE = pytest.mark.parametrize("module", MODULES)


def parsed(module: str) -> ast.Module:
    """Return the tree of a module of the package."""
    return ast.parse((ROOT / module).read_bytes())


def imported(statement: ast.AST) -> list[str]:
    """Return the modules that an import statement names."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        return [module, *(f"{module}.{alias.name}" for alias in statement.names)]
    return []


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith(TABLES)])
def test_modules_are_short(module: str) -> None:
    most = MOST_LINES_OF_RULE if module.startswith("torchlint/rules/") else MOST_LINES_OF_MODULE
    assert len((ROOT / module).read_text(encoding="utf-8").splitlines()) <= most


@EVERY_MODULE
def test_functions_are_short(module: str) -> None:
    functions = (node for node in ast.walk(parsed(module)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES_OF_FUNCTION}


@EVERY_MODULE
def test_module_says_what_it_is(module: str) -> None:
    stem = Path(module).stem
    assert stem not in {"utils", "util", "common", "helpers", "misc"}
    tree = parsed(module)
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith(PROGRAMS)])
def test_torch_is_imported_only_inside_functions_of_the_harness(module: str) -> None:
    tree = parsed(module)
    heavy = [name for node in ast.walk(tree) for name in imported(node) if name.split(".")[0] in HEAVY]
    if module.startswith(HARNESS):
        heavy = [name for node in tree.body for name in imported(node) if name.split(".")[0] in HEAVY]
    assert not heavy


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("torchlint/rules/")])
def test_rules_never_import_each_other(module: str) -> None:
    names = {name for node in ast.walk(parsed(module)) for name in imported(node)}
    assert not {name for name in names if name.startswith("torchlint.rules")}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_rule_has_one_name_everywhere(rule: Rule) -> None:
    name, family = rule.name, rule.family.value
    assert (PACKAGE / "rules" / family / f"{name.replace('-', '_')}.py").is_file()
    assert (FIXTURES / name).is_dir()
    assert (ROOT / "rules" / f"{name}.md").is_file()


def test_every_fixture_folder_belongs_to_a_rule() -> None:
    folders = {path.name for path in FIXTURES.iterdir() if path.is_dir()}
    assert folders == {rule.name for rule in rules()} | {"demo", "plugin-example"}


def test_layers_hold() -> None:
    program = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(no_cache=True))"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_linting_imports_nothing_heavy() -> None:
    program = (
        "import sys, torchlint.cli.app, torchlint.registry; torchlint.registry.rules(); "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(result.stdout.split())
