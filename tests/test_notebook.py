"""Notebooks: cells as one program, findings in their cells, fixes that leave everything else to the byte."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Invoke, invoke, project
from tests.repository import commit, git
from torchlint.magics import hidden
from torchlint.notebook import notebook_from_bytes

__all__ = ["invoke", "project"]

SETUP = """\
%matplotlib inline
!pip install torch \\
    --quiet
import torch
import torch.nn.functional as F

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
files = !ls
if files:
    %time print("it's")
rest = (7
  % 2)
print?"""
TRAIN = """\
%%time
torch.autograd.set_detect_anomaly(True)
text = '''
%not a magic
'''
for batch in loader:
    optimizer.zero_grad(set_to_none=False)
    F.mse_loss(model(batch), batch).backward()
    optimizer.step()
print(torch.__version__)"""
PICTURE = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=\n"}, "metadata": {"größe": 1.50}}


def cell(source: str, kind: str = "code") -> dict[str, Any]:
    """Return a cell as Jupyter writes it."""
    lines = source.splitlines(keepends=True)
    if kind != "code":
        return {"cell_type": kind, "id": f"c{abs(hash(source))}", "metadata": {}, "source": lines}
    made: dict[str, Any] = {"cell_type": kind, "execution_count": 3, "id": "abc", "metadata": {"tags": ["é"]}}
    return {**made, "outputs": [PICTURE], "source": lines}


def notebook(*cells: dict[str, Any], language: str = "python") -> dict[str, Any]:
    """Return a notebook as data, its keys in an order of its own."""
    kernel = {"display_name": "Kernel", "language": language, "name": "kernel"}
    return {"nbformat": 4, "cells": list(cells), "metadata": {"z": 1, "kernelspec": kernel}, "nbformat_minor": 5}


def usual() -> dict[str, Any]:
    """Return a notebook with text, magics, another language and findings in cell 5."""
    cells = (cell("# Träining", "markdown"), cell(SETUP), cell("%%bash\necho hi"), cell(""), cell(TRAIN))
    return notebook(*cells)


STYLES: dict[str, dict[str, Any]] = {
    "as Jupyter writes": {"indent": 1, "ensure_ascii": False},
    "four blanks": {"indent": 4, "ensure_ascii": True},
    "on one line": {"indent": None, "separators": (",", ":")},
    "tabs": {"indent": "\t"},
}
EVERY_STYLE = pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))


def dumped(document: dict[str, Any], style: dict[str, Any]) -> bytes:
    """Return the bytes of a notebook in a style."""
    return (json.dumps(document, **style) + "\n").encode()


@EVERY_STYLE
@pytest.mark.parametrize("joined", [False, True], ids=["lists of lines", "strings"])
def test_fixes_change_their_lines_and_nothing_else(
    project: Path, invoke: Invoke, style: dict[str, Any], joined: bool
) -> None:
    document = usual()
    if joined:
        for each in document["cells"]:
            each["source"] = "".join(each["source"])
    path = project / "train.ipynb"
    path.write_bytes(dumped(document, style))
    assert invoke("fix", "--apply", "--unsafe-fixes", "--exit-zero", path).code == 0
    fixed = TRAIN.replace("torch.autograd.set_detect_anomaly(True)\n", "").replace("=False", "=True")
    document["cells"][4]["source"] = fixed if joined else fixed.splitlines(keepends=True)
    assert path.read_bytes() == dumped(document, style)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbformat.validate(nbformat.read(path, as_version=4))


@EVERY_STYLE
def test_nothing_to_fix_means_no_change(project: Path, invoke: Invoke, style: dict[str, Any]) -> None:
    path = project / "a.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + dumped(notebook(cell(SETUP)), style).replace(b"\n", b"\r\n"))
    before = path.read_bytes()
    assert invoke("fix", "--apply", path).code == 0
    assert path.read_bytes() == before
    source = notebook_from_bytes(before, "a.ipynb")
    assert source.encode(source.text) == before


def test_findings_name_the_cell_and_its_line(project: Path, invoke: Invoke) -> None:
    (project / "train.ipynb").write_bytes(dumped(usual(), STYLES["as Jupyter writes"]))
    assert (
        invoke("check", "--output-format", "concise", "--quiet", ".")
        .out.splitlines()[0]
        .startswith("train.ipynb:cell 5:2:1: TL601 [*]")
    )
    full = invoke("check", "--quiet", ".").out
    assert "1 | %%time\n2 | torch.autograd.set_detect_anomaly(True)\n" in full
    entries = json.loads(invoke("check", "--output-format", "json", ".").out)
    assert [(e["code"], e["cell"], e["location"]["row"], e["noqa_row"]) for e in entries] == [
        ("TL601", 5, 2, 2),
        ("TL301", 5, 7, 7),
    ]
    assert entries[0]["fix"]["edits"][0]["location"] == {"row": 2, "column": 1}


@pytest.mark.parametrize("name", ["sarif", "github", "gitlab", "junit", "pylint", "azure", "rdjson", "html"])
def test_services_get_the_row_in_the_file(project: Path, invoke: Invoke, name: str) -> None:
    path = project / "train.ipynb"
    path.write_bytes(dumped(usual(), STYLES["as Jupyter writes"]))
    row = 1 + path.read_text(encoding="utf-8").split("\n").index('    "torch.autograd.set_detect_anomaly(True)\\n",')
    text = invoke("check", "--output-format", name, "--select", "TL601", ".").out
    expected = {
        "sarif": f'"startLine": {row},',
        "github": f"line={row},",
        "gitlab": f'"line": {row},',
        "junit": f'line="{row}"',
        "pylint": f"train.ipynb:{row}:",
        "azure": f"linenumber={row};",
        "rdjson": f'"line": {row},',
        "html": '"cell":5,"range":[[2,1],[2,40]],"excerpt":[[1,"%%time"],[2,"torch.autograd',
    }
    assert expected[name] in text


def test_edits_in_other_cells_say_so(project: Path, invoke: Invoke) -> None:
    document = notebook(cell("import torch"), cell("torch.autograd.set_detect_anomaly(True)"))
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    (entry,) = json.loads(invoke("check", "--output-format", "json", ".").out)
    assert [edit["cell"] for edit in entry["fix"]["edits"]] == [1, 2]
    assert invoke("fix", "--apply", ".").code == 0
    fixed = json.loads((project / "a.ipynb").read_bytes())
    assert ["".join(each["source"]) for each in fixed["cells"]] == ["", ""]


@pytest.mark.parametrize("line", ["%time np.ones(3)", "n = !echo {np.pi}", "%%R -i np\nnp", "%%timeit y = np\ny"])
def test_what_only_ipython_understands_uses_names(project: Path, invoke: Invoke, line: str) -> None:
    made = "torch.from_numpy(np.zeros(2))"
    document = notebook(cell("import numpy as np\nimport torch"), cell(f"a = {made}"), cell(line), cell("b = 1"))
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    assert invoke("fix", "--apply", "--select", "TL209", ".").code == 0
    document["cells"][1] = cell("a = torch.zeros(2, dtype=torch.float64)")
    assert (project / "a.ipynb").read_bytes() == dumped(document, {})


def test_a_program_that_runs_in_the_notebook_sees_all_names(project: Path, invoke: Invoke) -> None:
    document = notebook(cell("import numpy as np\nimport torch"), cell("a = torch.from_numpy(np.zeros(2))"))
    document["cells"].append(cell("%run -i more.py"))
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    assert invoke("fix", "--apply", "--select", "TL209", ".").code == 0
    document["cells"][1] = cell("a = torch.zeros(2, dtype=torch.float64)")
    assert (project / "a.ipynb").read_bytes() == dumped(document, {})


def test_a_cell_magic_keeps_a_body(project: Path, invoke: Invoke) -> None:
    timed = cell("%%time\ntorch.autograd.set_detect_anomaly(True)")
    document = notebook(cell("import torch"), timed, cell("torch.autograd.set_detect_anomaly(True)"), cell("torch"))
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    assert invoke("fix", "--apply", "--select", "TL601", "--exit-zero", ".").code == 0
    fixed = json.loads((project / "a.ipynb").read_bytes())
    assert ["".join(each["source"]) for each in fixed["cells"]] == ["import torch", "%%time\npass", "", "torch"]


@pytest.mark.parametrize(
    "line", ["!echo {x.device}", "%timeit x.sum()", "x?", "%%R -i x\nx"], ids=lambda line: line[:3]
)
def test_what_only_ipython_understands_sees_a_tensor_before_it_is_moved(
    project: Path, invoke: Invoke, line: str
) -> None:
    cells = cell("import torch\nx = torch.zeros(2)"), cell(line), cell("x = x.cuda()")
    (project / "a.ipynb").write_bytes(dumped(notebook(*cells), {}))
    assert invoke("check", "--select", "TL201", ".").code == 0
    (project / "a.ipynb").write_bytes(dumped(notebook(cells[0], cells[2]), {}))
    assert invoke("check", "--select", "TL201", ".").code == 1


@pytest.mark.parametrize("line", ["!python train.py", "%run train.py", "x = !env", "%env", "%%bash\npython train.py"])
def test_programs_that_a_notebook_starts_read_its_environment(project: Path, invoke: Invoke, line: str) -> None:
    setting = "import os\nimport torch\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'\ntorch.ones(1).cuda()"
    for cells, fixed in (((cell(setting), cell("%time print(1)")), True), ((cell(setting), cell(line)), False)):
        (project / "a.ipynb").write_bytes(dumped(notebook(*cells), {}))
        invoke("fix", "--apply", "--select", "TL606", ".")
        assert ("LAUNCH" in (project / "a.ipynb").read_text()) is not fixed


def test_a_name_that_only_ipython_sees_keeps_its_name(project: Path, invoke: Invoke) -> None:
    cells = cell("import torch\nfrom torch import ger"), cell("%time ger(a, a)"), cell("b = ger(a, a)")
    (project / "a.ipynb").write_bytes(dumped(notebook(*cells), {}))
    assert invoke("fix", "--apply", "--unsafe-fixes", "--select", "TL802", "--exit-zero", ".").code == 0
    text = (project / "a.ipynb").read_text()
    assert "from torch import outer as ger" in text
    assert "b = ger(a, a)" in text


def test_the_diff_is_one_of_the_file(project: Path, invoke: Invoke) -> None:
    (project / "train.ipynb").write_bytes(dumped(usual(), STYLES["as Jupyter writes"]))
    outcome = invoke("fix", ".")
    assert outcome.code == 1
    assert '-    "torch.autograd.set_detect_anomaly(True)\\n",' in outcome.out.splitlines()


def test_suppressions_work_in_cells(project: Path, invoke: Invoke) -> None:
    document = usual()
    document["cells"][4]["source"][1] = "torch.autograd.set_detect_anomaly(True)  # noqa: TL601\n"
    document["cells"][1]["source"][3] = "import torch  # torchlint: ignore[TL6O1]\n"
    (project / "train.ipynb").write_bytes(dumped(document, STYLES["as Jupyter writes"]))
    outcome = invoke("check", "--output-format", "concise", "--quiet", "--ignore", "TL301", ".")
    assert outcome.out == ""
    outcome = invoke("check", "--output-format", "concise", "--ignore", "TL301", ".")
    assert "train.ipynb:cell 2:4: unknown rule `TL6O1`" in outcome.err


def test_the_second_run_comes_from_the_cache_and_is_the_same(project: Path, invoke: Invoke) -> None:
    (project / "train.ipynb").write_bytes(dumped(usual(), STYLES["as Jupyter writes"]))
    first = invoke("check", "--output-format", "json", ".")
    assert (
        invoke("check", "--output-format", "json", ".")
        == first
        == invoke("check", "--output-format", "json", "--no-cache", ".")
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is no notebook: line 1"),
        (b'{"cells": [', "it is no notebook: line 1"),
        (b'{"cells": ["\n"]}', "it is no notebook: line 1: Invalid control character\n"),
        (b"[1]", "it has no list of cells"),
        (b'{"worksheets": []}', "jupyter nbconvert"),
        (b'{"cells": [{"cell_type": "code"}]}', "cell 1 has no source"),
        (b'{"cells": [], "x": "\xff"}', "not valid UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (dumped(notebook(cell("x <- 1"), language="R"), {}), "it is a notebook in R, not in Python"),
    ],
)
def test_what_is_no_notebook_of_python_is_one_line(project: Path, invoke: Invoke, data: bytes, reason: str) -> None:
    (project / "a.ipynb").write_bytes(data)
    (project / "b.ipynb").write_bytes(dumped(usual(), {}))
    for command in (("check",), ("fix", "--apply")):
        outcome = invoke(*command, "a.ipynb", "b.ipynb")
        assert outcome.code == 2
        errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1
        assert errors[0].startswith("error: a.ipynb: ")
        assert reason in f"{errors[0]}\n"
    assert (project / "a.ipynb").read_bytes() == data


def test_notebooks_of_other_languages_in_a_folder_are_left_out(project: Path, invoke: Invoke) -> None:
    (project / "a.ipynb").write_bytes(dumped(notebook(cell("x <- 1"), language="R"), {}))
    outcome = invoke("check", ".")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Skipped 1 file: it is a notebook in R, not in Python." in outcome.out


@EVERY_STYLE
def test_only_changed_lines_of_cells_count(
    project: Path, invoke: Invoke, style: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    document = notebook(cell("import torch"), cell(TRAIN), cell("x = 1"))
    (project / "a.ipynb").write_bytes(dumped(document, style))
    git(project, "init", "-q", "-b", "main")
    commit(project)
    document["cells"][1]["source"][1] = "torch.autograd.set_detect_anomaly(True)  # again\n"
    (project / "a.ipynb").write_bytes(dumped(document, style))
    found = invoke("check", "--since", "HEAD", "--output-format", "concise", "--quiet", ".").out
    expected = ["TL601"] if style["indent"] is not None else ["TL601", "TL301"]
    assert [line.split(" ")[2] for line in found.splitlines()] == expected
    document["cells"][1]["source"].pop(1)
    assert invoke("fix", "--since", "HEAD", "--apply", "--unsafe-fixes", "--exit-zero", ".").code == 0
    assert (project / "a.ipynb").read_bytes() == dumped(document, style)


def test_a_baseline_knows_findings_whose_cells_moved(project: Path, invoke: Invoke) -> None:
    document = usual()
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    assert invoke("check", "--write-baseline", "known.json", ".").code == 0
    document["cells"].insert(1, cell("x = 1"))
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    assert invoke("check", "--baseline", "known.json", ".").code == 0


def test_a_cell_with_a_syntax_error(project: Path, invoke: Invoke) -> None:
    (project / "a.ipynb").write_bytes(dumped(notebook(cell("import torch"), cell("x = 1\ndef f(:")), {}))
    outcome = invoke("check", "--output-format", "concise", "--quiet", ".")
    assert outcome.out.startswith("a.ipynb:cell 2:2:")
    assert " TL000 " in outcome.out


def test_a_cell_that_is_indented_as_a_whole(project: Path, invoke: Invoke) -> None:
    cells = (
        cell("import torch"),
        cell("\n    # so\n    torch.autograd.set_detect_anomaly(True)\n    print(torch)\n    %x"),
    )
    (project / "a.ipynb").write_bytes(dumped(notebook(*cells), {}))
    outcome = invoke("check", "--output-format", "concise", "--quiet", ".")
    assert outcome.out.startswith("a.ipynb:cell 2:3:5: TL601 [*]")
    assert invoke("fix", "--apply", ".").code == 0
    fixed = json.loads((project / "a.ipynb").read_bytes())
    assert "".join(fixed["cells"][1]["source"]) == "\n    # so\n    print(torch)\n    %x"


def test_notebooks_with_large_pictures_are_checked(project: Path, invoke: Invoke) -> None:
    document = usual()
    document["cells"][4]["outputs"] = [{"data": {"image/png": "A" * 3_000_000}}]
    (project / "a.ipynb").write_bytes(dumped(document, {}))
    assert "TL601" in invoke("check", "--output-format", "concise", ".").out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%matplotlib inline\nx = 1", [0]),
        ("x = 1\n  !ls (\n!echo 'a\ny = [1,\n  % 2]", [1, 2]),
        ("a, b = %time f()\nimport os\nos?\n?os", [0, 2, 3]),
        ("s = '''\n%x\n!y\n'''\n%z", [4]),
        ("!a \\\n b \\\n c\nd", [0, 1, 2]),
        ("x = 5 % 3\nx = (\n% 2)", []),
        ("await f()", []),
    ],
)
def test_what_is_no_python_is_hidden(text: str, expected: list[int]) -> None:
    assert [index for index, _ in hidden(text)] == expected


@pytest.mark.parametrize("quotes", ["'''", '"""'])
@pytest.mark.parametrize("end", ["", "\\", "'", '"', "''"])
def test_strings_that_are_not_closed_are_read_once(quotes: str, end: str) -> None:
    body = [quotes, *(["  # c", "!ls \\", "'a' \\' \"b\" \\\""] * 300), end]
    assert hidden("\n".join(["q?", *body])) == [(0, 0)]


LINES = st.lists(
    st.sampled_from(
        ["import torch", "%x", "!ls \\", "  y", "", "é = 'a\u2028'", "z = (", ")", "'''", "q?", "\t!a\r", "  # c"]
    ),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(LINES, max_size=5), st.sampled_from(list(STYLES.values())), st.booleans())
def test_every_notebook_comes_back_as_it_was(cells: list[list[str]], style: dict[str, Any], joined: bool) -> None:
    sources = ["\n".join(lines) for lines in cells]
    document = notebook(*(cell(source) for source in sources))
    for each, source in zip(document["cells"], sources, strict=True):
        each["source"] = source if joined else [line + "\n" for line in source.split("\n")]
    data = dumped(document, style)
    source = notebook_from_bytes(data, "a.ipynb")
    assert source.encode(source.text) == data
    assert [made.number for made in source.cells()] == list(range(1, len(cells) + 1))
    for made in source.cells():
        assert len(made.file_rows) == len("".join(document["cells"][made.number - 1]["source"]).split("\n"))
