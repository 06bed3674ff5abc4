"""Every reader, given anything: what it returns is sound, or a ValueError names the file and what is wrong with it."""

from __future__ import annotations

import csv
import gzip
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nashlearn.datasets import parse_conllu, read_columns, read_conllu, read_mot, write_conllu, write_mot
from nashlearn.datasets.tables import _labels, _numbers, _read

# Pieces of which files are made, so that many are nearly right.
PIECES = {
    "conllu": [
        "1",
        "2",
        "1-2",
        "2.1",
        "_",
        "0",
        "\t",
        "\n",
        "\n\n",
        "# text = a",
        "root",
        "²",
        "9" * 5000,
        "\r",
        "\ufeff",
    ],
    "columns": ["word", " ", "\t", "\n", "\n\n", "B-NP", "\u00a0", "\x00", "\r\n"],
    "mot": ["1", "-1", "2.5", "1e300", "1e400", "nan", ",", "\n", ",10,20,30,40,1\n", "1_0", "\x0c", "٣", " "],
    "table": ["a", "1", "2.5", ",", '"', "\n", "\r", "nan", "1e400", "9" * 40, "a,b,y\n", "\x00", "1,2,3\n", "é"],
}
READERS = {"conllu": read_conllu, "columns": read_columns, "mot": read_mot, "table": _read}


def contents(kind):
    pieces = st.lists(st.sampled_from(PIECES[kind]), max_size=40).map(lambda parts: "".join(parts).encode())
    rows = st.lists(
        st.lists(st.sampled_from(PIECES["conllu"]), min_size=10, max_size=10).map("\t".join), max_size=5
    ).map(lambda lines: "\n".join(lines).encode())
    return st.one_of(pieces, st.binary(max_size=60), *([rows] if kind == "conllu" else []))


def refused(path, read):
    """What a reader gives, or None where it refuses as it should."""
    try:
        return read(path)
    except ValueError as error:
        assert str(path) in str(error)
        assert len(str(error)) > len(str(path)) + 8
        return None


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_anything(kind, zipped, data, tmp_path_factory):
    content = data.draw(contents(kind))
    if zipped:
        content = gzip.compress(content, mtime=0)
        if data.draw(st.booleans(), label="damaged"):
            place = data.draw(st.integers(0, len(content) - 1))
            content = content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
    path = tmp_path_factory.getbasetemp() / ("file.gz" if zipped else "file")
    path.write_bytes(content)
    found = refused(path, READERS[kind])
    if found is None:
        return
    copy = path.with_name("copy")
    if kind == "conllu":
        write_conllu(found, copy)
        assert [s.rows for s in read_conllu(copy)] == [s.rows for s in found]
        assert all(((s.heads >= -1) & (s.heads <= len(s))).all() for s in found)
    elif kind == "columns":
        assert len({len(token) for sentence in found for token in sentence}) <= 1
    elif kind == "mot":
        write_mot(copy, found)
        again = read_mot(copy)
        assert np.array_equal(again.box, found.box)
        assert np.array_equal(again.id, found.id)
    else:
        header, columns, _ = found
        assert len(header) == len(columns)
        data = refused(path, lambda path: _numbers(header, columns, path))
        assert data is None or np.isfinite(data).all()
        assert _labels(columns[-1]).dtype.kind in "iU"


WRONG = {
    "a head in other digits": (read_conllu, "1\ta\t_\t_\t_\t_\t²\t_\t_\t_\n", "line 1: the head '²' is no number"),
    "an endless identifier": (read_conllu, "9" * 5000 + "\ta" + "\t_" * 8 + "\n", "line 1: '9999"),
    "bytes in the third line": (read_columns, b"a b\nc d\n\xff e\n", "line 3: not a text file in UTF-8"),
    "a frame beyond all videos": (read_mot, "1e15,1,0,0,5,5,1\n", "line 1: frames are integers from 1 to 10000000"),
    "an identity beyond all numbers": (read_mot, "1,1e300,0,0,5,5,1\n", "line 1: ids are integers from 0 to"),
    "a row of two fields": (_read, "a,b,y\n1,2,3\n1,2\n", "line 3: 2 fields; the header has 3"),
    "a field without end": (_read, 'a,b\n"' + "x" * 200_000, "line 2: field larger than field limit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_line(name, tmp_path):
    read, text, message = WRONG[name]
    path = tmp_path / "file"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    limit = csv.field_size_limit(131_072)  # the default, which other libraries raise for the whole process
    try:
        with pytest.raises(ValueError, match=re.escape(str(path)) + ", " + re.escape(message)):
            read(path)
    finally:
        csv.field_size_limit(limit)


def test_a_long_sentence_is_read_in_linear_time():
    """A reader that counted the words above each line anew would look at two billion of them here."""
    lines = [f"{i}\ta\t_\t_\t_\t_\t{i - 1}\t_\t_\t_\n" for i in range(1, 60_001)]
    (sentence,) = parse_conllu(lines)
    assert len(sentence) == 60_000


def test_a_mark_of_byte_order_is_no_part_of_a_file(tmp_path):
    (tmp_path / "f").write_bytes("\ufeffa b\n".encode())
    assert read_columns(tmp_path / "f") == [[["a", "b"]]]
