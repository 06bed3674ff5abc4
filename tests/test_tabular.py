"""Pipelines of tables: what is learnt from columns of every kind, in place or not."""

from __future__ import annotations

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
