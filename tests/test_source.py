"""Bytes to text and back, positions, and writing that is all or nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchlint import source as source_module
from torchlint.diagnostic import Position
from torchlint.source import (
    LARGEST_FILE,
    SourceError,
    digest,
    read_source,
    source_from_bytes,
    source_from_text,
    write_atomically,
)

NEWLINES = st.text(st.sampled_from("ab\n\r\u2028\x0c\x85é🔥"), max_size=40)


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1", "utf-8", "x = 1"),
        (b"x\r\ny\rz\n", "utf-8", "x\r\ny\rz\n"),
        ("s = 'é'\n".encode(), "utf-8", "s = 'é'\n"),
        (b"\xef\xbb\xbfx\n", "utf-8", "x\n"),
        (b"\xef\xbb\xbf# coding: utf-8\nx\n", "utf-8", "# coding: utf-8\nx\n"),
        (b"# -*- coding: latin-1 -*-\n\xe9\n", "iso-8859-1", "# -*- coding: latin-1 -*-\né\n"),
        (
            b"#!/bin/python\n# vim: fileencoding=cp1252\n\x80\n",
            "cp1252",
            "#!/bin/python\n# vim: fileencoding=cp1252\n€\n",
        ),
        ("# coding: gbk\n中\n".encode("gbk"), "gbk", "# coding: gbk\n中\n"),
    ],
)
def test_bytes_are_decoded_as_python_does_and_given_back(data: bytes, encoding: str, text: str) -> None:
    source = source_from_bytes(data)
    assert (source.encoding, source.text) == (encoding, text)
    assert source.bom == data.startswith(b"\xef\xbb\xbf")
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x = 1\ny = '\xe9'\n", "byte 0xe9 in line 2 is not valid UTF-8"),
        (b"# coding: utf8\n" + b"#\n" * 5 + b"\xff", "byte 0xff in line 7"),
        (b"# coding: klingon\n", "unknown encoding: klingon"),
        (b"# coding: rot13\nk = 1\n", "not a text encoding"),
        (b"# coding: ascii\n\xc3\xa9\n", "ascii"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "contradicts"),
        ("x = 1".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_cannot_be_decoded_is_one_clear_line(data: bytes, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        source_from_bytes(data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_character_outside_of_the_encoding_is_refused() -> None:
    source = source_from_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    with pytest.raises(SourceError, match="cannot hold"):
        source.encode(source.text + "# 中")


def test_bytes_that_the_encoding_does_not_give_back_are_refused() -> None:
    source = source_from_bytes(b"# coding: utf-7\nx = '+AGE-'\n")
    with pytest.raises(SourceError, match="cannot be kept"):
        source.encode(source.text)


@given(st.binary(max_size=60))
def test_any_bytes_are_either_refused_or_given_back(data: bytes) -> None:
    try:
        source = source_from_bytes(data)
    except SourceError:
        return
    assert source.encode(source.text) == data


@given(NEWLINES)
def test_text_keeps_its_form(text: str) -> None:
    source = source_from_text(text)
    assert source.encode(source.text).decode() == text


def test_a_byte_order_mark_in_text_is_kept_apart() -> None:
    source = source_from_text("\ufeffx\n")
    assert (source.bom, source.text) == (True, "x\n")
    assert source.encode("y\n") == b"\xef\xbb\xbfy\n"


@given(NEWLINES)
def test_every_offset_has_its_own_position(text: str) -> None:
    source = source_from_text(text)
    for offset in range(len(source.text) + 1):
        assert source.offset(source.position(offset)) == offset


@given(NEWLINES, st.integers(-3, 60), st.integers(-3, 60))
def test_no_position_fails(text: str, row: int, column: int) -> None:
    source = source_from_text(text)
    assert 0 <= source.offset(Position(row, column)) <= len(source.text)


def test_rows_end_where_python_ends_them() -> None:
    source = source_from_text("a\r\nb\rc\nd\u2028\x0ce")
    rows = {source.text[offset]: source.position(offset).row for offset in range(len(source.text))}
    assert (rows["a"], rows["b"], rows["c"], rows["d"], rows["e"]) == (1, 2, 3, 4, 4)


def test_columns_are_code_points() -> None:
    assert source_from_text("é = '🔥'; x").position(9) == Position(1, 10)


def test_an_offset_outside_of_the_text_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="offset 3"):
        source_from_text("ab").position(3)


def write(path: Path, text: str, **options: str) -> None:
    write_atomically(str(path), text.encode(), read_source(str(path)).data_digest, **options)


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x\r\n")
    path.chmod(0o754)
    write(path, "y\r\n")
    assert path.read_bytes() == b"y\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_file_that_changed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("new")
    with pytest.raises(SourceError, match="changed after it was read"):
        write_atomically(str(path), b"fixed", digest(b"old"))
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")
    path.chmod(0o444)
    with pytest.raises(SourceError, match="read-only"):
        write(path, "y")
    assert path.read_text() == "x"


def test_a_vanished_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        write_atomically(str(tmp_path / "a.py"), b"", "")


def test_a_failure_leaves_the_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(source_module.os, "fsync", full)
    with pytest.raises(SourceError, match="No space left"):
        write(path, "y")
    assert path.read_text() == "x"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_link_within_the_tree_is_written_through_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "a.py", tmp_path / "link.py"
    real.write_text("x")
    link.symlink_to("real/a.py")
    write(link, "y")
    assert link.is_symlink()
    assert real.read_text() == "y"


def test_a_link_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    outside, link = tmp_path / "outside.py", tmp_path / "tree" / "link.py"
    outside.write_text("x")
    link.symlink_to(outside)
    for options in ({}, {"root": str(tmp_path / "tree")}):
        with pytest.raises(SourceError, match="is a link to"):
            write(link, "y", **options)
    assert outside.read_text() == "x"
    write(link, "y", root=str(tmp_path))
    assert outside.read_text() == "y"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "missing", "nul"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.py"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    name = {"device": "/dev/zero", "nul": "a\0b"}.get(kind, str(path))
    with pytest.raises(SourceError) as caught:
        read_source(name)
    assert "\n" not in str(caught.value)


def test_a_large_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(SourceError, match="larger than 2 MB"):
        read_source(str(path))
    path.write_bytes(b" " * LARGEST_FILE)
    assert len(read_source(str(path)).text) == LARGEST_FILE
