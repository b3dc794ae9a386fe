"""What can go wrong with files, one function each: it makes the fault, runs the command and says what was seen.

Each is run by the tests and, with those that take long, by ``python -m tests.faults.run``.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.faults.command import FIXED, SAFE, contents, obey_modes, strangers, torchlint
from torchlint.engine.many import Work, run_many
from torchlint.engine.plan import Task, make_plan
from torchlint.engine.result import FileResult
from torchlint.engine.worker import Worker
from torchlint.report.formats import FORMATS
from torchlint.source import SourceError, write_atomically

Fault = Callable[[Path], str]

_LARGEST_OUTPUT = 200
_NO_UNICODE = os.fsdecode(b"caf\xe9 \xff<a>.py")


def files(folder: Path, *names: str, text: str = SAFE) -> None:
    """Write files with one finding each."""
    for name in names:
        (folder / name).write_text(text)


def agree(what: object, expected: object) -> None:
    """Demand that two things are equal.

    Raises:
        AssertionError: they are not.
    """
    if what != expected:
        raise AssertionError(f"{what!r} is not {expected!r}")


def lines(data: bytes) -> list[str]:
    """Return the lines of an output, without the summary."""
    return os.fsdecode(data).splitlines()


def disk_full(folder: Path) -> str:
    """Refuse to write more than a few bytes to any file."""
    text = SAFE + "y = 1\n" * _LARGEST_OUTPUT
    files(folder, "a.py", text=text)
    files(folder, "b.py")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_OUTPUT, _LARGEST_OUTPUT))

    done = torchlint("fix", "--apply", "--jobs", "1", ".", cwd=folder, prepare=limit)
    agree((done.returncode, lines(done.stderr)[0]), (2, "error: a.py: not written: File too large"))
    agree(contents(folder), {"a.py": text.encode(), "b.py": FIXED.encode()})
    agree(strangers(folder), [])
    agree(torchlint("fix", "--apply", ".", cwd=folder).returncode, 0)
    return "the file stays as it was, the next run writes it"


def read_only_file(folder: Path) -> str:
    """Take away the right to write a file."""
    files(folder, "a.py", "b.py")
    (folder / "a.py").chmod(0o444)
    done = torchlint("fix", "--apply", ".", cwd=folder, prepare=obey_modes)
    agree((done.returncode, lines(done.stderr)[0]), (2, "error: a.py: not written: the file is read-only"))
    agree(contents(folder), {"a.py": SAFE.encode(), "b.py": FIXED.encode()})
    return "named, left as it was"


def read_only_folder(folder: Path) -> str:
    """Take away the right to make files in a folder."""
    (folder / "sub").mkdir()
    files(folder, "sub/a.py", "b.py")
    (folder / "sub").chmod(0o555)
    try:
        done = torchlint("fix", "--apply", ".", cwd=folder, prepare=obey_modes)
        agree((done.returncode, lines(done.stderr)[0]), (2, "error: sub/a.py: not written: Permission denied"))
        agree(contents(folder), {"sub/a.py": SAFE.encode(), "b.py": FIXED.encode()})
        done = torchlint("check", "--output-format", "concise", "a.py", cwd=folder / "sub", prepare=obey_modes)
        agree((done.returncode, done.stderr), (1, b""))
    finally:
        (folder / "sub").chmod(0o755)
    return "the file is named, left as it was; a cache that cannot be written is none"


def unreadable(folder: Path) -> str:
    """Take away the right to read a file, and to look into a folder."""
    (folder / "closed").mkdir()
    files(folder, "a.py", "b.py", "closed/c.py")
    (folder / "a.py").chmod(0)
    (folder / "closed").chmod(0)
    try:
        done = torchlint("check", "--output-format", "concise", ".", cwd=folder, prepare=obey_modes)
    finally:
        (folder / "closed").chmod(0o755)
    agree(done.returncode, 2)
    expected = ["error: a.py: cannot read: Permission denied", "error: closed: permission denied"]
    agree(sorted(lines(done.stderr)), expected)
    agree(next(line for line in lines(done.stdout) if "TL601" in line).partition(":")[0], "b.py")
    return "both are named, the others are checked"


def vanished(folder: Path) -> str:
    """Delete a file after it was found, and another after it was read."""
    files(folder, "a.py", "b.py", "c.py")
    planned = make_plan([str(folder)], overrides={}, isolated=True, config=None)
    worker = Worker(planned.plans)
    (folder / "a.py").unlink()
    results = [worker.check(task) for task in planned.tasks]
    agree([len(result.errors) for result in results], [1, 0, 0])
    agree(results[0].errors[0].message, "cannot read: No such file or directory")
    fixed = worker.fix(planned.tasks[1], unsafe=False)
    (folder / "b.py").unlink()
    try:
        write_atomically(fixed.path, fixed.data, fixed.digest)
    except SourceError as error:
        agree(str(error), "No such file or directory")
    agree(sorted(contents(folder)), ["c.py"])
    return "named, and not made anew by its fix"


def special_files(folder: Path) -> str:
    """Name pipes and devices, and let links in the tree lead to some."""
    files(folder, "a.py")
    os.mkfifo(folder / "pipe.py")
    os.mkfifo(folder / "torchlint.txt")
    for name in ("zero", "null", "full", "tty"):
        (folder / f"{name}.py").symlink_to(f"/dev/{name}")
    named = ["/dev/zero", "pipe.py", "null.py", "full.py", "tty.py", "torchlint.txt"]
    for command in (["check", "--output-format", "concise"], ["fix", "--apply"]):
        done = torchlint(*command, ".", cwd=folder)
        agree((done.returncode, b"rror" in done.stderr), (1 if command[0] == "check" else 0, False))
        files(folder, "a.py")
        done = torchlint(*command, "a.py", *named, cwd=folder)
        told = sorted(line for line in lines(done.stderr) if line.startswith("error"))
        agree((done.returncode, told), (2, sorted(f"error: {each}: it is not a regular file" for each in named)))
    agree((folder / "a.py").read_text(), FIXED)
    return "refused by name, passed over in a tree"


def names_that_are_no_unicode(folder: Path) -> str:
    """Check and fix a file whose name is in no encoding, with every format of report."""
    folder = folder / os.fsdecode(b"\xfe")
    folder.mkdir()
    for name in FORMATS:
        files(folder, _NO_UNICODE)
        done = torchlint("check", "--output-format", name, "-o", f"report.{name}", ".", cwd=folder)
        agree((done.returncode, done.stderr), (1, b""))
        (folder / f"report.{name}").read_bytes().decode("utf-8")
        (folder / f"report.{name}").unlink()
    done = torchlint("fix", ".", cwd=folder)
    agree((done.returncode, done.stdout.count(b"\n-torch.autograd")), (1, 1))
    agree(torchlint("check", "--write-baseline", "known.json", ".", cwd=folder).returncode, 0)
    agree(torchlint("check", "--baseline", "known.json", ".", cwd=folder).returncode, 0)
    agree(torchlint("fix", "--apply", os.fsencode(_NO_UNICODE), cwd=folder).returncode, 0)
    agree((folder / _NO_UNICODE).read_text(), FIXED)
    return f"checked and fixed, in all {len(FORMATS)} formats"


def killed_worker(folder: Path) -> str:
    """Kill the process that checks a file."""
    names = [f"{letter}.py" for letter in "abcdef"]
    files(folder, *names)
    planned = make_plan([str(folder)], overrides={}, isolated=True, config=None)
    work: Work[Task, FileResult | str] = Work(
        partial(_kill_at_c, Worker(planned.plans)), size=lambda task: task.size, on_death=lambda task, code: task.path
    )
    results = run_many(work, planned.tasks, jobs=2)
    lost = [Path(result).name for result in results if isinstance(result, str)]
    found = [len(result.diagnostics) for result in results if isinstance(result, FileResult)]
    agree((lost, found), (["c.py"], [1] * 5))
    return "its file is named, the five others are checked"


def _kill_at_c(worker: Worker, task: Task) -> FileResult:
    if task.path.endswith("c.py"):
        os.kill(os.getpid(), signal.SIGKILL)
    return worker.check(task)


def little_memory(folder: Path) -> str:
    """Leave so little memory that a file cannot be parsed."""
    files(folder, "a.py", "b.py")
    files(folder, "large.py", text=SAFE + "x = [" + "f(-1.5, a + b),\n" * 100_000 + "]\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    done = torchlint("check", "-q", "--jobs", "2", "--output-format", "concise", ".", cwd=folder, prepare=limit)
    agree((done.returncode, b"Traceback" in done.stderr), (2, False))
    agree([line.partition(":")[0] for line in lines(done.stdout) if "TL601" in line], ["a.py", "b.py"])
    told = [line for line in lines(done.stderr) if line.startswith("error")]  # the native parser says more before
    agree([line.split(":")[1] for line in told], [" large.py"])
    return "with several processes: the file is named, the others are checked"


def changed_meanwhile(folder: Path) -> str:
    """Change a file between its reading and its writing."""
    files(folder, "a.py")
    planned = make_plan([str(folder)], overrides={}, isolated=True, config=None)
    fixed = Worker(planned.plans).fix(planned.tasks[0], unsafe=False)
    files(folder, "a.py", text="# mine\n" + SAFE)
    try:
        write_atomically(fixed.path, fixed.data, fixed.digest)
    except SourceError as error:
        agree(str(error), "the file changed after it was read; run again")
    agree((folder / "a.py").read_text(), "# mine\n" + SAFE)
    agree(strangers(folder), [])
    return "what was written meanwhile stays"


def endless_file(folder: Path) -> str:
    """Give a file less time than it needs."""
    files(folder, "a.py")
    files(folder, "slow.py", text=SAFE + "x = torch.zeros(3).to(device)\n" * 30_000)
    start = time.monotonic()
    done = torchlint("fix", "--apply", "--file-timeout", "3", "--unsafe-fixes", ".", cwd=folder)
    told = [line for line in lines(done.stderr) if line.startswith("error")]
    agree((done.returncode, [line.partition(" after")[0] for line in told]), (2, ["error: slow.py: given up"]))
    agree((folder / "a.py").read_text(), FIXED)
    agree((folder / "slow.py").read_text().startswith(SAFE), True)
    return f"given up after {time.monotonic() - start:.0f} s, the others are fixed"


CHEAP: dict[str, Fault] = {
    "a disk without room (by a limit)": disk_full,
    "a read-only file": read_only_file,
    "a read-only folder": read_only_folder,
    "a file and a folder without permission": unreadable,
    "a file that vanishes": vanished,
    "a file that changes meanwhile": changed_meanwhile,
    "pipes and devices": special_files,
    "names that are no Unicode": names_that_are_no_unicode,
    "a worker that is killed": killed_worker,
    "too little memory for a file": little_memory,
    "a file that takes too long": endless_file,
}
"""What is tried in every run of the tests; the name is what the table shows."""
