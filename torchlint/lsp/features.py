"""What editors ask and tell, and what the server answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from lsprotocol import types
from pygls.workspace import TextDocument

from torchlint.diagnostic import Diagnostic
from torchlint.lsp.actions import KINDS, Offer, RefusedError, carried_out, offers
from torchlint.lsp.checked import Checked, warm_up
from torchlint.lsp.pages import hover_text
from torchlint.lsp.places import Places
from torchlint.lsp.server import Server

DELAY = 0.1
"""Seconds without a change before a text is checked."""

WATCHED = (
    "**/*.toml",
    "**/setup.{py,cfg}",
    "**/requirements*.txt",
    "**/requirements/**/*.txt",
    "**/{environment,conda,env}*.{yml,yaml}",
)
"""Files that settings and the oldest torch to support can come from."""


def did_open(server: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Check a text that was opened."""
    server.schedule(params.text_document.uri)


def did_change(server: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Check a text when it has not changed for a moment."""
    server.schedule(params.text_document.uri, DELAY)


def did_save(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    """Take the occasion to look at the settings again, for clients that do not watch them."""
    if not server.has_watchers:
        server.reload()


def did_close(server: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Take the findings of a text away."""
    server.forget(params.text_document.uri)


def settings_changed(server: Server, params: object) -> None:
    """Check everything again."""
    server.reload()


def initialized(server: Server, params: types.InitializedParams) -> None:
    """Import what checking needs, and ask to be told of changed settings."""
    server.run_in_worker(warm_up)
    if not server.supports("workspace.did_change_watched_files.dynamic_registration"):
        return
    watchers = [types.FileSystemWatcher(glob) for glob in WATCHED]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = types.Registration("torchlint-settings", method, options)
    answer = server.client_register_capability(types.RegistrationParams([registration]))
    answer.add_done_callback(functools.partial(_note_watchers, server))


def _note_watchers(server: Server, answer: Future[None]) -> None:
    server.has_watchers = not answer.cancelled() and answer.exception() is None


def shutdown(server: Server, params: object) -> None:
    """Note that the end is wanted."""
    server.is_stopped = True


async def hover(server: Server, params: types.HoverParams) -> types.Hover | None:
    """Return the page of the rules that found something here."""
    document = server.document(params.text_document.uri)
    if document is None:
        return None
    checked = await server.checked(document)
    if checked is None:
        return None
    places = server.places(checked)
    offset = places.offset(params.position)
    findings = checked.at(offset, offset)
    if not findings:
        return None
    formats = server.supports("text_document.hover.content_format") or [types.MarkupKind.Markdown]
    kind = types.MarkupKind.Markdown if types.MarkupKind.Markdown in formats else types.MarkupKind.PlainText
    return types.Hover(
        types.MarkupContent(kind, hover_text(findings, checked.rules())), places.range(findings[0].range)
    )


async def code_action(server: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """Return what can be done about the findings in a range; what it changes only if the client cannot ask for it."""
    document = server.document(params.text_document.uri)
    if document is None:
        return None
    checked = await server.checked(document)
    if checked is None:
        return None
    places = server.places(checked)
    findings = _asked_about(checked, places, params)
    offered = list(offers(checked, findings, params.context.only))
    actions = [_action(server, document, checked, offer) for offer in offered]
    properties = server.supports("text_document.code_action.resolve_support.properties") or ()
    if "edit" in properties:
        return actions
    done = [await _resolved(server, document, checked, pair) for pair in zip(actions, offered, strict=True)]
    return [action for action in done if action.edit]


def _asked_about(checked: Checked, places: Places, params: types.CodeActionParams) -> list[Diagnostic]:
    """Return the findings that touch the range, and those that the client names: others on the line of the cursor.

    They are known by code and row: Neovim 0.7 gives them back with columns in bytes, whatever was agreed.
    """
    named = {(each.code, each.range.start.line + 1) for each in params.context.diagnostics}
    touched = checked.at(places.offset(params.range.start), places.offset(params.range.end))
    return [found for found in checked.result.diagnostics if found in touched or (found.code, found.start.row) in named]


def _action(server: Server, document: TextDocument, checked: Checked, offer: Offer) -> types.CodeAction:
    found = offer.finding
    return types.CodeAction(
        offer.title,
        kind=offer.kind,
        diagnostics=[server.diagnostic(found, checked)] if found else None,
        is_preferred=True if offer.is_safe_fix else None,
        data={"uri": document.uri, "title": offer.title}
        | ({"code": found.code, "start": found.range.start} if found else {}),
    )


async def resolve(server: Server, action: types.CodeAction) -> types.CodeAction:
    """Return the action with what it changes; without, and the user told why, if it cannot be done."""
    data = action.data if isinstance(action.data, dict) else {}
    document = server.document(str(data.get("uri")))
    if document is None:
        return action
    checked = await server.checked(document)
    if checked is None:
        return action
    found = [each for each in checked.result.diagnostics if (each.code, each.range.start) == _key(data)]
    offer = next((each for each in offers(checked, found, None) if each.title == data.get("title")), None)
    if offer is None:
        _refuse(server, action, "the text has changed")
        return action
    return await _resolved(server, document, checked, (action, offer))


def _key(data: dict[str, Any]) -> tuple[Any, Any]:
    return data.get("code"), data.get("start")


async def _resolved(
    server: Server, document: TextDocument, checked: Checked, pair: tuple[types.CodeAction, Offer]
) -> types.CodeAction:
    action, offer = pair
    try:
        text = await server.in_worker(functools.partial(carried_out, checked, offer))
    except RefusedError as error:
        _refuse(server, action, str(error))
        return action
    if server.is_current(document, checked):
        edits = server.places(checked).edits(text)
        action.edit = _workspace_edit(server, document, edits)
    return action


def _refuse(server: Server, action: types.CodeAction, reason: str) -> None:
    message = f"torchlint: cannot do \u201c{action.title}\u201d: {reason}"
    server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))


def _workspace_edit(server: Server, document: TextDocument, edits: Sequence[types.TextEdit]) -> types.WorkspaceEdit:
    """Return the edits of a text, bound to its version where the client knows of that."""
    if not server.supports("workspace.workspace_edit.document_changes"):
        return types.WorkspaceEdit(changes={document.uri: edits})
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, edits)])


def make_server() -> Server:
    """Return a server that answers everything it announces."""
    server = Server()
    kinds = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)
    features: list[tuple[str, Callable[..., Any], Any]] = [
        (types.INITIALIZED, initialized, None),
        (types.SHUTDOWN, shutdown, None),
        (types.TEXT_DOCUMENT_DID_OPEN, did_open, None),
        (types.TEXT_DOCUMENT_DID_CHANGE, did_change, None),
        (types.TEXT_DOCUMENT_DID_SAVE, did_save, None),
        (types.TEXT_DOCUMENT_DID_CLOSE, did_close, None),
        (types.WORKSPACE_DID_CHANGE_CONFIGURATION, settings_changed, None),
        (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, settings_changed, None),
        (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, settings_changed, None),
        (types.TEXT_DOCUMENT_HOVER, hover, None),
        (types.TEXT_DOCUMENT_CODE_ACTION, code_action, kinds),
        (types.CODE_ACTION_RESOLVE, resolve, None),
    ]
    for name, handler, options in features:
        server.feature(name, options)(handler)
    return server
