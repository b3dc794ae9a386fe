"""The state of the language server: one thread checks, so that the loop always answers, and nothing stale is told."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import unquote

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path, uri_scheme
from pygls.workspace import TextDocument

from torchlint.diagnostic import Diagnostic, Severity
from torchlint.engine.result import FileResult, Status
from torchlint.lsp.checked import Checked, check_text
from torchlint.lsp.pages import PageFolder
from torchlint.lsp.places import Places
from torchlint.source import NOTEBOOK, source_from_text
from torchlint.suppress import UNUSED
from torchlint.version import __version__

Result = TypeVar("Result")

SEVERITIES = MappingProxyType(
    {
        Severity.ERROR: types.DiagnosticSeverity.Error,
        Severity.WARNING: types.DiagnosticSeverity.Warning,
        Severity.INFO: types.DiagnosticSeverity.Information,
    }
)

_SCHEMES = ("file", "untitled")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Where a jump to a definition leads that is not of the project: excludes, relative to the project, do not see it."""


class Server(LanguageServer):
    """What is open, what was found in it, and what its user was told."""

    def __init__(self) -> None:
        # Whole texts, for pygls applies partial changes by lines that end at form feeds and the like, too.
        super().__init__("torchlint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self._pages = PageFolder()
        self.is_stopped = False
        self.has_watchers = False
        self._worker = ThreadPoolExecutor(1, "torchlint-worker")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._found: dict[str, tuple[tuple[str, int], Checked]] = {}
        self._reloads = 0
        self._told: dict[str, frozenset[tuple[types.MessageType, str]]] = {}

    def document(self, uri: str) -> TextDocument | None:
        """Return the text that is open, None if it is no Python file, or one of an installed package."""
        document = self.workspace.text_documents.get(unquote(uri))
        if document is None or uri_scheme(uri) not in _SCHEMES or document.path.endswith(NOTEBOOK):
            return None
        if not _INSTALLED.isdisjoint(Path(document.path).parts):
            return None
        is_python = document.language_id == "python" or document.path.endswith((".py", ".pyi"))
        return document if is_python else None

    def schedule(self, uri: str, delay: float = 0) -> None:
        """Check a text after a delay; what was under way for it is never published."""
        key = unquote(uri)
        if key in self._tasks:
            self._tasks.pop(key).cancel()
        document = self.document(uri)
        if document:
            self._tasks[key] = asyncio.create_task(self._publish_after(delay, document))

    def forget(self, uri: str) -> None:
        """Stop whatever is under way for a text, and take its findings away."""
        self.schedule(uri)
        self._told.pop(unquote(uri), None)
        self.run_in_worker(functools.partial(self._found.pop, unquote(uri), None))
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def reload(self) -> None:
        """Check everything that is open again: settings may have changed."""
        self._reloads += 1
        for document in self.workspace.text_documents.values():
            self.schedule(document.uri)

    def run_in_worker(self, function: Callable[[], object]) -> None:
        """Let the thread that checks call the function, behind what it has to do already."""
        self._worker.submit(function)

    async def in_worker(self, function: Callable[[], Result]) -> Result:
        """Return what the function returns, called in the thread that checks."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, function)

    async def checked(self, document: TextDocument) -> Checked | None:
        """Return what is found in the text as it is now, None once it is closed."""
        path, root = self._place(document)
        while self.document(document.uri) is document:
            key = (document.source, self._reloads)
            checked = await self.in_worker(functools.partial(self._check, unquote(document.uri), path, root, key))
            if self._is_wanted(unquote(document.uri), key):
                return checked
        return None

    def is_current(self, document: TextDocument, checked: Checked) -> bool:
        """Return whether what was checked is still what the editor holds."""
        return self.document(document.uri) is document and document.source == checked.source.whole(checked.source.text)

    def places(self, checked: Checked) -> Places:
        """Return the way between offsets of the text and positions as this client counts them."""
        return Places(checked.source, self.workspace.position_codec)

    def diagnostic(self, found: Diagnostic, checked: Checked) -> types.Diagnostic:
        """Return a finding as editors show it."""
        address = self._pages.address(checked.rules().get(found.code))
        return types.Diagnostic(
            range=self.places(checked).range(found.range),
            message=found.message,
            severity=SEVERITIES[found.severity],
            code=found.code,
            code_description=types.CodeDescription(address) if address else None,
            source="torchlint",
            tags=[types.DiagnosticTag.Unnecessary] if found.code == UNUSED else None,
        )

    def supports(self, name: str) -> Any:
        """Return what the client's capabilities say under a dotted name, None if nothing."""
        return get_capability(self.client_capabilities, name)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what went wrong in the protocol: a pop-up for each would be in the way."""
        message = f"internal error: {type(error).__name__}: {error}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    async def _publish_after(self, delay: float, document: TextDocument) -> None:
        await asyncio.sleep(delay)
        try:
            checked = await self.checked(document)
            if checked:
                self._publish(document, checked)
        except Exception as error:
            self.report_server_error(error, type(error))

    def _publish(self, document: TextDocument, checked: Checked) -> None:
        found = [self.diagnostic(each, checked) for each in checked.result.diagnostics]
        self._tell(unquote(document.uri), checked)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, found, document.version))

    def _check(self, uri: str, path: str, root: str, key: tuple[str, int]) -> Checked:
        """Return what is found, in the thread that checks; nothing is raised, and nothing checked twice."""
        known = self._found.get(uri)
        if known and known[0] == key:
            return known[1]
        is_wanted = functools.partial(self._is_wanted, uri, key)
        try:
            os.chdir(root)  # what the rules of paths are relative to where no settings say it
            checked = check_text(key[0], path, is_wanted)
        except Exception as error:
            trouble = f"{path}: internal error: {type(error).__name__}: {error}"
            checked = Checked(source_from_text(key[0], path), FileResult(path, Status.FAILED), troubles=(trouble,))
        if is_wanted():
            self._found[uri] = key, checked
        return checked

    def _is_wanted(self, uri: str, key: tuple[str, int]) -> bool:
        """Return whether a text is still what the editor holds, and the settings those that were read."""
        document = self.workspace.text_documents.get(uri)
        return document is not None and key == (document.source, self._reloads)

    def _place(self, document: TextDocument) -> tuple[str, str]:
        """Return the path of a text and the folder of the workspace that it lies in, else its own."""
        folders = [to_fs_path(folder.uri) for folder in self.workspace.folders.values()]
        known = [folder for folder in (*folders, self.workspace.root_path) if folder and os.path.isdir(folder)]
        if uri_scheme(document.uri) != "file":
            root = known[0] if known else os.getcwd()
            return os.path.join(root, os.path.basename(document.path)), root
        around = [folder for folder in known if Path(document.path).is_relative_to(folder)]
        existing = next((str(folder) for folder in Path(document.path).parents if folder.is_dir()), os.getcwd())
        return document.path, max(around, key=len, default=existing)

    def _tell(self, uri: str, checked: Checked) -> None:
        """Show what is wrong, once until it is mended, and log what is odd."""
        before = frozenset[tuple[types.MessageType, str]]().union(*self._told.values())
        self._told[uri] = frozenset(
            [(types.MessageType.Error, trouble) for trouble in checked.troubles]
            + [(types.MessageType.Warning, warning) for warning in checked.result.warnings]
        )
        for kind, message in sorted(self._told[uri] - before):
            if kind is types.MessageType.Error:
                self.window_show_message(types.ShowMessageParams(kind, f"torchlint: {message}"))
            else:
                self.window_log_message(types.LogMessageParams(kind, message))
