"""Settings: which file counts, what its keys mean, and that no mistake is silent."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from torchlint.diagnostic import Severity
from torchlint.settings import KEYS, Settings, SettingsError, SettingsFinder, load_settings, merged

EVERYTHING = """
select = ["TL1", "item-in-loop"]
extend-select = ["TL404"]
ignore = ["TL102"]
exclude = ["a"]
extend-exclude = ["b/*.py"]
force-exclude = true
respect-gitignore = false
fixable = ["ALL"]
unfixable = ["TL401"]
extend-safe-fixes = ["TL101"]
extend-unsafe-fixes = ["TL201"]
unsafe-fixes = true
target-torch = "2.1"
num-workers = 8
file-timeout = 2.5
lint-tests = true
output-format = "json"
cache-dir = "../cache"
baseline = "known.json"
fail-level = "warning"
plugins = ["mine"]
[per-file-ignores]
"tools/**" = ["TL1"]
[severity]
TL601 = "error"
"""


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def error_of(path: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(path)
    message = str(caught.value)
    assert message.startswith(path)
    assert "\n" not in message
    return message


def test_every_key_is_read(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path / "torchlint.toml", EVERYTHING))
    assert settings == Settings(
        select=("TL1", "item-in-loop"),
        extend_select=("TL404",),
        ignore=("TL102",),
        per_file_ignores={"tools/**": ("TL1",)},
        exclude=("a",),
        extend_exclude=("b/*.py",),
        force_exclude=True,
        respect_gitignore=False,
        fixable=("ALL",),
        unfixable=("TL401",),
        extend_safe_fixes=("TL101",),
        extend_unsafe_fixes=("TL201",),
        unsafe_fixes=True,
        target_torch="2.1",
        num_workers=8,
        file_timeout=2.5,
        lint_tests=True,
        severity={"TL601": Severity.ERROR},
        output_format="json",
        cache_dir="../cache",
        baseline="known.json",
        fail_level=Severity.WARNING,
        plugins=("mine",),
        root=str(tmp_path),
        origin=str(tmp_path / "torchlint.toml"),
    )
    assert all(key in EVERYTHING for key in KEYS if key != "extend")
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(pickle.loads(pickle.dumps(settings)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('selct = ["TL101"]', "unknown key `selct`; did you mean `select`?"),
        ("num_worker = 3", "did you mean `num-workers`?"),
        ("num_workers = 3", "did you mean `num-workers`?"),
        ("qqq = 1", "the keys are baseline, cache-dir, exclude"),
        ('select = "TL101"', "`select` must be a list of strings"),
        ("select = [1]", "`select` must be a list of strings"),
        ('lint-tests = "yes"', "`lint-tests` must be true or false"),
        ("num-workers = 0", "`num-workers` must be a whole number of at least 1"),
        ("num-workers = true", "`num-workers` must be a whole number"),
        ("target-torch = 2.1", '`target-torch` must be a version in quotes, as in "2.1"'),
        ("file-timeout = -1", "`file-timeout` must be a number of seconds, 0 for no limit"),
        ("file-timeout = nan", "`file-timeout` must be a number of seconds"),
        ('target-torch = "two"', "`target-torch` must be a version"),
        ('severity = {TL101 = "loud"}', "`severity` must be a table of error, warning, info"),
        ('per-file-ignores = ["TL101"]', "`per-file-ignores` must be a table"),
        ('per-file-ignores = {"a.py" = "TL101"}', "`per-file-ignores` must be a table of lists of strings, as in"),
        ('output-format = "xml"', "`output-format` must be one of full"),
        ("extend = 1", "`extend` must be the path of a file"),
        ("select = [", "not valid TOML"),
    ],
)
def test_mistakes_name_file_and_key_and_what_is_right(tmp_path: Path, text: str, words: str) -> None:
    assert words in error_of(write(tmp_path / "torchlint.toml", text))


def test_undecodable_and_missing_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_bytes(b"a = '\xff'")
    assert "not valid TOML" in error_of(str(tmp_path / "torchlint.toml"))
    assert "No such file" in error_of(str(tmp_path / "nowhere.toml"))
    assert "must be a table" in error_of(write(tmp_path / "pyproject.toml", "tool.torchlint = 1"))


def test_the_nearest_configuration_counts_alone(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.torchlint]\nnum-workers = 2\nlint-tests = true\n")
    write(tmp_path / "sub/torchlint.toml", "num-workers = 3\n")
    write(tmp_path / "sub/pyproject.toml", "[tool.torchlint]\nnum-workers = 9\n")
    write(tmp_path / "sub/deep/pyproject.toml", "[tool.other]\nname = 'torchlint'\n")
    write(tmp_path / "other/pyproject.toml", "this is [not TOML, and none of our business")
    finder = SettingsFinder()
    assert finder.for_file(str(tmp_path / "a.py")).num_workers == 2
    below = finder.for_file(str(tmp_path / "sub/deep/a.py"))
    assert (below.num_workers, below.lint_tests, below.root) == (3, False, str(tmp_path / "sub"))
    assert finder.for_folder(str(tmp_path / "other")).num_workers == 2
    assert finder.for_folder(str(tmp_path / "sub")) is finder.for_folder(str(tmp_path / "sub" / "deep"))


def test_relative_paths_are_those_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "torchlint.toml", "num-workers = 2\n")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert SettingsFinder().for_file("b.py").num_workers == 2
    assert SettingsFinder().for_folder(".").root == str(tmp_path)


def test_extend_is_the_base_of_what_is_said_here(tmp_path: Path) -> None:
    write(tmp_path / "base/pyproject.toml", '[tool.torchlint]\nnum-workers = 2\nignore = ["TL1"]\n')
    path = write(tmp_path / "torchlint.toml", 'extend = "base/pyproject.toml"\nignore = ["TL2"]\n')
    settings = load_settings(path)
    assert (settings.num_workers, settings.ignore, settings.root) == (2, ("TL2",), str(tmp_path))


def test_extend_in_a_circle_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", 'extend = "b.toml"')
    write(tmp_path / "b.toml", 'extend = "a.toml"')
    with pytest.raises(SettingsError, match="leads back"):
        load_settings(path)


def test_the_command_line_stands_above_the_configuration() -> None:
    configured = Settings(ignore=("TL1",), extend_select=("TL4",), exclude=("a",), per_file_ignores={"a": ("TL1",)})
    given = {"ignore": ("TL2",), "exclude": ("b",), "per_file_ignores": {"a": ("TL2",), "c": ("TL3",)}, "select": None}
    settings = merged(configured, given)
    assert settings.ignore == ("TL1", "TL2")
    assert settings.exclude == ("b",)
    assert settings.per_file_ignores == {"a": ("TL1", "TL2"), "c": ("TL3",)}
    assert settings.extend_select == ("TL4",)
    afresh = merged(configured, {"select": ("TL101",), "ignore": ("TL3",)})
    assert (afresh.select, afresh.extend_select, afresh.ignore) == (("TL101",), (), ("TL3",))
    with pytest.raises(SettingsError, match="command line: `target-torch` must be"):
        merged(configured, {"target_torch": "new"})


def test_one_configuration_can_hold_for_all_and_none_too(tmp_path: Path) -> None:
    write(tmp_path / "torchlint.toml", "num-workers = 2\n")
    config = write(tmp_path / "mine.toml", "num-workers = 7\n")
    inside = str(tmp_path / "a.py")
    assert SettingsFinder(config=config).for_file(inside).num_workers == 7
    assert SettingsFinder(isolated=True).for_file(inside).num_workers == 4
    assert SettingsFinder({"num_workers": 5}).for_file(inside).num_workers == 5
