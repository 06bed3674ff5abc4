"""Estimators given anything as a parameter: they train, or name the parameter and what it accepts."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sturdy_cases import arcs, chains, hashed, pairs, rows, squares

from nashlearn import (
    NashAbstainer,
    NashClassifier,
    NashMarkovNetwork,
    NashMatcher,
    NashOrdinalClassifier,
    NashParser,
    NashTagger,
)

SMALL = {
    "rows": (NashClassifier(), rows(12, 2)),
    "kernel": (NashClassifier(kernel="poly"), rows(12, 2)),
    "grades": (NashOrdinalClassifier(), rows(12, 2)),
    "abstention": (NashAbstainer(), rows(12, 2)),
    "chains": (NashTagger(), chains(3)),
    "graphs": (NashMarkovNetwork(), squares(3)),
    "matchings": (NashMatcher(), pairs(3)),
    "trees": (NashParser(), arcs(3)),
    "hashed trees": (NashParser(), hashed(3)),
}
ANYTHING = [
    None, "", "abc", "\ud800", b"x", -1, 0, 1, 2**70, 10**400, 1.5, -0.5, 1e-320, 1e300, np.nan, np.inf, -np.inf, 1j,
    True, np.float32(0.5), [], [1.0, 2.0], {}, (), object(), np.array([1.0, 2.0]), np.eye(3), np.eye(2, 3),
    np.array("a"), np.array([[np.nan]]), len, range(3),
]  # fmt: skip
# What is wrong with such values shows in the data that they make, and the error is about these.
OF_THE_DATA = ("squares of its rows overflow", "positive semidefinite", "precomputed", "kernel")


@pytest.fixture(autouse=True, scope="module")
def elsewhere(tmp_path_factory):
    """In a folder of their own: a word may be the path of a checkpoint."""
    with contextlib.chdir(tmp_path_factory.mktemp("elsewhere")):
        yield


@pytest.mark.parametrize("name", SMALL)
@given(data=st.data())
@settings(max_examples=20, deadline=None, derandomize=True)  # `make test` judges a change, not a draw
def test_any_value_of_any_parameter(name, data):
    estimator, (X, y) = SMALL[name]
    parameter = data.draw(st.sampled_from(sorted(estimator.get_params())), label="parameter")
    value = data.draw(st.sampled_from(ANYTHING), label="value")
    model = clone(estimator).set_params(max_iter=3, max_time=1.0)
    setattr(model, parameter, value)
    Path("abc").unlink(missing_ok=True)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except (TypeError, ValueError) as error:
            assert parameter in str(error) or any(words in str(error) for words in OF_THE_DATA)
            return
        assert np.isfinite(model.objective_)
        model.predict(X)


WRONG_DATA = {
    "rows": [(np.zeros((3, 2)), [0, 1]), ([[1], [2, 3]], [0, 1]), (None, None)],
    "chains": [([], []), ([[]], [[]]), ([np.zeros((2, 2))], [[0]]), ("ab", "ab"), ([1, 2], [1, 2]), (None, None)],
    "graphs": [([], []), ([(np.zeros((2, 1)), [(0, 5)])], [[0, 1]]), ([1], [1]), (None, None), ([()], [[]])],
    "matchings": [([], []), ([np.zeros((2, 2, 1))], [[0, 0]]), ([np.zeros(3)], [[0]]), (None, None), ([""], [""])],
    "trees": [([], []), ([np.zeros((2, 3, 1))], [[1, 1]]), ([np.zeros(3)], [[0]]), (None, None), ([""], [""])],
}


@pytest.mark.parametrize(("name", "case"), [(name, i) for name, cases in WRONG_DATA.items() for i in range(len(cases))])
def test_data_of_the_wrong_form(name, case):
    X, y = WRONG_DATA[name][case]
    with pytest.raises((TypeError, ValueError)) as caught:
        clone(SMALL[name][0]).fit(X, y)
    assert any(word in str(caught.value) for word in ("X", "y", "sample", "array", "feature")), str(caught.value)
