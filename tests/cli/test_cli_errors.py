"""Expected errors: a line that says what to do, no traceback, nothing half-written."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from commands import call, columns, complaint, flowers, treebank, video

from nashlearn import NashClassifier, persistence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("errors")
    flowers().to_csv(here / "flowers.csv", index=False)
    call("train", here / "flowers.csv", "-t", "kind", "-o", here / "flowers.model")
    return here


def train_error(path, *options, out="m"):
    message = complaint("train", path, "-t", "kind", "-o", path.parent / out, *options)
    assert not (path.parent / out).exists()
    return message


def test_columns_that_are_not_there(folder):
    message = complaint("train", folder / "flowers.csv", "-t", "kynd", "-o", folder / "x")
    assert "no column 'kynd'. Did you mean 'kind'?" in message
    short = flowers().drop(columns=["height"]).rename(columns={"petals": "petal"})
    message = complaint("predict", folder / "flowers.model", "-", stdin=short.to_csv(index=False))
    assert "no columns 'height', 'petals'. Did you mean 'petal'?" in message
    message = complaint(
        "evaluate", folder / "flowers.model", "-", stdin=flowers().drop(columns="kind").to_csv(index=False)
    )
    assert "no column 'kind'" in message


def test_numbers_among_text(folder, tmp_path):
    frame = flowers().astype({"petals": object})
    frame.loc[7, "petals"] = "many"
    frame.to_csv(tmp_path / "a.csv", index=False)
    said = (
        "'petals' mixes numbers and text: row 8 (line 9 of a.csv) has 'many'. Correct it, or take it for missing (--na"
    )
    assert said in train_error(tmp_path / "a.csv")
    call("train", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "m", "--categorical", "petals")
    message = complaint("predict", folder / "flowers.model", tmp_path / "a.csv")
    assert "'petals' must hold numbers, as in training; row 8 (line 9 of a.csv) has 'many'" in message


def test_labels_that_the_model_does_not_know(folder):
    frame = flowers()
    frame.loc[3, "kind"] = "orchid"
    message = complaint("evaluate", folder / "flowers.model", "-", stdin=frame.to_csv(index=False))
    assert "'orchid'" in message and "it knows 'daisy', 'rose', 'tulip'" in message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.assign(kind=f["kind"].where(f.index > 3)), "no label in 4 rows, the first of which is row 1"),
        (lambda f: f.assign(kind="rose"), "one class only"),
        (lambda f: f.assign(kind=np.linspace(0, 1, len(f))), "no classes. Cut them into grades"),
        (lambda f: f.assign(kind=np.arange(len(f))), "no classes. Cut them into grades"),
        (lambda f: f[["kind"]], "no columns left"),
        (lambda f: f[:0], "no rows"),
        (lambda f: f.assign(height=np.inf), "infinity"),
    ],
)
def test_tables_that_cannot_be_learnt_from(change, said, tmp_path):
    change(flowers()).to_csv(tmp_path / "a.csv", index=False)
    assert said in train_error(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.parquet", b"kind,x\na,1\nb,2\n", "not a Parquet file; it is text"),
        ("a.csv", b"PAR1\0\0\0", "it is a Parquet file"),
        ("a.tsv", b"\x1f\x8b\0\0", "it is a gzip file"),
        ("a.csv", b"kind,x\na,\0\n", "binary data"),
        ("a.csv.gz", b"kind,x\na,1\n", "not a gzip file"),
        ("a.csv.gz", gzip.compress(b"kind,x\na,1\nb,2\n", mtime=0)[:-9], "damaged"),
        ("a.csv", b"kind,x\na,1\nb,2,3\n", "no table of 2 columns"),
        ("a.csv", b"kind,kind\na,1\n", "two columns called 'kind'"),
        ("a.csv", "kind,x\nä,1\n".encode("latin-1"), "not text in UTF-8"),
        ("a.arff", b"kind,x\na,1\n", "not an ARFF file"),
        ("a.arff", b"@relation a\n@attribute kind string\n@data\na\n", "attributes of text"),
        ("a.parquet", b"PAR1garbagePAR1", "damaged Parquet file"),
        ("a.xlsx", b"kind,x\na,1\n", "the name must end in .csv"),
    ],
)
def test_files_that_are_not_what_they_should_be(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert said in train_error(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_such_file(tmp_path):
    assert "no such file" in complaint("train", tmp_path / "absent.csv", "-t", "kind", "-o", tmp_path / "m")
    assert "is a folder" in complaint("train", tmp_path, "-t", "kind", "-o", tmp_path / "m")
    assert "no such file" in complaint("info", tmp_path / "absent.model")


def test_models_that_are_none(folder, tmp_path):
    content = (folder / "flowers.model").read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    assert "no complete archive" in complaint("predict", tmp_path / "cut", folder / "flowers.csv")
    assert "no saved model" in complaint("info", folder / "flowers.csv")
    assert "model for 'table'; use nashlearn predict" in complaint(
        "tag", "predict", folder / "flowers.model", "-", stdin="a b\n"
    )
    X, y = np.eye(4), [0, 1, 0, 1]
    persistence.save(NashClassifier().fit(X, y), tmp_path / "own")
    assert "use it from Python" in complaint("predict", tmp_path / "own", folder / "flowers.csv")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--loss", "zero"], "--loss must be"),
        (["--loss", "abstain:much"], "needs a number"),
        (["--ordinal", "--loss", "squared"], "--ordinal is for"),
        (["--ordinal", "--loss", "zero_one"], "--ordinal is for"),
        (["--gamma", "0.7"], "--gamma is for the kernels"),
        (["--kernel", "rbf", "--degree", "2"], "--degree is for --kernel poly"),
        (["--tune", "--folds", "500"], "--tune with --folds 500 needs at least as many rows"),
        (["--order", "daisy,rose"], "'tulip', which --order does not name"),
        (["--order", "daisy,rose,tulip,lily"], "--order names 'lily'"),
        (["--kernel", "gauss"], "--kernel must be"),
        (["--drop", "hight"], "no column 'hight'. Did you mean 'height'?"),
        (["--decision", "dice"], "decision must be one of"),
    ],
)
def test_options_that_make_no_sense(folder, options, said):
    assert said in complaint("train", folder / "flowers.csv", "-t", "kind", "-o", folder / "none", *options)
    assert not (folder / "none").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        (",daisy,rose\ndaisy,0,1\nrose,1,0\n", "has columns for 'daisy', 'rose', but the data have"),
        ("0,1\n1,0\n", "has 2 columns, but the data have 3 labels"),
        (",daisy,rose,tulip\ndaisy,0,1,x\n", "which is no number"),
        (",daisy,rose,tulip\na,0,1,1\nb,1,0,1\nc,1,1,0\n", "is square, so its rows must be the labels"),
        (",daisy,rose,tulip\ndaisy,0,1\n", "is no matrix"),
        (";daisy;rose;tulip\ndaisy;0;1;1\n", "has ';' between its columns"),
        ("x" * 140_000 + ",daisy\n", "costs.csv is no CSV file: field larger"),
        (",daisy,rose,tulip\ndaisy,0,1,-2\nrose,1,0,1\ntulip,1,1,0\n", "not negative"),
    ],
)
def test_costs_that_are_none(folder, tmp_path, content, said):
    (tmp_path / "costs.csv").write_text(content)
    arguments = ("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", "--loss", tmp_path / "costs.csv")
    limit = csv.field_size_limit(131_072)  # the default, which other libraries raise for the whole process
    try:
        assert said in complaint(*arguments)
    finally:
        csv.field_size_limit(limit)


def test_costs_in_another_encoding_are_named(tmp_path):
    (tmp_path / "costs.csv").write_bytes(",ä,b\nä,0,1\nb,1,0\n".encode("latin-1"))
    assert "costs.csv is not text in UTF-8" in complaint("explain-cost", tmp_path / "costs.csv")


def test_standard_input_is_called_that(tmp_path):
    call("tag", "train", columns(tmp_path), "-o", tmp_path / "tag")
    assert "standard input, line 2" in complaint("tag", "predict", tmp_path / "tag", "-", stdin="a b\nc\n")
    assert "standard input has 1 columns" in complaint("tag", "predict", tmp_path / "tag", "-", stdin="a\n")
    video(tmp_path, "walk")
    call("track", "train", tmp_path, "-o", tmp_path / "track")
    assert "standard input, line 1: 3 fields" in complaint("track", "predict", tmp_path / "track", "-", stdin="1,2,3\n")


def test_structured_data_that_cannot_be_read(tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    for task in ("tag", "parse"):
        assert "is empty" in complaint(task, "train", empty, "-o", tmp_path / "m")
        assert "UTF-8" in complaint(task, "train", _binary(tmp_path), "-o", tmp_path / "m")
        assert "not a gzip" in complaint(task, "train", _no_gzip(tmp_path), "-o", tmp_path / "m").lower()
    one = tmp_path / "one.txt"
    one.write_text("word\n")
    assert "has one column" in complaint("tag", "train", one, "-o", tmp_path / "m")
    one.write_text("word TAG\nword\n")
    assert "line 2" in complaint("tag", "train", one, "-o", tmp_path / "m")
    assert "CoNLL-U has 10" in complaint("parse", "train", one, "-o", tmp_path / "m")
    path = treebank(tmp_path)
    path.write_text(path.read_text().replace("\t0\troot", "\t_\troot", 1))
    assert "sentence 1 has words without a head" in complaint("parse", "train", path, "-o", tmp_path / "m")
    assert "no file or folder" in complaint("track", "train", tmp_path / "none", "-o", tmp_path / "m")
    assert "holds no videos" in complaint("track", "train", tmp_path, "-o", tmp_path / "m")
    video(tmp_path, "walk")
    assert "has no video 'run'; it has 'walk'" in complaint(
        "track", "train", tmp_path, "-v", "run", "-o", tmp_path / "m"
    )
    (tmp_path / "walk" / "det" / "det.txt").write_text("1,2,3\n")
    assert "3 fields" in complaint("track", "train", tmp_path, "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def _binary(folder):
    (folder / "binary.txt").write_bytes(b"\xff\xfe\x80 B\n")
    return folder / "binary.txt"


def _no_gzip(folder):
    (folder / "no.txt.gz").write_bytes(b"word TAG\n")
    return folder / "no.txt.gz"


def test_tags_that_the_model_does_not_know(tmp_path):
    """They count as wrong, as in CoNLL-2000, whose test part has one; the columns must be those of training."""
    path = columns(tmp_path)
    call("tag", "train", path, "-o", tmp_path / "m")
    other = path.read_text().replace("VB O", "VB B-VP", 1)
    result = call("tag", "evaluate", tmp_path / "m", "-", "--report", tmp_path / "r.html", stdin=other)
    assert "'B-VP', which training has not seen: they count as wrong" in result.stderr
    assert "has 1 columns; the model was trained on 2" in complaint(
        "tag", "predict", tmp_path / "m", "-", stdin="cat\n"
    )


def test_models_that_only_say_what_they_are(folder, tmp_path):
    model = NashClassifier().fit(np.eye(4), [0, 1, 0, 1])
    for task in ("table", "tag", "parse", "track"):
        persistence.save(model, tmp_path / "m", schema={"task": task})
        command = ["predict"] if task == "table" else [task, "predict"]
        assert "but it is not" in complaint(*command, tmp_path / "m", folder / "flowers.csv")


def test_unexpected_errors_are_not_hidden(folder, monkeypatch):
    def broken(*_, **__):
        raise TypeError("a bug")

    monkeypatch.setattr("nashlearn.datasets.read_table", broken)
    with pytest.raises(TypeError, match="a bug"):
        raise call("train", folder / "flowers.csv", "-t", "kind", "-o", folder / "none", code=1).exception


def test_a_warning_where_training_stops_early(folder, tmp_path):
    arguments = (
        "train",
        folder / "flowers.csv",
        "-t",
        "kind",
        "-o",
        tmp_path / "m",
        "--tol",
        "1e-13",
        "--max-iter",
        "1",
    )
    result = call(*arguments)
    assert "warning: Training stopped after 1 iterations" in result.stderr
    assert any(line.split() == ["converged", "no"] for line in result.stdout.splitlines())


@pytest.mark.parametrize("value", ["0", "-1", "nan", "much"])
def test_what_must_be_positive_is_refused_at_0(folder, value):
    result = call("train", folder / "flowers.csv", "-t", "kind", "-o", folder / "x", "--alpha", value, code=2)
    assert "must be a number above 0" in result.stderr


def test_losses_are_suggested(folder):
    message = complaint("train", folder / "flowers.csv", "-t", "kind", "-o", folder / "x", "--loss", "zero-one")
    assert "'zero-one' is none of these. Did you mean 'zero_one'?" in message
