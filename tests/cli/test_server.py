"""Starting and ending the language server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
SERVER = [sys.executable, "-m", "torchlint", "server"]


def message(method: str, number: int | None = None) -> bytes:
    """Return a message as it goes over the wire."""
    content: dict[str, object] = {"jsonrpc": "2.0", "method": method} | ({} if number is None else {"id": number})
    if method == "initialized":
        content["params"] = {}
    if method == "initialize":
        content["params"] = {"processId": None, "rootUri": None, "capabilities": {}}
    body = json.dumps(content).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize("missing", ["pygls", "lsprotocol"])
def test_without_pygls_one_line_says_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from torchlint.cli import main; main(['server'])"
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'error: the language server needs pygls 2: pip install "torchlint[lsp]"\n'
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("last", "code"), [([message("shutdown", 2), message("exit")], 0), ([message("exit")], 1), ([], 1)]
)
def test_exit_codes_are_those_of_the_protocol(last: list[bytes], code: int) -> None:
    given = b"".join([message("initialize", 1), message("initialized"), *last])
    done = subprocess.run(SERVER, input=given, env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (code, b"")
    assert b'"serverInfo"' in done.stdout


@pytest.mark.parametrize(("sent", "code", "said"), [(signal.SIGINT, 130, b"interrupted\n"), (signal.SIGTERM, 143, b"")])
def test_a_signal_ends_it_at_once(sent: signal.Signals, code: int, said: bytes) -> None:
    with subprocess.Popen(
        SERVER, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(message("initialize", 1))
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(sent)
        assert process.wait(timeout=30) == code
        assert process.stderr
        assert process.stderr.read() == said


def test_no_other_command_imports_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n\ntorch.autograd.set_detect_anomaly(True)\n")
    program = (
        "import sys; from torchlint.cli import run; code = run(['check', 'a.py']); run(['--help']); "
        "assert code == 1; print(sorted({'pygls', 'lsprotocol', 'cattrs', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "server" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
