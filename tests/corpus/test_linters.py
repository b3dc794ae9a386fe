"""How the codes of other linters are found in their files."""

from __future__ import annotations

from pathlib import Path

from tests.corpus.linters import RELEASES, Release, codes, differences
from torchlint.maps import LINTERS

BY_LINTER = {release.linter: release for release in RELEASES}


def found(release: Release, folder: Path, name: str, text: str) -> set[str]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return codes(release, folder, [path])


def test_codes_are_found_where_they_are_defined(tmp_path: Path) -> None:
    assert found(BY_LINTER["torchfix"], tmp_path, "torchfix/visitors/a.py", 'E = ["TOR101"]  # TOR999') == {"TOR101"}
    checker = 'msgs = {\n    "W5516": (\n        "message",\n    )\n}\n'
    assert found(BY_LINTER["dslinter"], tmp_path, "dslinter/checkers/forward_pytorch.py", checker) == {"W5516"}
    assert found(BY_LINTER["dslinter"], tmp_path, "dslinter/checkers/nan_numpy.py", checker) == set()
    plugin = '@test.test_id("B614")\ndef pytorch_load(context): ...\n'
    assert found(BY_LINTER["bandit"], tmp_path, "bandit/plugins/pytorch_load.py", plugin) == {"B614"}


def test_differences_are_named() -> None:
    bandit = BY_LINTER["bandit"]
    assert not list(differences(bandit, {"B614"}))
    assert list(differences(bandit, {"B999"})) == [
        "bandit==1.9.4: B999 is not in the table",
        "bandit==1.9.4 has no B614",
    ]


def test_what_came_after_a_release_is_in_the_table() -> None:
    assert all(release.later <= set(LINTERS[release.linter].codes) for release in RELEASES)
