"""git asked questions, in a way that runs nothing which the repository brings along."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

_SAFE = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.quotePath=false",
    "diff.relative=false",
    "protocol.allow=never",
)
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",  # the index is not refreshed, so that no hook hears of it
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_DROPPED = ("GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS")


class GitError(Exception):
    """git cannot answer; the message says in one line why."""


@dataclass(frozen=True, slots=True)
class Git:
    """git in one folder."""

    program: str
    folder: str
    settings: tuple[str, ...] = ()
    """Options of the form ``key=value``."""

    def ask(self, *arguments: str) -> bytes:
        """Return what git prints.

        Raises:
            GitError: git fails; the message is its first line.
        """
        options = [word for setting in (*_SAFE, *self.settings) for word in ("-c", setting)]
        environment = {name: value for name, value in os.environ.items() if name not in _DROPPED} | _ENVIRONMENT
        try:
            done = subprocess.run(
                [self.program, "--no-pager", *options, *arguments],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise GitError(f"git does not run: {error.strerror or error}") from error
        if done.returncode:
            raise GitError(_complaint(done.stderr.decode(errors="replace")) or f"git ended with {done.returncode}")
        return done.stdout

    def answers(self, *arguments: str) -> bool:
        """Return whether git succeeds."""
        try:
            self.ask(*arguments)
        except GitError:
            return False
        return True

    def without_filters(self) -> Git:
        """Return this git with all programs switched off that would rewrite files before they are compared.

        Raises:
            GitError: one of them has a name that cannot be given on the command line.
        """
        pattern = r"^filter\..*\.(clean|smudge|process|required)$"
        try:
            names = self.ask("config", "--null", "--name-only", "--get-regexp", pattern)
        except GitError:
            return self  # there are none
        settings = []
        for name in sorted({os.fsdecode(name) for name in names.split(b"\0") if name}):
            if "=" in name:
                raise GitError(f"the filter {name!r} cannot be switched off")
            settings.append(f"{name}={'false' if name.endswith('.required') else ''}")
        return Git(self.program, self.folder, (*self.settings, *settings))


def _complaint(text: str) -> str:
    """Return the first line that says what is wrong, without the warnings before it."""
    lines = [line for line in text.splitlines() if line.strip()]
    wrong = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0] if lines else "")
    return wrong.removeprefix("fatal: ").removeprefix("error: ")


def find_git(folder: str) -> Git:
    """Return git for questions about a folder.

    Raises:
        GitError: it is not installed.
    """
    program = shutil.which("git")
    # Windows looks for programs in the current folder first: what lies there is the project's, not the user's.
    if program is None or not os.path.isabs(program) or os.path.dirname(program) == os.getcwd():
        raise GitError("git is not installed, or not on the PATH")
    return Git(program, folder)
