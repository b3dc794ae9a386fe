"""The public functions."""

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import torchlint
import torchlint.engine.file
from torchlint.cli import run

SOURCE = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\nx = torch.zeros(3)\n"
BOOK = {
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": SOURCE.splitlines(keepends=True)}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_the_example_in_the_documentation_is_true() -> None:
    assert doctest.testmod(torchlint).failed == 0


def test_checking_text() -> None:
    (diagnostic,) = torchlint.check_source(SOURCE, filename="a.py")
    assert (diagnostic.code, diagnostic.path, diagnostic.start.row) == ("TL601", "a.py", 3)
    assert torchlint.check_source(SOURCE, ignore=["TL601"]) == []
    assert torchlint.check_source(SOURCE, select=["TL1"]) == []


def test_fixing_text() -> None:
    fixed = torchlint.fix_source(SOURCE)
    assert fixed.text == str(fixed) == "import torch\n\nx = torch.zeros(3)\n"
    assert [diagnostic.code for diagnostic in fixed.applied] == ["TL601"]
    assert fixed.remaining == ()


def test_unsafe_fixes_and_settings() -> None:
    text = "import torch\n\nloader = torch.utils.data.DataLoader(dataset)\n"
    assert torchlint.fix_source(text, select=["TL101"]).text == text
    assert "num_workers=8" in torchlint.fix_source(text, select=["TL101"], unsafe_fixes=True, num_workers=8).text


def test_the_target_counts() -> None:
    text = "import torch\n\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\noptimizer.zero_grad()\n"
    assert [d.code for d in torchlint.check_source(text, select=["TL301"], target_torch="1.8")] == ["TL301"]
    assert torchlint.check_source(text, select=["TL301"], target_torch="2.0") == []


def test_checking_paths(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py").write_text("x = 1\n")
    results = torchlint.check_paths([tmp_path, tmp_path / "missing.py"], isolated=True)
    assert [(Path(result.path).name, len(result.diagnostics), len(result.errors)) for result in results] == [
        ("a.py", 1, 0),
        ("b.py", 0, 0),
        ("missing.py", 0, 1),
    ]


@pytest.mark.parametrize(
    "options", [{"select": ["TL999"]}, {"target_torch": "new"}, {"num_workers": 0}, {"colour": "red"}]
)
def test_what_is_unknown_is_a_value_error(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"TL999|version|whole number|colour"):
        torchlint.check_source(SOURCE, **options)  # type: ignore[arg-type]


def test_names_are_imported_when_used_and_only_then() -> None:
    program = (
        "import sys, torchlint; print('libcst' in sys.modules); torchlint.check_source('x = 1'); print(dir(torchlint))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    assert done.stdout.splitlines()[0] == "False"
    assert "check_source" in done.stdout
    assert all(hasattr(torchlint, name) for name in torchlint.__all__)
    with pytest.raises(AttributeError):
        torchlint.nothing  # noqa: B018


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(Path(__file__).parents[1] / "docs" / "api.md"), module_relative=False)
    assert outcome.failed == 0
    assert outcome.attempted > 15


def test_a_notebook_comes_back_as_one() -> None:
    fixed = torchlint.fix_source(json.dumps(BOOK), filename="a.ipynb")
    (cell,) = json.loads(fixed.text)["cells"]
    assert "".join(cell["source"]) == "import torch\n\nx = torch.zeros(3)\n"


def test_a_byte_order_mark_stays() -> None:
    assert torchlint.fix_source("\ufeff" + SOURCE).text == "\ufeffimport torch\n\nx = torch.zeros(3)\n"


def test_the_settings_of_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    loader = "import torch\n\nloader = torch.utils.data.DataLoader(dataset)\n"
    (tmp_path / "torchlint.toml").write_text('select = ["TL101"]\nunsafe-fixes = true\nnum-workers = 3\n')
    assert [d.code for d in torchlint.check_source(SOURCE + loader, filename=str(path), isolated=False)] == ["TL101"]
    assert "num_workers=3" in torchlint.fix_source(loader, filename=str(path), isolated=False).text
    assert "num_workers=5" in torchlint.fix_source(loader, filename=str(path), isolated=False, num_workers=5).text
    (tmp_path / "torchlint.toml").write_text("colour = 1\n")
    with pytest.raises(ValueError, match="unknown key `colour`"):
        torchlint.check_source(SOURCE, filename=str(path), isolated=False)


def test_a_baseline_counts(tmp_path: Path) -> None:
    path, known = tmp_path / "a.py", tmp_path / "known.json"
    path.write_text(SOURCE)
    assert run(["check", str(path), "--isolated", "--no-cache", "--quiet", "--write-baseline", str(known)]) == 0
    (tmp_path / "torchlint.toml").write_text('baseline = "known.json"\n')
    assert torchlint.check_source(SOURCE, filename=str(path), isolated=False) == []
    assert torchlint.fix_source(SOURCE, filename=str(path), isolated=False).text == SOURCE
    (result,) = torchlint.check_paths([path])
    assert (result.diagnostics, result.baselined) == ((), 1)
    known.write_text("{")
    with pytest.raises(ValueError, match=r"known\.json"):
        torchlint.check_paths([path])


def test_a_rule_that_fails_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchlint.engine.suspects, "run_rule", lambda *_: 1 / 0)
    with pytest.warns(RuntimeWarning, match="internal error in rule TL601"):
        assert torchlint.check_source(SOURCE, select=["TL601"]) == []


def test_a_text_that_cannot_be_checked_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchlint.engine.file, "_Check", None)
    with pytest.raises(RuntimeError, match="internal error in the engine"):
        torchlint.check_source(SOURCE)


def test_every_public_function_is_documented_and_typed() -> None:
    for function in (torchlint.check_source, torchlint.fix_source, torchlint.check_paths):
        assert "Args:" in (function.__doc__ or "") or "check_source" in (function.__doc__ or "")
        assert set(inspect.signature(function).parameters) == set(function.__annotations__) - {"return"}
