"""Labels and categories that look like numbers: the same in every file, whatever else stands in it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from commands import answer, call

from nashlearn import persistence
from nashlearn.cli.labels import class_labels, known_labels

CODES = ("01", "1", "A1", "B1", "C1")
UINT64 = pd.Series([2**64 - 1, 1], dtype="uint64")


@pytest.mark.parametrize(
    ("entries", "classes"),
    [
        (["10", "9", "9"], [9, 10]),
        (["1.0", "2", "1"], [1, 2]),
        ([1.0, 2.0, 1.0], [1, 2]),
        (["01", "1", "01"], ["01", "1"]),
        (["true", "false", "true"], ["false", "true"]),
        (["1e5", "+1", "1"], ["+1", "1", "1e5"]),
        (["NA", "US", "NA"], ["NA", "US"]),
    ],
)
def test_labels_as_they_stand(entries, classes):
    column = pd.Series(entries)
    labels, found = class_labels(column, None, "y")
    assert found == classes and labels.tolist() == [found[found.index(one)] for one in labels.tolist()]
    for row in range(len(column)):  # alone as among others
        assert known_labels(column[[row]], found, False, "y").tolist() == [labels[row]]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (UINT64, "18446744073709551615; whole numbers as labels must fit in 64 bits"),
        (pd.Series(["1", "inf"]), "'inf'; numbers as labels must be finite"),
        (pd.Series([1.0, np.inf]), "'inf'; numbers as labels must be finite"),
        (pd.Series(["0", "1", "NA"]), "'NA' among numbers, which is no label"),
        (pd.Series(["0.5", "1"]), "2 different numbers with decimals"),
        (pd.Series(["a", "a"]), "one class only, 'a';"),
    ],
)
def test_columns_that_are_no_labels(column, said):
    with pytest.raises(ValueError, match=said):
        class_labels(column, None, "y")


def codes(folder, name, rows):
    (folder / name).write_text("code,x,y\n" + "".join(f"{code},{x},{y}\n" for code, x, y in rows))
    return folder / name


def test_a_row_is_answered_alike_in_every_file(tmp_path):
    rows = [(code, i % 3, "01" if code == "01" else "1") for i in range(8) for code in CODES]
    path = codes(tmp_path, "train.csv", rows)
    call("train", path, "-t", "y", "-o", tmp_path / "m", "--test", codes(tmp_path, "t.csv", rows[::5]))
    assert persistence.read_info(tmp_path / "m")["schema"]["columns"][0]["categories"] == list(CODES)
    whole = answer("predict", tmp_path / "m", path)["prediction"]
    assert whole == [y for _, _, y in rows]
    for start in range(5):
        part = codes(tmp_path, "part.csv", rows[start::5])
        assert answer("predict", tmp_path / "m", part)["prediction"] == whole[start::5]
        assert answer("evaluate", tmp_path / "m", part)["accuracy"] == 1.0


def test_numbers_named_as_categories_keep_their_zeros(tmp_path):
    path = codes(tmp_path, "a.csv", [("01", 1, "a"), ("1", 1, "b")] * 6)
    call("train", path, "-t", "y", "-o", tmp_path / "m", "--categorical", "code", "--order", "b,a")
    assert answer("evaluate", tmp_path / "m", path)["accuracy"] == 1.0


def test_labels_of_other_names(tmp_path):
    """Orders and costs name them as the file does."""
    path = codes(tmp_path, "a.csv", [(1, 1, "01"), (2, 2, "02")] * 6)
    call("train", path, "-t", "y", "-o", tmp_path / "m", "--loss", "absolute", "--order", "01,02")
    path = codes(tmp_path, "b.csv", [(1, 1, "true"), (2, 2, "false")] * 6)
    (tmp_path / "costs.csv").write_text(",true,false\ntrue,0,1\nfalse,2,0\n")
    call("train", path, "-t", "y", "-o", tmp_path / "m", "--loss", tmp_path / "costs.csv")
    assert set(answer("predict", tmp_path / "m", path)["prediction"]) == {"true", "false"}


def test_numbers_written_as_text(tmp_path):
    """Parquet says what is text; a column of numbers among it may be a mistake."""
    frame = pd.DataFrame({"code": ["1.5", "2.5"] * 6, "y": ["a", "b"] * 6})
    frame.to_parquet(tmp_path / "a.parquet")
    arguments = ("train", tmp_path / "a.parquet", "-t", "y", "-o", tmp_path / "m")
    said = "'code': holds numbers written as text"
    assert said in call(*arguments).stderr and said not in call(*arguments, "--categorical", "code").stderr


def test_a_decimal_comma(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1,5;a\n2,5;b\n")
    result = call("train", tmp_path / "a.csv", "-t", "y", "-o", tmp_path / "m")
    assert "column 'x': numbers such as '1,5', read as 1.5, with a decimal comma." in result.stderr
