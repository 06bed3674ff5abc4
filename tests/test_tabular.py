"""Pipelines of tables: what is learnt from columns of every kind, in place or not."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from sklearn.base import clone

from nashlearn import NashClassifier, tabular

pd = pytest.importorskip("pandas")


def frame(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"a": rng.normal(3.0, 2.0, size=n), "b": rng.normal(size=n), "c": rng.choice(["x", "y"], size=n)}
    )


def labels(X):
    return np.where(X["a"] + 2 * (X["c"] == "x") > 4, 1, 0)


def test_kinds():
    X = frame().assign(d=None, e=True, f=1, g=[None, True] * 25)
    kinds = tabular.column_kinds(X, categorical=["f"])
    assert kinds == {"a": "number", "b": "number", "c": "category", "e": "number", "f": "category", "g": "category"}
    with pytest.raises(ValueError, match="no column 'z'"):
        tabular.column_kinds(X, categorical=["z"])
    with pytest.raises(ValueError, match="All columns are empty"):
        tabular.column_kinds(X[["d"]])


def test_missing_numbers_are_the_mean_and_strange_categories_none():
    X = frame()
    model = tabular.fit_table(tabular.table_pipeline(NashClassifier(alpha=1e-2), X), X, labels(X))
    mean = X["a"].mean()
    gaps = X.assign(a=np.nan)
    np.testing.assert_allclose(model.decision_function(gaps), model.decision_function(X.assign(a=mean)))
    strange, missing = (model[:-1].transform(X.assign(c=entry)) for entry in ("zebra", None))
    assert np.abs(np.asarray(strange)[:, 2:]).max() == 0.0
    np.testing.assert_array_equal(strange, missing)  # no gap in training: a gap is as strange as a zebra


def test_text_is_the_same_however_numbers_are_written():
    """A column of categories 1 and 2 with a gap is read as floats."""
    X = pd.DataFrame({"a": [1, 2, 1, 2], "b": [0.1, 0.2, 0.3, 0.4]})
    model = tabular.table_pipeline(NashClassifier(alpha=0.1), X, categorical=["a"]).fit(X, [0, 1, 0, 1])
    floats = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.1, 0.2, 0.3]})
    assert model.predict(floats)[:2].tolist() == [0, 1]
    assert tabular.table_schema(model)["columns"][0]["categories"] == ["1", "2"]


def test_in_place_gives_the_same_model():
    X = frame()[["a", "b"]].copy()
    X.loc[3, "a"] = np.nan
    y = labels(frame())
    first = tabular.table_pipeline(NashClassifier(alpha=1e-2, random_state=0), X)
    second = clone(first)
    new = frame(seed=1)[["b", "a"]]
    tabular.fit_table(first, X, y)
    expected = first.decision_function(new)
    tabular.fit_table(second, X.copy(), y, in_place=True)
    np.testing.assert_allclose(second.decision_function(new), expected, rtol=1e-6)


def test_prediction_leaves_the_frame_alone():
    X = pd.DataFrame(frame()[["a", "b"]].to_numpy(), columns=["a", "b"])
    model = tabular.fit_table(tabular.table_pipeline(NashClassifier(), X), X.copy(), labels(frame()), in_place=True)
    before = X.copy()
    model.predict(X)
    pd.testing.assert_frame_equal(X, before)


@pytest.mark.parametrize("empty", [slice(0, 25), slice(15, 35), slice(30, 50)])
def test_in_place_with_batches_that_have_no_entry_of_a_column(empty, monkeypatch):
    """As when a sensor was mounted late: the batches of rows are scaled as the whole is."""
    monkeypatch.setattr(tabular.pipeline, "_ROWS", 10)
    X, y = frame()[["a", "b"]], labels(frame())
    X.loc[X.index[empty], "b"] = np.nan
    first = tabular.table_pipeline(NashClassifier(alpha=1e-2, random_state=0), X)
    second = tabular.fit_table(clone(first), X.copy(), y, in_place=True)
    tabular.fit_table(first, X, y)
    np.testing.assert_allclose(second[:-1].transform(X), first[:-1].transform(X))
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), rtol=1e-6)


def test_decimals_are_numbers():
    X = pd.DataFrame({"a": [Decimal("1.5"), None, Decimal("2")], "b": [10**30, 1, 2], "c": ["1", "2", "3"]})
    kinds = tabular.column_kinds(X)
    assert kinds == {"a": "number", "b": "number", "c": "category"}  # text stays text: a nominal attribute, say
    np.testing.assert_array_equal(tabular.TableColumns({"a": "number"}).transform(X)[:, 0], [1.5, np.nan, 2.0])


def test_decimal_commas():
    X = pd.DataFrame({"a": ["1,5", "2", None, "-0,3"], "b": ["x, y", "1,5", "2,5", "3,5"]})
    assert tabular.column_kinds(X) == {"a": "number", "b": "category"}
    assert tabular.column_kinds(X, categorical=["a"]) == {"a": "category", "b": "category"}
    guess = tabular.guess_columns(X)["a"]
    assert "decimal comma" in guess.said and guess.style.parse(["1,5", "-0,3"]).tolist() == [1.5, -0.3]


def test_text_that_looks_like_numbers():
    """What an entry means is the same in every file: 3.0 as pandas writes it, truth values as it reads them."""
    entries = ["01", "1", "1.0", "1.10", "-2.0", "true", True, 3.0, "x"]
    X = pd.DataFrame({"a": pd.Series(entries, dtype=object)})
    found = tabular.TableColumns({"a": "category"}).transform(X)["a"].tolist()
    assert found == ["01", "1", "1", "1.10", "-2", "True", "True", "3", "x"]
