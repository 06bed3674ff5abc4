"""Loaders: what the papers' tables say about each set, and clear errors where files are absent or broken."""

import gzip
import struct

import numpy as np
import pytest

from nashlearn.datasets import (
    data_home,
    load_mnist,
    load_multiclass,
    load_ordinal,
    multiclass_names,
    ordinal_names,
)

# rows, features, classes present
MULTICLASS = {
    "iris": (150, 4, 3),
    "glass": (214, 9, 6),
    "redwine": (1599, 11, 6),
    "ecoli": (336, 7, 8),
    "vehicle": (846, 18, 4),
    "segment": (2310, 19, 7),
    "sat": (6435, 36, 6),
    "optdigits": (5620, 64, 10),
    "pageblocks": (5473, 10, 5),
    "libras": (360, 90, 15),
    "vertebral": (310, 6, 3),
    "breasttissue": (106, 9, 6),
}
ORDINAL = {
    "diabetes": (43, 2, 5),
    "pyrimidines": (74, 27, 5),
    "triazines": (186, 60, 5),
    "wisconsin": (194, 32, 5),
    "machinecpu": (209, 6, 10),
    "autompg": (392, 7, 10),
    "boston": (506, 13, 5),
    "stocks": (950, 9, 5),
    "abalone": (4177, 10, 10),
    "bank": (8192, 8, 10),
    "computer": (8192, 21, 10),
    "calhousing": (20640, 8, 10),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder of data."""
    for room in ("multiclass", "ordinal", "mnist"):
        (tmp_path / room).mkdir()
    monkeypatch.setenv("NASHLEARN_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.data
@pytest.mark.parametrize("name", multiclass_names())
def test_multiclass_is_as_published(name):
    bunch = load_multiclass(name)
    assert (*bunch.data.shape, np.unique(bunch.target).size) == MULTICLASS[name]
    assert len(bunch.target) == len(bunch.data)
    assert len(bunch.feature_names) == bunch.data.shape[1]


@pytest.mark.data
@pytest.mark.parametrize("name", ordinal_names())
def test_ordinal_is_as_published(name):
    bunch = load_ordinal(name)
    assert (*bunch.data.shape, bunch.target.max()) == ORDINAL[name]
    assert bunch.target.min() == 1
    assert len(bunch.target) == len(bunch.data)


@pytest.mark.data
def test_published_splits_are_partitions():
    for bunch, sizes in ((load_multiclass("glass"), (149, 65)), (load_ordinal("diabetes"), (30, 13))):
        assert len(bunch.splits) == 20
        for train, test in bunch.splits:
            assert (len(train), len(test)) == sizes
            assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(bunch.data)))


@pytest.mark.data
def test_published_training_files_come_first():
    assert (load_multiclass("sat").n_train, load_multiclass("optdigits").n_train) == (4435, 3823)


@pytest.mark.data
def test_small_sets_are_cut_by_length_and_large_ones_by_frequency():
    counts = np.bincount(load_ordinal("bank").target)[1:]
    assert counts.max() - counts.min() <= 1
    assert np.array_equal(load_ordinal("stocks").target, load_ordinal("stocks", "y_eqlen").target)
    assert not np.array_equal(load_ordinal("stocks").target, load_ordinal("stocks", "y_eqfreq").target)


@pytest.mark.data
def test_mnist():
    digits = load_mnist(50)
    assert digits.data.shape == (50, 784)
    assert digits.data.dtype == np.float32
    assert digits.data.min() == 0.0 and digits.data.max() == 1.0
    assert digits.target[:5].tolist() == [5, 0, 4, 1, 9]
    assert load_mnist(1, part="test").target.tolist() == [7]


def test_absent_home_names_both_places(monkeypatch, tmp_path):
    monkeypatch.setenv("NASHLEARN_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match=r"(?s)nowhere.*NASHLEARN_DATA.*nashlearn"):
        load_multiclass("iris")
    monkeypatch.delenv("NASHLEARN_DATA")
    with pytest.raises(FileNotFoundError, match="NASHLEARN_DATA is not set"):
        data_home()


def test_unknown_names_and_absent_files(home):
    with pytest.raises(ValueError, match="No multiclass set is called 'irisis'; choose from iris"):
        load_multiclass("irisis")
    with pytest.raises(ValueError, match="No ordinal set is called 'iris'; choose from diabetes"):
        load_ordinal("iris")
    with pytest.raises(FileNotFoundError, match=r"iris\.csv"):
        load_multiclass("iris")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one row"),
        ("a,b,y\n", "at least one row"),
        ("a,b,y\n1,2,u\n1,v\n", "line 3: 2 fields; the header has 3"),
        ("a,b,y\n1,two,u\n", "column 'b'.*two"),
        ("a,b,y\n1,nan,u\n", "finite"),
    ],
)
def test_broken_tables(home, text, message):
    (home / "multiclass" / "iris.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_multiclass("iris")


def test_labels_must_fit_the_rows(home):
    (home / "ordinal" / "stocks.csv").write_text("a,target,y\n1,0.5,1\n2,0.7,2\n")
    (home / "ordinal" / "stocks.labels.csv").write_text("y_eqlen,y_paper\n1,1\n")
    with pytest.raises(ValueError, match="1 labels for 2 rows"):
        load_ordinal("stocks")
    with pytest.raises(ValueError, match=r"one of \['y_eqlen', 'y_paper'\]"):
        load_ordinal("stocks", "y_other")


def test_own_files_are_read(home):
    (home / "multiclass" / "glass.csv").write_text("a,y\n9,u\n")
    (home / "multiclass" / "glass.paper.csv").write_text("a,y\n1,1\n2,2\n3,1\n")
    (home / "multiclass" / "glass.paper.splits.csv").write_text('split,part,rows0\n0,train,"2,0"\n0,test,1\n')
    bunch = load_multiclass("glass")
    assert bunch.data.ravel().tolist() == [1.0, 2.0, 3.0]
    assert [part.tolist() for part in bunch.splits[0]] == [[2, 0], [1]]


def test_broken_mnist(home):
    images, labels = (home / "mnist" / f"train-{what}-ubyte.gz" for what in ("images-idx3", "labels-idx1"))
    images.write_bytes(b"not gzip")
    with pytest.raises(ValueError, match="not a gzipped idx file"):
        load_mnist()
    images.write_bytes(gzip.compress(struct.pack(">HBBIII", 0, 8, 3, 2, 1, 1) + b"\x01"))
    with pytest.raises(ValueError, match="not a complete idx file"):
        load_mnist()
    images.write_bytes(gzip.compress(struct.pack(">HBBIII", 0, 8, 3, 2, 1, 1) + b"\x00\xff"))
    labels.write_bytes(gzip.compress(struct.pack(">HBBI", 0, 8, 1, 2) + b"\x03\x04"))
    assert load_mnist().data.tolist() == [[0.0], [1.0]]
    with pytest.raises(ValueError, match="between 1 and 2; got 3"):
        load_mnist(3)
    with pytest.raises(ValueError, match="part must be"):
        load_mnist(part="validation")
