"""A real client that talks to ``torchlint server`` in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

ROOT = Path(__file__).parents[2]
START = "from torchlint.cli import main; main(['server', '--stdio'])"
PATIENCE = 60
"""Seconds to wait for what must come."""

CODE = """\
import torch

torch.autograd.set_detect_anomaly(True)


def train(model, loader, optimizer):
    model.to("cuda")
    total = 0.0
    for batch in loader:
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
"""A safe fix (TL601, row 3), and two unsafe ones (TL301, row 10; TL202, row 14)."""

ALL = ["3 TL601", "10 TL301", "14 TL202"]
"""The findings in it."""


@dataclass
class Editor:
    """An editor that is open on a folder."""

    client: LanguageClient
    folder: Path
    agreed: types.ServerCapabilities
    """What the server said that it can do."""

    published: list[types.PublishDiagnosticsParams] = field(default_factory=list)
    registered: list[types.Registration] = field(default_factory=list)
    """What the server asked to be told of, when it started."""

    opened: set[str] = field(default_factory=set)

    def uri(self, name: str) -> str:
        """Return the address of a file in the folder."""
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str, version: int = 1) -> str:
        """Open a text, which need not be on the disk, and return its address."""
        return self.open_item(types.TextDocumentItem(self.uri(name), types.LanguageKind.Python, version, text))

    def open_item(self, document: types.TextDocumentItem) -> str:
        """Open any document and return its address."""
        self.opened.add(document.uri)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return document.uri

    def type(self, uri: str, text: str, version: int) -> None:
        """Change a text as a whole."""
        document = types.VersionedTextDocumentIdentifier(version, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def close(self, uri: str) -> None:
        """Close a text."""
        self.opened.remove(uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def close_all(self) -> None:
        """Close what is open, and wait until the server has taken notice."""
        left = set(self.opened)
        for uri in left:
            self.close(uri)
        await self.until(lambda: left <= {each.uri for each in self.published if each.version is None})

    def save_settings(self, text: str, name: str = "torchlint.toml") -> None:
        """Write a file of settings and tell the server, as a client does that was asked to watch."""
        (self.folder / name).write_text(text, encoding="utf-8")
        event = types.FileEvent(self.uri(name), types.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    async def until(self, holds: Callable[[], object]) -> None:
        """Return once the condition holds."""

        async def watch() -> None:
            while not holds():
                await asyncio.sleep(0.005)

        await asyncio.wait_for(watch(), PATIENCE)

    async def findings(self, uri: str, version: int | None = 1, after: int = 0) -> list[types.Diagnostic]:
        """Return what is published for a version of a text, beyond what was published ``after`` so many times."""
        found: list[types.PublishDiagnosticsParams] = []

        def holds() -> bool:
            found[:] = [each for each in self.published[after:] if (each.uri, each.version) == (uri, version)]
            return bool(found)

        await self.until(holds)
        return list(found[-1].diagnostics)

    async def codes(self, uri: str, version: int | None = 1, after: int = 0) -> list[str]:
        """Return the row and code of each finding that is published for a version."""
        return [place(found) for found in await self.findings(uri, version, after)]

    async def actions(
        self,
        uri: str,
        row: int,
        last: int | None = None,
        only: list[str] | None = None,
        named: Sequence[types.Diagnostic] | None = None,
    ) -> dict[str, types.CodeAction]:
        """Return what is offered on a row (from 1), or on the rows up to another, by title."""
        place = types.Range(types.Position(row - 1, 0), types.Position((last or row) - 1, 1000))
        context = types.CodeActionContext(named or [], only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), place, context)
        found = await self.client.text_document_code_action_async(params)
        return {action.title: action for action in found or () if isinstance(action, types.CodeAction)}

    async def edited(self, text: str, action: types.CodeAction) -> str:
        """Return a text after an action, resolved if that is necessary."""
        if action.edit is None:
            action = await self.client.code_action_resolve_async(action)
        assert action.edit
        if action.edit.changes:
            ((_, edits),) = action.edit.changes.items()
        else:
            (change,) = action.edit.document_changes or ()
            assert isinstance(change, types.TextDocumentEdit)
            edits = [edit for edit in change.edits if isinstance(edit, types.TextEdit)]
        return applied(text, edits)

    async def hover(self, uri: str, row: int, column: int) -> str:
        """Return what is shown at a place (from 1), empty if nothing is."""
        where = types.Position(row - 1, column - 1)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), where)
        found = await self.client.text_document_hover_async(params)
        assert found is None or isinstance(found.contents, types.MarkupContent)
        return found.contents.value if found and isinstance(found.contents, types.MarkupContent) else ""


def place(found: types.Diagnostic) -> str:
    """Return the row of a finding, from 1, and its code."""
    return f"{found.range.start.line + 1} {found.code}"


def applied(text: str, edits: Sequence[types.TextEdit], codec: str = "utf-16-le", width: int = 2) -> str:
    """Return a text after edits, by the words of the specification and none of torchlint's code."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)

    def offset(position: types.Position) -> int:
        before = "".join(lines[: position.line])
        line = lines[position.line] if position.line < len(lines) else ""
        return len(before) + len(line.encode(codec)[: position.character * width].decode(codec))

    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


@asynccontextmanager
async def editing(
    folder: Path,
    capabilities: types.ClientCapabilities | None = None,
    program: str = START,
    workspace: bool = True,
) -> AsyncIterator[Editor]:
    """Yield an editor whose server runs; in the end the server stops with 0 when it is asked to."""
    client = make_test_lsp_client()
    published: list[types.PublishDiagnosticsParams] = []
    registered: list[types.Registration] = []
    client.protocol.fm.features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = published.append
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: registered.extend(params.registrations))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    anywhere = folder.anchor  # as where an editor is started from a menu
    await client.start_io(sys.executable, "-c", program, cwd=anywhere, env=environment)
    process = client._server
    assert process
    try:
        folders = [types.WorkspaceFolder(folder.as_uri(), folder.name)] if workspace else None
        given = capabilities or client_capabilities("visual-studio-code")
        start = client.initialize_session(types.InitializeParams(given, workspace_folders=folders))
        answer = await asyncio.wait_for(start, PATIENCE)
        yield Editor(client, folder, answer.capabilities, published, registered)
        await asyncio.wait_for(client.shutdown_session(), PATIENCE)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await client.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """An editor that can do what Visual Studio Code can, for all tests of a module."""
    async with editing(tmp_path_factory.mktemp("workspace")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def editor(shared: Editor, tmp_path: Path) -> AsyncIterator[Editor]:
    """The same in a folder without files, of which nothing is open and nothing was told yet."""
    folder = shared.folder / tmp_path.name
    folder.mkdir()
    fresh = replace(shared, folder=folder, opened=set())
    yield fresh
    await fresh.close_all()
    shared.published.clear()
    shared.client.messages.clear()
