"""What an editor sees of the server: findings, settings, hover, positions."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from lsprotocol import types
from pytest_lsp import client_capabilities

from tests.lsp.conftest import ALL, CODE, Editor, applied, editing, place
from torchlint import check_paths, check_source, fix_source
from torchlint.evidence import for_rule
from torchlint.registry import rules
from torchlint.report.page import page

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
BROKEN = CODE.replace("def train(", "def train((")


async def test_findings_of_text_that_is_not_saved(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    assert await editor.codes(uri) == ALL
    editor.type(uri, CODE.replace("=False", "=True"), 2)
    assert await editor.codes(uri, 2) == ["3 TL601", "14 TL202"]
    editor.close(uri)
    assert await editor.codes(uri, None) == []


async def test_a_finding_as_editors_show_it(editor: Editor) -> None:
    (found, *_) = await editor.findings(editor.open("train.py", CODE))
    (checked, *_) = check_source(CODE)
    assert found.range == types.Range(types.Position(2, 0), types.Position(2, 39))
    assert (found.message, found.source) == (checked.message, "torchlint")
    assert found.severity is types.DiagnosticSeverity.Warning
    assert found.code_description
    file = Path(url2pathname(urlsplit(found.code_description.href).path))
    assert file.read_text(encoding="utf-8") == page(next(rule for rule in rules() if rule.code == "TL601"))


async def test_settings_of_the_folder_hold(editor: Editor) -> None:
    (editor.folder / "torchlint.toml").write_text(
        'ignore = ["TL601"]\nextend-exclude = ["old"]\nseverity = { TL301 = "error", TL202 = "info" }\n'
        'per-file-ignores = { "scripts/*" = ["TL202"] }\n'
    )
    found = await editor.findings(editor.open("train.py", CODE))
    severities = [types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Information]
    assert [(place(each), each.severity) for each in found] == list(zip(ALL[1:], severities, strict=True))
    assert await editor.codes(editor.open("scripts/train.py", CODE)) == ["10 TL301"]
    assert await editor.codes(editor.open("old/train.py", CODE)) == []
    assert await editor.codes(editor.open("test_train.py", CODE)) == [], "performance rules are off in tests"


async def test_a_whole_project_gets_what_the_command_line_says(editor: Editor) -> None:
    shutil.copytree(DEMO, editor.folder, dirs_exist_ok=True)
    found = {
        (result.path, each.code, each.message, each.start.row, each.start.column)
        for result in check_paths([editor.folder])
        for each in result.diagnostics
    }
    shown = set()
    for path in sorted(editor.folder.glob("*.py")):
        for each in await editor.findings(editor.open(path.name, path.read_text(encoding="utf-8"))):
            place = (each.range.start.line + 1, each.range.start.character + 1)
            shown.add((str(path), str(each.code), each.message, *place))
    assert shown == found
    assert len(found) > 20


async def test_fixing_all_of_a_project_is_what_the_command_line_does(editor: Editor) -> None:
    from torchlint.cli import run

    shutil.copytree(DEMO, editor.folder, dirs_exist_ok=True)
    before = {path: path.read_text(encoding="utf-8") for path in sorted(editor.folder.glob("*.py"))}
    assert run(["fix", "--apply", "--quiet", str(editor.folder)]) == 1
    changed = 0
    for path, text in before.items():
        uri = editor.open(path.name, text)
        for action in (await editor.actions(uri, 1, only=["source.fixAll"])).values():
            text = await editor.edited(text, action)
            changed += 1
        assert text == path.read_text(encoding="utf-8")
    assert changed > 0


async def test_suppressions_and_those_that_are_not_used(editor: Editor) -> None:
    silenced = CODE.replace("=False)", "=False)  # torchlint: ignore[TL301]").replace(
        "    return total", "    return total  # torchlint: ignore[TL202]"
    )
    found = await editor.findings(editor.open("train.py", silenced))
    assert [place(each) for each in found] == ["3 TL601", "14 TL202", "15 TL001"]
    assert list(found[-1].tags or ()) == [types.DiagnosticTag.Unnecessary]


async def test_a_comment_that_names_no_rule_is_logged_once(editor: Editor) -> None:
    uri = editor.open("train.py", CODE.replace("=False)", "=False)  # torchlint: ignore[zero-grad-to-zeros]"))
    assert await editor.codes(uri) == ALL
    editor.type(uri, CODE.replace("=False)", "=False)  # torchlint: ignore[zero-grad-to-zeros] "), 2)
    assert await editor.codes(uri, 2) == ALL
    (told,) = [each.message for each in editor.client.log_messages if "zero-grad-to-zeros" in each.message]
    assert "did you mean `zero-grad-to-zero`?" in told
    assert editor.client.messages == []


async def test_a_baseline_of_the_settings_holds(editor: Editor) -> None:
    from torchlint.cli import run

    (editor.folder / "train.py").write_text(CODE)
    baseline = editor.folder / "known.json"
    assert run(["check", "--quiet", "--write-baseline", str(baseline), str(editor.folder)]) == 0
    (editor.folder / "torchlint.toml").write_text('baseline = "known.json"\n')
    uri = editor.open("train.py", CODE)
    assert await editor.codes(uri) == []
    editor.type(uri, CODE + "\ntorch.autograd.set_detect_anomaly(True)\n", 2)
    assert await editor.codes(uri, 2) == ["17 TL601"]


async def test_changed_settings_hold_at_once(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    assert await editor.codes(uri) == ALL
    assert [registration.method for registration in editor.registered] == [types.WORKSPACE_DID_CHANGE_WATCHED_FILES]
    editor.save_settings('select = ["TL301"]\n')
    assert await editor.codes(uri, after=1) == ["10 TL301"]
    (editor.folder / "torchlint.toml").unlink()
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    assert await editor.codes(uri, after=2) == ALL


async def test_changed_requirements_hold_at_once(editor: Editor) -> None:
    editor.save_settings("torch>=1.13\n", "requirements.txt")
    uri = editor.open("train.py", CODE.replace("set_to_none=False", ""))
    assert await editor.codes(uri) == ALL
    editor.save_settings("torch>=2.1\n", "requirements.txt")
    assert await editor.codes(uri, after=1) == ["3 TL601", "14 TL202"]


async def test_wrong_settings_are_told_once(editor: Editor) -> None:
    (editor.folder / "torchlint.toml").write_text('ignroe = ["TL601"]\n')
    first, second = editor.open("a.py", CODE), editor.open("b.py", CODE)
    assert await editor.codes(first) == await editor.codes(second) == []
    editor.type(first, CODE + "\n", 2)
    assert await editor.codes(first, 2) == []
    (message,) = editor.client.messages
    assert message.type is types.MessageType.Error
    assert "unknown key `ignroe`; did you mean `ignore`?" in message.message
    editor.save_settings('ignore = ["TL601"]\n')
    assert await editor.codes(first, 2, after=3) == ALL[1:]
    assert await editor.codes(second, after=3) == ALL[1:]
    editor.save_settings("ignore = 1\n")
    assert await editor.codes(first, 2, after=5) == await editor.codes(second, after=5) == []
    assert len(editor.client.messages) == 2
    editor.save_settings('plugins = ["not-installed"]\n')
    assert await editor.codes(first, 2, after=7) == []
    assert "not-installed" in editor.client.messages[2].message


async def test_a_syntax_error_while_typing(editor: Editor) -> None:
    uri = editor.open("train.py", BROKEN)
    assert [code.split()[1] for code in await editor.codes(uri)] == ["TL000"]
    assert await editor.actions(uri, 1, last=20) == {}
    editor.type(uri, CODE, 2)
    assert await editor.codes(uri, 2) == ALL


async def test_what_is_typed_fast_is_checked_when_it_rests(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    await editor.findings(uri)
    for version in range(2, 30):
        editor.type(uri, CODE + "#" * version, version)
    assert await editor.codes(uri, 29) == ALL
    versions = [each.version for each in editor.published]
    assert versions == sorted(set(versions)), "nothing is published twice, or after what is newer"
    assert len(versions) <= 4, "a machine that stalls may take a pause for a rest"


async def test_the_page_and_the_evidence_on_hover(editor: Editor) -> None:
    uri = editor.open("train.py", CODE)
    shown = await editor.hover(uri, 3, 5)
    rule = next(rule for rule in rules() if rule.code == "TL601")
    assert shown.startswith("**TL601 anomaly-detection-left-on**")
    assert rule.documentation.strip().splitlines()[0] in shown
    assert "### Why it costs" in shown
    assert [measured for measured in for_rule("TL601") if measured.sentence not in shown] == []
    assert await editor.hover(uri, 6, 1) == ""


@pytest.mark.parametrize("units", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_positions_are_counted_as_agreed(tmp_path: Path, units: str, newline: str) -> None:
    emoji = 's = "\U0001f525é\u2028\x0c"; torch.autograd.set_detect_anomaly(True)'
    text = CODE.replace("torch.autograd.set_detect_anomaly(True)", emoji).replace("\n", newline)
    general = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(units)])
    async with editing(tmp_path, types.ClientCapabilities(general=general)) as editor:
        assert editor.agreed.position_encoding == units
        uri = editor.open("train.py", text)
        found, later, _ = await editor.findings(uri)
        codec, width = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[units]
        start = len(emoji[: emoji.index("torch")].encode(codec)) // width
        assert found.range.start == types.Position(2, start)
        assert later.range.start.line == 9
        assert (await editor.hover(uri, 3, start + 1)).startswith("**TL601")
        assert await editor.hover(uri, 3, start) == ""
        action = (await editor.actions(uri, 3))["Ignore TL601 on this line"]
        assert action.edit
        ((_, edits),) = (action.edit.changes or {}).items()
        expected = text.replace(emoji, f"{emoji}  # torchlint: ignore[TL601]")
        assert applied(text, edits, codec, width) == expected


async def test_utf_16_is_what_a_client_gets_that_asks_for_nothing(tmp_path: Path) -> None:
    async with editing(tmp_path, types.ClientCapabilities()) as editor:
        text = CODE.replace("torch.autograd", '"\U0001f525"; torch.autograd')
        (found, *_) = await editor.findings(editor.open("train.py", text))
        assert found.range.start.character == 6


async def test_neovim_and_emacs_get_findings_and_actions(tmp_path: Path) -> None:
    for client in ("neovim", "emacs"):
        async with editing(tmp_path, client_capabilities(client)) as editor:
            uri = editor.open("train.py", CODE)
            assert await editor.codes(uri) == ALL
            action = (await editor.actions(uri, 3))["torchlint: Apply all safe fixes"]
            assert await editor.edited(CODE, action) == fix_source(CODE).text
