"""Pipelines of tables: what is learnt from columns of every kind, in place or not."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import nashlearn
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


entries = st.one_of(
    st.none(),
    st.sampled_from(["$1,200", "3,5", "12 kg", "45 %", "2020-01-31", "01/02/2021", "unknown", "", "7", "1.5", "red"]),
    st.text(max_size=8),
)
cells = st.lists(st.tuples(entries, entries), min_size=1, max_size=12)


@settings(max_examples=60)
@given(cells, st.sampled_from([(), ("red", "7")]))
def test_what_was_guessed_is_read_row_by_row(rows, na):
    """Whatever a table holds: it is refused, or every row is read, and alone as among the others."""
    X = pd.DataFrame(rows, columns=["a", "b"], dtype=object)
    try:
        guesses = tabular.guess_columns(X, na=na)
    except ValueError:
        return
    columns = tabular.pipeline_of(NashClassifier(), guesses, na)["columns"]
    whole = pd.DataFrame(columns.transform(X))
    alone = pd.concat([pd.DataFrame(columns.transform(X.iloc[[i]])) for i in range(len(X))], ignore_index=True)
    pd.testing.assert_frame_equal(whole.reset_index(drop=True), alone, check_dtype=False)


@settings(max_examples=40)
@given(
    st.sampled_from(["$5", "9 kg", "8 %", "1,5", "2020-01-31", "x", "4"]),
    st.lists(st.sampled_from(["number", "category", "date", "text", "id", "drop"]), min_size=1, max_size=1),
)
def test_one_word_overrules_every_guess(entry, kind):
    X = pd.DataFrame({"a": [entry] * 30, "b": range(30)})
    try:
        found = tabular.guess_columns(X, kinds={"a": kind[0]})["a"]
    except tabular.RowError as error:
        assert kind[0] in ("number", "date") and error.row == 1  # the entry is none
    else:
        assert found.kind == kind[0] and found.said == ""


@given(st.permutations(range(60)))
def test_names_of_rows_do_not_reach_the_model(order):
    X = frame(60).assign(customer_id=order, key=[f"k{i:03d}" for i in order])
    with pytest.warns(UserWarning, match="names? rows: left out|names rows, as"):
        columns = tabular.table_pipeline(NashClassifier(), X)["columns"]
    assert set(columns.made()) == {"a", "b", "c"}
    np.testing.assert_array_equal(columns.transform(X), columns.transform(X.assign(customer_id=0, key="k")))


def test_names_of_rows_can_be_kept():
    X = frame(60).assign(customer_id=range(60))
    assert tabular.column_kinds(X, kinds={"customer_id": "number"})["customer_id"] == "number"
    assert tabular.guess_columns(X.rename(columns={"customer_id": "age"}))["age"].overrule == "id"  # said, and kept
    few = X[:10]  # too few rows to tell
    assert tabular.column_kinds(few)["customer_id"] == "number"
    with pytest.raises(ValueError, match=r"All columns are left out \('customer_id' as names of rows\)"):
        tabular.column_kinds(X[["customer_id"]])


@pytest.mark.parametrize("name", ["paid", "grid", "fluid acid", "solid", "width", "Covid", "monkey", "piano"])
def test_other_names_are_no_names_of_rows(name):
    assert tabular.column_kinds(pd.DataFrame({name: np.arange(60) * 7, "x": 0.5})) == {name: "number", "x": "number"}


@pytest.mark.parametrize("name", ["id", "ID", "PassengerId", "customer_id", "order no", "Unnamed: 0", "row", "userID"])
def test_names_of_names_of_rows(name):
    assert tabular.column_kinds(pd.DataFrame({name: np.arange(60) * 7, "x": 0.5})) == {"x": "number"}


def test_the_table_decides_where_a_column_does_not_tell():
    """A file is written in one style: with a decimal comma in one column, 1,234 is a decimal in another."""
    X = pd.DataFrame({"a": ["1,234", "5,678"], "b": ["1,5", "2,25"], "c": ["7 kg", "8 kg"], "d": [1, 2]})
    guesses = tabular.guess_columns(X)
    assert {guess.style.decimal for guess in guesses.values()} == {","} and guesses["a"].overrule == "decimal-point"
    assert guesses["a"].style.parse(["1,234"])[0] == 1.234 and guesses["c"].style.parse(["7,5 kg"])[0] == 7.5
    mixed = tabular.guess_columns(X.assign(d=[1.5, 2.5]))  # which is no evidence for either
    assert mixed["a"].style.parse(["1,234"])[0] == 1234 and mixed["a"].overrule == "decimal-comma"
    said = tabular.guess_columns(X, kinds={"a": "decimal-point"})["a"]
    assert said.style.parse(["1,234"])[0] == 1234


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(["a", "b"] * 20, dtype="category"), "category"),
        (pd.Series([1, None, 3] * 10, dtype="Int64"), "number"),
        (pd.Series([True, False] * 20), "number"),
        (pd.Series([1.5, np.nan] * 20, dtype="float32"), "number"),
        (pd.Series(pd.date_range("2020-01-01", periods=40, tz="Europe/Berlin")), "date"),
        (pd.Series([date(2020, 1, 1), None, date(2021, 5, 6)] * 10), "date"),
        (pd.Series([time(10, 30), time(11, 30)] * 10), "date"),
        (pd.Series(pd.to_timedelta([1, 2], unit="s")), "number"),
        (pd.Series(["2010", "2011"] * 20), "category"),  # an attribute of names, say; in CSV these are numbers
        (pd.Series(["01", "02", "unknown"] * 10), "category"),
    ],
)
def test_columns_of_other_types(column, kind):
    X = pd.DataFrame({"a": column})
    assert tabular.column_kinds(X) == {"a": kind}
    y = np.arange(len(X)) % 2
    model = tabular.fit_table(tabular.table_pipeline(NashClassifier(alpha=0.1), X), X.copy(), y, in_place=True)
    assert model.predict(X).shape == y.shape


def test_a_date_becomes_numbers_and_parts():
    X = pd.DataFrame({"day": ["2020-01-31", "2021-02-28", "n/a"], "day (year)": ["a", "b", "c"]})
    columns = tabular.table_pipeline(NashClassifier(), X)["columns"]
    made = columns.transform(X)
    assert columns.made() == {
        "day (elapsed)": "number",
        "day (year)'": "number",
        "day (month)": "category",
        "day (day of week)": "category",
        "day (year)": "category",
    }
    assert list(made.columns) == list(columns.made()) == columns.get_feature_names_out().tolist()
    assert made["day (month)"].tolist() == ["01", "02", ""] and made["day (year)'"].tolist()[:2] == [2020, 2021]
    assert np.isnan(made["day (elapsed)"][2]) and made["day (elapsed)"][1] - made["day (elapsed)"][0] == 394


def test_words_are_those_of_scikit_learn():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["A good film, a good story", "Not a good film", "très bien", "", "Not bien"]
    ours = tabular.WordFeatures(least=1).fit(texts)
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, strip_accents="unicode").fit(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    np.testing.assert_allclose(ours.transform(texts).toarray(), theirs.transform(texts).toarray(), rtol=1e-12)
    assert ours.transform(["zebra"]).nnz == 0
    assert tabular.WordFeatures().fit(["one", "two", ""]).transform(["one"]).shape == (1, 0)  # no word is in two texts


def test_models_of_messy_tables_are_the_same_after_loading(tmp_path):
    pytest.importorskip("skops")
    rng = np.random.default_rng(0)
    X = frame(60).assign(
        price=[f"{value:,.2f} €" for value in rng.uniform(0, 9e3, 60)],
        day=pd.date_range("2020-01-01", periods=60).strftime("%d.%m.%Y"),
        words=[" ".join(rng.choice(["good", "bad", "film", "long"], 5)) for _ in range(60)],
    )
    model = tabular.table_pipeline(NashClassifier(alpha=0.01), X, na=["bad bad"]).fit(X, labels(X))
    nashlearn.save(model, tmp_path / "m")
    loaded = nashlearn.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded["columns"].styles == model["columns"].styles and loaded["columns"].na == ("bad bad",)
    names = model[:-1].get_feature_names_out().tolist()
    assert {"numbers__price", "categories__c_x", "categories__day (month)_02", "words of words__good film"} <= set(
        names
    )
    assert len(names) == model[-1].coef_.shape[1]


def test_zones_of_time_are_read_alike_from_every_file():
    days = pd.Series(pd.date_range("2020-01-01 23:30", periods=40, freq="7h", tz="Europe/Berlin"))
    X = pd.DataFrame({"a": days})
    columns = tabular.table_pipeline(NashClassifier(), X)["columns"]
    pd.testing.assert_frame_equal(columns.transform(X), columns.transform(pd.DataFrame({"a": days.astype(str)})))


@pytest.mark.parametrize("kind", ["number", "date", "decimal-comma", "day-first"])
def test_columns_of_gaps_alone(kind):
    X = frame().assign(d="unknown")
    assert tabular.guess_columns(X)["d"].kind == "empty"
    try:
        assert tabular.guess_columns(X, kinds={"d": kind})["d"].kind == "number"
    except ValueError as error:
        assert "all of its entries are missing" in str(error)


def test_kinds_that_there_are_not():
    with pytest.raises(ValueError, match=r"no kind of column 'categorical'\. Did you mean 'category'\?"):
        tabular.guess_columns(frame(), kinds={"a": "categorical"})


def test_rows_are_called_by_an_index_of_that_name():
    X = pd.DataFrame({"a": ["1", "2", "many"] + ["3"] * 20})
    with pytest.raises(tabular.RowError, match="row 3 has 'many'"):
        tabular.column_kinds(X)
    X.index = pd.RangeIndex(101, 124, name="row")
    with pytest.raises(tabular.RowError, match="row 103 has 'many'") as caught:
        tabular.column_kinds(X)
    assert caught.value.row == 103
