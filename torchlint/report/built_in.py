"""The pages of the findings that no rule makes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torchlint.suppress import BUILT_IN, SYNTAX_ERROR, UNUSED

_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        SYNTAX_ERROR: """\
The file cannot be parsed, so that no rule can find anything in it.

The message is that of the Python that runs torchlint: a file for a newer Python, or for Python 2, is such a one. It is
an error, which no comment and no setting silences: `exclude` leaves the file out.

A file in which `async` is a name, as it was before Python 3.7 (`x.cuda(async=True)`), is looked at all the same, but
nothing is fixed in it: write `non_blocking` first.
""",
        UNUSED: """\
A comment `# torchlint: ignore[...]` silences nothing.

Its rule is on, and finds nothing in the rows that the comment is for: what it silenced was mended, or moved away.
Remove the comment; `torchlint fix` does. A comment for a rule that is off is left alone.
""",
    }
)


def built_in_code(word: str) -> str | None:
    """Return the code of the finding with this code or name, None where no such one is built in."""
    return next((code for code, name in BUILT_IN.items() if word.lower() in (code.lower(), name)), None)


def built_in_page(code: str) -> str:
    """Return the page of the finding with this code, as Markdown."""
    return f"# {code} {BUILT_IN[code]}\n\n{_TEXTS[code]}"
