"""The server under slow checks, crashing rules, odd texts and requests that are given up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from tests.lsp.conftest import ALL, CODE, START, Editor, editing

pytestmark = pytest.mark.asyncio(loop_scope="module")


SLOW = """
import re, time
from torchlint.lsp import checked
real = checked.check_file

def slow(source, *arguments):
    seconds = re.search("# slow for (.*) s", source.text)
    end = time.monotonic() + float(seconds[1] if seconds else 0)
    while time.monotonic() < end:
        time.sleep(0.01)
    return real(source, *arguments)

checked.check_file = slow
"""


async def test_a_check_that_is_overtaken_is_given_up_and_never_published(tmp_path: Path) -> None:
    async with editing(tmp_path, program=SLOW + START) as editor:
        uri = editor.open("train.py", CODE + "# slow for 1000 s\n")
        await asyncio.sleep(0.5)
        editor.type(uri, CODE.replace("=False", "=True"), 2)
        assert await editor.codes(uri, 2) == ["3 TL601", "14 TL202"]
        other = editor.open("other.py", CODE + "# slow for 1000 s\n")
        await asyncio.sleep(0.5)
        editor.close(other)
        editor.type(uri, CODE, 3)
        assert await editor.codes(uri, 3) == ALL
        editor.type(uri, CODE + "# slow for 20 s\n", 4)
        await asyncio.sleep(0.3)
        editor.type(uri, CODE, 5)
        assert await editor.codes(uri, 5) == ALL
        assert [(each.uri, each.version) for each in editor.published] == [
            (uri, 2),
            (other, None),
            (uri, 3),
            (uri, 5),
        ]
        assert editor.client.messages == []


async def test_a_file_that_takes_too_long_is_told(tmp_path: Path) -> None:
    async with editing(tmp_path, program=SLOW + START) as editor:
        (tmp_path / "torchlint.toml").write_text("file-timeout = 0.5\n")
        assert await editor.codes(editor.open("train.py", CODE + "# slow for 1000 s\n")) == []
        assert "given up after 0.5 s" in editor.client.messages[0].message


COUNTING = """
from torchlint.lsp import checked
real = checked.check_file

def counting(source, *arguments):
    with open(source.path + ".checks", "a") as file:
        file.write("x")
    return real(source, *arguments)

checked.check_file = counting
"""


async def test_no_text_is_checked_twice(tmp_path: Path) -> None:
    async with editing(tmp_path, program=COUNTING + START) as editor:
        uri = editor.open("train.py", CODE)
        await editor.findings(uri)
        assert await editor.hover(uri, 3, 5)
        assert await editor.actions(uri, 3)
        assert (tmp_path / "train.py.checks").read_text() == "x"


CRASH = """
from torchlint.registry import rules
rule = next(rule for rule in rules() if rule.code == "TL601")

def crash(node, model):
    raise RuntimeError("on purpose")

rule.checks.update({kind: [crash] for kind in rule.checks})
"""


async def test_a_rule_that_crashes_costs_its_findings_only(tmp_path: Path) -> None:
    async with editing(tmp_path, program=CRASH + START) as editor:
        uri = editor.open("train.py", CODE)
        assert await editor.codes(uri) == ALL[1:]
        editor.type(uri, CODE + "\n", 2)
        assert await editor.codes(uri, 2) == ALL[1:]
        (message,) = editor.client.messages
        assert "internal error in rule TL601" in message.message


@pytest.mark.parametrize("text", ["(" * 5000, "x = 1\n" * 10 + "\0", "\ud800", "\ufeff" + CODE, ""])
async def test_odd_texts_do_not_end_the_server(editor: Editor, text: str) -> None:
    await editor.findings(editor.open("odd.py", text))
    assert await editor.codes(editor.open("train.py", CODE)) == ALL


async def test_a_byte_order_mark_takes_a_column(editor: Editor) -> None:
    text = "\ufeffimport torch; torch.autograd.set_detect_anomaly(True)\nx = torch\n"
    uri = editor.open("train.py", text)
    (found,) = await editor.findings(uri)
    assert found.range.start == types.Position(0, 15)
    action = (await editor.actions(uri, 1))["torchlint: Apply all safe fixes"]
    assert (await editor.edited(text, action)).startswith("\ufeffimport torch\n")


async def test_a_file_outside_of_any_workspace(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "project"
    folder.mkdir(parents=True)
    async with editing(folder, workspace=False) as editor:
        assert await editor.codes(editor.open("train.py", CODE)) == ALL, "the folder above says nothing of tests"
        assert await editor.codes(editor.open("not/there/yet.py", CODE)) == ALL
        editor.save_settings('select = ["TL301"]\n')
        assert await editor.codes(editor.uri("train.py"), after=2) == ["10 TL301"]


async def test_a_client_that_does_not_watch_files_sees_settings_on_save(tmp_path: Path) -> None:
    async with editing(tmp_path, types.ClientCapabilities()) as editor:
        uri = editor.open("train.py", CODE)
        assert await editor.codes(uri) == ALL
        (tmp_path / "torchlint.toml").write_text('select = ["TL301"]\n')
        editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        assert await editor.codes(uri, after=1) == ["10 TL301"]


async def test_a_request_that_is_cancelled_is_answered_so(tmp_path: Path) -> None:
    async with editing(tmp_path, program=SLOW + START) as editor:
        uri = editor.open("train.py", CODE + "# slow for 1 s\n")
        place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(2, 5))
        asked = editor.client.text_document_hover(place)
        (number,) = editor.client.protocol._request_futures
        editor.client.cancel_request(types.CancelParams(number))
        with pytest.raises(JsonRpcRequestCancelled):
            await asyncio.wait_for(asyncio.wrap_future(asked), 60)
        assert await editor.codes(uri) == ALL


async def test_what_is_no_python_file_of_a_project_is_left_alone(editor: Editor) -> None:
    for language, name in (("toml", "pyproject.toml"), ("python", "notebook.ipynb")):
        editor.open_item(types.TextDocumentItem(editor.uri(name), language, 1, CODE))
    editor.open_item(types.TextDocumentItem("vscode-notebook-cell:/a.ipynb#1", "python", 1, CODE))
    editor.open_item(types.TextDocumentItem("file:///lib/python3/site-packages/a.py", "python", 1, CODE))
    uri = editor.open("train.py", CODE)
    await editor.findings(uri)
    assert [each.uri for each in editor.published] == [uri]


async def test_a_text_without_a_file(editor: Editor) -> None:
    (editor.folder.parent / "torchlint.toml").write_text('select = ["TL202"]\n')
    uri = editor.open_item(types.TextDocumentItem("untitled:Untitled-1", "python", 1, CODE))
    assert await editor.codes(uri) == ["14 TL202"]
    (editor.folder.parent / "torchlint.toml").unlink()
