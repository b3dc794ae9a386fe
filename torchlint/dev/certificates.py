"""Certificates: how many programs a search ran beside what the safe fix of a rule makes of them."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from torchlint.rule import Rule
from torchlint.safety import Safety

FILE = "tests/refute/certificates.json"
SEARCHES = "tests/refute/rules"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A search that found no program which the safe fix of a rule changes."""

    rule: str
    programs: int
    """Programs, no two alike, that run and that a safe fix rewrites."""

    tried: int
    """All programs of the search, also those that fail or in which no fix is safe."""

    places: Mapping[str, int]
    """On how many the fix was compared at each place: CPU, meta tensors, tensors that play CUDA ones."""

    seed: int
    torch: str
    digest: str
    """Of the rule and of the search, without words, as they were."""


def read(root: Path) -> dict[str, Certificate]:
    """Return the certificates of a checkout by the code of the rule."""
    path = root / FILE
    if not path.exists():
        return {}
    return {code: Certificate(code, **fields) for code, fields in json.loads(path.read_text("utf-8")).items()}


def write(root: Path, certificates: Mapping[str, Certificate]) -> None:
    """Write the certificates of a checkout."""
    fields = {code: asdict(certificates[code]) for code in sorted(certificates)}
    for each in fields.values():
        del each["rule"]
    (root / FILE).write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8", newline="\n")


def has_safe_fix(rule: Rule) -> bool:
    """Return whether a rule can call a fix safe, so that it needs a certificate."""
    return Safety.SAFE in rule.fixes


def search_path(rule: Rule) -> str:
    """Return where the search of a rule stands."""
    return f"{SEARCHES}/{rule.name.replace('-', '_')}.py"


def digest(root: Path, rule: Rule) -> str:
    """Return a digest of the code of a rule and its search; words and the modules of imported names do not count."""
    module = rule.name.replace("-", "_")
    places = (root / "torchlint" / "rules" / rule.family.value / f"{module}.py", root / search_path(rule))
    code = (_structure(_without_words(ast.parse(path.read_bytes()))) for path in places if path.exists())
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def _without_words(tree: ast.Module) -> ast.Module:
    """Return the code without docstrings, without what a rule only says, and without the modules of imported names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            node.module = None
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_said(line)]  # type: ignore[attr-defined]
    return tree


def _structure(node: object) -> str:
    """Return what ``ast.dump`` would, without empty fields: each Python has others."""
    if isinstance(node, ast.AST):
        fields = (f"{name}={_structure(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({', '.join(fields)})"
    return f"[{', '.join(map(_structure, node))}]" if isinstance(node, list) else repr(node)


def _is_said(line: ast.stmt) -> bool:
    if isinstance(line, ast.Expr):
        return isinstance(line.value, ast.Constant)
    named = isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and line.targets[0].id == "rule"
    return named and isinstance(line, ast.Assign)


def section(root: Path, rule: Rule, certificate: Certificate | None) -> str:
    """Return the part of a rule's page on the search for programs that its safe fix changes, "" if none is safe."""
    if not has_safe_fix(rule):
        return ""
    return "\n".join(("", "## What tried to refute the safe fix", "", *_sentences(root, rule, certificate), ""))


def _sentences(root: Path, rule: Rule, certificate: Certificate | None) -> Iterator[str]:
    again = f"`make refute ARGS='--rule {rule.code}'`"
    if certificate is None:
        missing = "" if (root / search_path(rule)).exists() else ", nor is there one yet: docs/writing-a-rule.md"
        yield f"Nothing: no search stands behind the word safe{missing or f'. {again} is one'}."
        return
    places = ", ".join(f"{count:,} {_WHERE.get(place, place)}" for place, count in certificate.places.items())
    count, seed, torch = f"{certificate.programs:,}", certificate.seed, certificate.torch
    yield f"Safe fixes: {count} programs, 0 differences, seed {seed}, torch {torch}."
    yield ""
    yield f"Each ran before and after its fix: {places}. {again} repeats it;"
    yield "[docs/reliability.md](../docs/reliability.md#safe-fixes) says what is compared."
    if certificate.digest != digest(root, rule):
        yield "The rule or its search has changed since then."


_WHERE = {
    "values": "on the CPU with their values",
    "meta": "on tensors without values",
    "fake-cuda": "on tensors that play CUDA ones",
    "cuda": "on a GPU",
}
