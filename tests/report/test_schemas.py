"""What services get is what their schemas ask for, whatever the files are called."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import jsonschema
import pytest

from tests.cli.conftest import SAFE, Invoke, invoke, project
from torchlint.api import check_source

__all__ = ["invoke", "project"]

SCHEMAS = Path(__file__).parent / "schemas"
DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
ODD_NAMES = ("a b/é☃.py", "a:b.py", "%41#?.py", '<script>&".py', "..hidden.py", "'new\nline'.py", "\udcff.py")


def problems(schema: str, document: object) -> list[str]:
    """Return where a document departs from a schema, formats included."""
    rules = json.loads((SCHEMAS / schema).read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(rules)
    kind.check_schema(rules)
    checker = jsonschema.FormatChecker()
    assert {"uri", "uri-reference"} <= set(checker.checkers), "rfc3986-validator is missing"
    return [
        f"{error.json_path}: {error.message}" for error in kind(rules, format_checker=checker).iter_errors(document)
    ]


@pytest.fixture
def odd(project: Path) -> Path:
    """A project with file names that break careless reports."""
    for name in ODD_NAMES:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(SAFE)
    (project / "broken.py").write_text("import torch\ndef f(:\n")
    for path in DEMO.glob("*.py"):
        (project / path.name).write_bytes(path.read_bytes())
    return project


def sarif(invoke: Invoke, *arguments: str) -> dict[str, Any]:
    """Return the valid log of a check."""
    outcome = invoke("check", "--output-format", "sarif", "--select", "ALL", *arguments)
    document: dict[str, Any] = json.loads(outcome.out)
    assert problems("sarif-2.1.0-rtm.5.json", document) == []
    return document


def test_sarif_follows_the_official_schema(odd: Path, invoke: Invoke) -> None:
    run = sarif(invoke, ".")["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert all(rule["help"]["text"] for rule in rules if not rule["id"].startswith("TL00"))
    fingerprints = Counter(result["partialFingerprints"]["torchlint/v1"] for result in run["results"])
    assert set(fingerprints.values()) == {1}
    assert {result["level"] for result in run["results"]} == {"error", "warning"}


def test_sarif_locations_lead_to_the_files(odd: Path, invoke: Invoke) -> None:
    results = sarif(invoke, ".")["runs"][0]["results"]
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    resolved = {unquote(urlsplit(urljoin("file:///root/", uri)).path, errors="surrogateescape") for uri in uris}
    names = {path.removeprefix("/root/") for path in resolved}
    assert set(ODD_NAMES) | {"broken.py", "train.py"} <= names
    assert all((odd / name).is_file() for name in names)


def test_sarif_fixes_are_the_fixes(odd: Path, invoke: Invoke) -> None:
    results = sarif(invoke, "train.py", "model.py", "data.py")["runs"][0]["results"]
    for name in ("train.py", "model.py", "data.py"):
        text = (odd / name).read_text(encoding="utf-8")
        expected = Counter(applied(text, d.fix.edits) for d in check_source(text, select=["ALL"]) if d.fix)
        changes = [
            change
            for result in results
            for fix in result.get("fixes", ())
            for change in fix["artifactChanges"]
            if change["artifactLocation"]["uri"] == name
        ]
        found = Counter(replaced(text, change["replacements"]) for change in changes)
        assert set(found) <= set(expected)
        assert found


def applied(text: str, edits: Any) -> str:
    """Return the text with the edits made."""
    for edit in reversed(edits):
        text = text[: edit.range.start] + edit.content + text[edit.range.end :]
    return text


def replaced(text: str, replacements: Any) -> str:
    """Return the text with the replacements of a SARIF fix made, as a viewer makes them."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for replacement in reversed(replacements):
        region = replacement["deletedRegion"]
        begin = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:begin] + replacement["insertedContent"]["text"] + text[end:]
    return text


def test_sarif_says_that_files_lie_outside_the_repository(project: Path, invoke: Invoke) -> None:
    (project.parent / "elsewhere.py").write_text(SAFE)
    (project / "here.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "sarif", "../elsewhere.py", "here.py")
    document = json.loads(outcome.out)
    assert problems("sarif-2.1.0-rtm.5.json", document) == []
    results = document["runs"][0]["results"]
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    assert uris == {(project.parent / "elsewhere.py").as_uri(), "here.py"}
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert os.fspath(project.parent / "elsewhere.py") in outcome.err


def test_sarif_takes_the_repository_around_for_the_bounds(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").mkdir()
    (project / "train.py").write_text(SAFE)
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    outcome = invoke("check", "--output-format", "sarif", "../train.py")
    assert (outcome.code, outcome.err) == (1, "")
    assert (project / "train.py").as_uri() in outcome.out


def test_gitlab_and_rdjson_follow_their_definitions(odd: Path, invoke: Invoke) -> None:
    for name, schema in (("gitlab", "gitlab-codequality.json"), ("rdjson", "rdjson.json")):
        outcome = invoke("check", "--output-format", name, "--select", "ALL", ".")
        document = json.loads(outcome.out)
        assert problems(schema, document) == []
        assert "TL601" in outcome.out


def test_the_schemas_refuse_what_is_wrong(invoke: Invoke, project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    log = sarif(invoke, "a.py")
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = "a b.py"
    assert problems("sarif-2.1.0-rtm.5.json", log)
    assert problems("rdjson.json", {"diagnostics": [{"message": "x", "location": {"path": "a", "range": {}}}]})
    assert problems("gitlab-codequality.json", [{"description": "x"}])


def test_junit_counts_what_it_holds(odd: Path, invoke: Invoke) -> None:
    root = ElementTree.fromstring(invoke("check", "--output-format", "junit", "--select", "ALL", ".").out)
    assert root.tag == "testsuites"
    known = {"name", "classname", "file", "line"}
    for suite in root:
        assert suite.tag == "testsuite"
        cases = list(suite)
        assert {case.tag for case in cases} == {"testcase"}
        assert all(set(case.attrib) <= known and {"name", "classname"} <= set(case.attrib) for case in cases)
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("errors") == str(len(suite.findall("testcase/error")))
    assert root.get("tests") == str(len(root.findall("testsuite/testcase")))
    assert root.get("failures") == str(len(root.findall("testsuite/testcase/failure")))
