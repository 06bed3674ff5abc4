"""Tables of one's own: what is read from every format, and in how much memory."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest

from nashlearn.datasets import files, read_table

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

FRAME = pd.DataFrame({"a": [1.5, None, 3.0], "b": ["x", None, "z"], "c": [1, 2, 3], "y": ["u", "v", "u"]})


def written(folder, ending):
    path = folder / f"table.{ending}"
    if ending == "parquet":
        FRAME.to_parquet(path)
    elif ending == "arff":
        attributes = "@attribute a real\n@attribute b {x,z}\n@attribute c integer\n@attribute y {u,v}\n"
        path.write_text(f"% a comment\n@relation t\n{attributes}@data\n1.5,x,1,u\n?,?,2,v\n3,z,3,u\n")
    else:
        FRAME.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arff"])
def test_formats(ending, tmp_path):
    path = written(tmp_path, ending)
    features, target = read_table(path, target="y", drop=["c"])
    assert list(features.columns) == ["a", "b"] and target.tolist() == ["u", "v", "u"]
    np.testing.assert_array_equal(features["a"].to_numpy(float), [1.5, np.nan, 3.0])
    assert features["b"].isna().tolist() == [False, True, False] and features["b"].tolist()[::2] == ["x", "z"]
    assert read_table(path).target is None
    if ending != "parquet":
        zipped = tmp_path / f"zipped.{ending}.gz"
        zipped.write_bytes(gzip.compress(path.read_bytes()))
        pd.testing.assert_frame_equal(read_table(zipped).features, read_table(path).features)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_spaces_and_marks(separator, tmp_path, monkeypatch):
    """As spreadsheets of all countries write them, with a byte order mark, from standard input."""
    lines = [["a b", "y"], ["1", "u"], ["?", "v"], ["3", "w"]]
    text = "\ufeff" + "\r\n".join(f"{separator} ".join(line) for line in lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    features, target = read_table("-", target="y")
    np.testing.assert_array_equal(features["a b"], [1.0, np.nan, 3.0])
    assert target.tolist() == ["u", "v", "w"]


def test_quotes(tmp_path):
    (tmp_path / "a.csv").write_text('"a, b",y\n"x, ""1""",u\n"w\nz",v\n')
    assert read_table(tmp_path / "a.csv", target="y").features["a, b"].tolist() == ['x, "1"', "w\nz"]


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("group", [7, 1000])
def test_numbers_of_parquet_are_one_array(kind, group, tmp_path):
    """In whatever groups of rows they come; float32 stays."""
    X = np.random.default_rng(0).integers(9, size=(100, 3)).astype(kind)
    pd.DataFrame(X, columns=list("abc")).assign(y=np.arange(100) % 2).to_parquet(
        tmp_path / "t.parquet", row_group_size=group
    )
    features, target = read_table(tmp_path / "t.parquet", target="y")
    values = features.to_numpy()
    assert values.flags.c_contiguous and values.dtype == ("float32" if kind == "float32" else "float64")
    np.testing.assert_array_equal(values, X)
    assert target.tolist() == [0, 1] * 50


def test_gaps_in_integers_of_parquet(tmp_path):
    pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "y": [0, 1, 0]}).to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet", target="y").features["a"], [1.0, np.nan, 3.0])


def test_an_unknown_format():
    with pytest.raises(ValueError, match="format must be one of csv, tsv, parquet, arff"):
        read_table("a.csv", format="json")


def test_text_as_it_stands(tmp_path):
    """The column of labels, and those named: what an entry is does not hang on the others of its file."""
    (tmp_path / "a.csv").write_text("code,x,y\n01,01,true\nNA,2,NA\n1,?,01\n")
    features, target = read_table(tmp_path / "a.csv", target="y", text=["code", "absent"])
    assert features["code"].tolist()[::2] == ["01", "1"] and features["code"].isna().tolist() == [False, True, False]
    np.testing.assert_array_equal(features["x"], [1.0, 2.0, np.nan])
    assert target.tolist() == ["true", "NA", "01"]
    for entries, found in (("10 9 -1", [10, 9, -1]), ("1 01 2", ["1", "01", "2"]), ("1.0 2 3", ["1.0", "2", "3"])):
        (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"1,{entry}\n" for entry in entries.split()))
        assert read_table(tmp_path / "a.csv", target="y").target.tolist() == found
    (tmp_path / "a.csv").write_text("x,y\n1,?\n2,\n3,u\n")
    assert read_table(tmp_path / "a.csv", target="y").target.isna().tolist() == [True, True, False]


def test_the_marks_of_missing_entries_are_those_of_pandas():
    from pandas.io.parsers.readers import STR_NA_VALUES

    assert set(files._MISSING) == {*STR_NA_VALUES, "?"}


def test_one_column_with_a_gap(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n\n3\n")
    np.testing.assert_array_equal(read_table(tmp_path / "a.csv").features["x"], [1.0, np.nan, 3.0])


def test_blank_lines_above_the_header(tmp_path):
    (tmp_path / "a.csv").write_text("\n  \nx,y\n1,2\n")
    assert read_table(tmp_path / "a.csv").features.columns.tolist() == ["x", "y"]


def test_what_is_no_table(tmp_path):
    (tmp_path / "a.csv").write_text("x" * 200_000 + ",y\n1,2\n")
    limit = csv.field_size_limit(131_072)  # the default, which other libraries raise for the whole process
    try:
        with pytest.raises(ValueError, match=r"a\.csv has no header of columns in its first line"):
            read_table(tmp_path / "a.csv")
    finally:
        csv.field_size_limit(limit)
    (tmp_path / "a.arff").write_text("@relation r\n@data\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.arff has no attributes"):
        read_table(tmp_path / "a.arff")


@pytest.mark.parametrize("other", [[1.5, 2.5, 3.5], ["u", "v", "w"]])
@pytest.mark.parametrize("name", [None, "number"])
def test_the_index_of_a_data_frame_is_no_feature(name, other, tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": other, "y": [0, 1, 0]}, index=pd.Index([7, 8, 9], name=name))
    frame.to_parquet(tmp_path / "t.parquet")
    features, target = read_table(tmp_path / "t.parquet", target="y")
    assert features.columns.tolist() == ["a", "b"] and target.tolist() == [0, 1, 0]
    if name is not None:
        assert read_table(tmp_path / "t.parquet", target=name).target.tolist() == [7, 8, 9]


def test_nested_columns_of_parquet(tmp_path):
    pd.DataFrame({"a": [[1], [2]], "b": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="the column 'a' holds lists or records; drop it"):
        read_table(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", drop=["a"]).features.columns.tolist() == ["b"]
