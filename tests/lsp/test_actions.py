"""What the server offers to do, and what becomes of the text."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types

from tests.lsp.conftest import CODE, START, Editor, editing, place
from torchlint import fix_source

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_is_offered(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    anomaly = await editor.actions(uri, 3)
    safe, everything = "Fix TL601: Switch anomaly detection off", "torchlint: Apply all safe fixes"
    assert list(anomaly) == [safe, "Ignore TL601 on this line", everything]
    assert [title for title, action in anomaly.items() if action.is_preferred] == [safe]
    assert anomaly[safe].kind == "quickfix"
    assert [place(found) for found in anomaly[safe].diagnostics or ()] == ["3 TL601"]
    assert anomaly[everything].kind == "source.fixAll.torchlint"
    unsafe = await editor.actions(uri, 10)
    title = "Fix TL301 (unsafe): Pass `set_to_none=True`"
    assert list(unsafe) == [title, "Ignore TL301 on this line", everything]
    assert not unsafe[title].is_preferred
    assert list(await editor.actions(uri, 6)) == [everything]
    assert list(await editor.actions(uri, 6, named=unsafe[title].diagnostics)) == list(unsafe)
    for only in (["source.fixAll"], ["source.fixAll.torchlint"], ["source"]):
        assert list(await editor.actions(uri, 3, only=only)) == [everything]
    assert list(await editor.actions(uri, 10, only=["quickfix"])) == [title, "Ignore TL301 on this line"]
    assert await editor.actions(uri, 10, only=["refactor", "source.organizeImports"]) == {}


async def test_what_is_offered_does_just_that(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    offered = {**await editor.actions(uri, 3), **await editor.actions(uri, 10)}
    assert all(action.edit is None for action in offered.values()), "they are resolved when they are chosen"
    done = {title: await editor.edited(CODE, action) for title, action in offered.items()}
    assert done == {
        "Fix TL601: Switch anomaly detection off": fix_source(CODE).text,
        "Ignore TL601 on this line": CODE.replace("(True)\n", "(True)  # torchlint: ignore[TL601]\n"),
        "torchlint: Apply all safe fixes": fix_source(CODE).text,
        "Fix TL301 (unsafe): Pass `set_to_none=True`": CODE.replace("=False", "=True"),
        "Ignore TL301 on this line": CODE.replace("=False)", "=False)  # torchlint: ignore[TL301]"),
    }


async def test_unsafe_fixes_are_among_all_of_them_where_the_settings_say_so(editor: Editor) -> None:
    (editor.folder / "torchlint.toml").write_text("unsafe-fixes = true\n")
    uri = editor.open("train.py", CODE)
    (action,) = (await editor.actions(uri, 1, only=["source.fixAll"])).values()
    assert action.title == "torchlint: Apply all fixes"
    assert await editor.edited(CODE, action) == fix_source(CODE, unsafe_fixes=True).text


async def test_a_client_that_cannot_resolve_gets_the_edits_at_once(tmp_path: Path) -> None:
    async with editing(tmp_path, types.ClientCapabilities()) as editor:
        uri = editor.open("train.py", CODE)
        offered = await editor.actions(uri, 10)
        action = offered["Fix TL301 (unsafe): Pass `set_to_none=True`"]
        assert action.edit
        assert list(action.edit.changes or {}) == [uri]
        assert await editor.edited(CODE, action) == CODE.replace("=False", "=True")


async def test_an_action_for_a_text_that_has_changed_is_done_to_what_it_is_now_or_not_at_all(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    action = (await editor.actions(uri, 10))["Fix TL301 (unsafe): Pass `set_to_none=True`"]
    later = CODE + "# the end\n"
    editor.type(uri, later, 2)
    assert await editor.edited(later, action) == later.replace("=False", "=True")
    editor.type(uri, "\n" + CODE, 3)
    assert (await editor.client.code_action_resolve_async(action)).edit is None
    assert "the text has changed" in editor.client.messages[0].message


SLOW_FIX = """
import time
from torchlint.lsp import features
real = features.carried_out

def slow(checked, offer):
    time.sleep(1)
    return real(checked, offer)

features.carried_out = slow
"""


async def test_an_edit_of_a_text_that_changes_meanwhile_is_never_handed_out(tmp_path: Path) -> None:
    async with editing(tmp_path, program=SLOW_FIX + START) as editor:
        uri = editor.open("train.py", CODE)
        action = (await editor.actions(uri, 3))["torchlint: Apply all safe fixes"]
        asked = asyncio.ensure_future(editor.client.code_action_resolve_async(action))
        await asyncio.sleep(0.3)
        editor.type(uri, "\n" + CODE, 2)
        assert (await asked).edit is None
