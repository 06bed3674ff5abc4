"""Time limits, callbacks and interrupts: training ends where it is told to, with what it has, and says so."""

from __future__ import annotations

import itertools
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sturdy_cases import ROUTES, rows

from nashlearn import NashClassifier, NashTagger
from nashlearn.training.progress import Progress, Round


def trained(name, **parameters):
    """The estimator of a route, fitted, and the warnings that came with it."""
    estimator, data = ROUTES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(estimator).set_params(**parameters).fit(*data())
    return model, caught


@pytest.fixture(scope="module")
def in_full():
    """Each route's model without limits, trained once."""
    models = {}

    def get(name):
        if name not in models:
            models[name], caught = trained(name)
            assert not caught, [str(w.message) for w in caught]
        return models[name]

    return get


@pytest.mark.parametrize("name", ROUTES)
def test_history_is_the_certificate_over_time(name, in_full):
    model = in_full(name)
    history = model.history_
    assert all(type(now) is Round for now in history)
    last = history[-1]
    assert (last.n_iter, last.objective, last.gap) == (model.n_iter_, model.objective_, model.dual_gap_)
    for before, now in itertools.pairwise(history):
        assert now.n_iter >= before.n_iter
        assert now.seconds >= before.seconds
        assert now.objective <= before.objective + 1e-14  # by rounding: what is sure of an objective counts
        assert now.bound >= before.bound - 1e-14
    slack = 1e-9 * abs(model.objective_)
    assert all(now.bound <= model.objective_ + slack for now in history), "a bound above the optimum"
    optimum_at_least = model.objective_ * (1.0 - model.dual_gap_)
    assert all(now.objective >= optimum_at_least - slack for now in history), "an objective below the optimum"


@pytest.mark.parametrize("name", ROUTES)
def test_no_time_still_gives_weights_and_a_warning(name, in_full):
    seen = []
    model, caught = trained(name, max_time=1e-9, callback=seen.append)
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert "max_time=1e-09 seconds" in str(caught[0].message)
    assert model.dual_gap_ > model.tol
    assert model.objective_ >= in_full(name).objective_ * (1.0 - in_full(name).dual_gap_)
    assert model.n_iter_ <= 1
    assert len(seen) >= 1
    model.predict(ROUTES[name][1]()[0])


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("name", ROUTES)
def test_an_interrupt_from_the_callback_keeps_the_best(name, after, in_full):
    seen = []

    def watch(now):
        seen.append(now)
        if len(seen) > after:
            raise KeyboardInterrupt

    model, caught = trained(name, callback=watch)
    if len(seen) <= after:  # the training was over before
        return
    assert len(seen) == after + 1
    assert "interrupted" in str(caught[0].message)
    assert model.objective_ <= seen[-1].objective
    assert model.objective_ >= in_full(name).objective_ * (1.0 - in_full(name).dual_gap_)
    assert (model.dual_gap_ > model.tol) == any(w.category is ConvergenceWarning for w in caught)
    model.predict(ROUTES[name][1]()[0])


@pytest.mark.parametrize("name", ROUTES)
def test_an_interrupt_before_the_first_round_gives_weights(name, monkeypatch):
    def interrupted(self, w, primal, dual, *errors):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "offer", interrupted)
    model, caught = trained(name)
    assert "interrupted" in str(caught[0].message)
    assert np.isfinite(model.objective_)
    model.predict(ROUTES[name][1]()[0])


def test_an_error_in_the_callback_is_passed_on():
    def broken(now):
        raise ZeroDivisionError("of the caller")

    with pytest.raises(ZeroDivisionError, match="of the caller"):
        NashClassifier(callback=broken).fit(*rows())


WRONG = [
    ({"max_time": 0}, ValueError, "max_time must be None or a positive number of seconds; got 0."),
    ({"max_time": -1.0}, ValueError, "max_time must be None or a positive"),
    ({"max_time": np.nan}, ValueError, "max_time must be None or a positive"),
    ({"max_time": "1h"}, TypeError, "max_time must be a number; got '1h'."),
    ({"callback": 3}, TypeError, "callback must be None or callable; got 3."),
    ({"checkpoint": 3}, TypeError, "checkpoint must be None or a path; got 3."),
    (
        {"checkpoint": "/no/such/folder/file"},
        ValueError,
        "checkpoint must lie in a folder that exists; /no",
    ),
    ({"checkpoint": "/"}, ValueError, "checkpoint must be the path of a file; / is a folder."),
]


@pytest.mark.parametrize("name", ["newton", "chains", "hashed trees"])
@pytest.mark.parametrize(("parameters", "error", "words"), WRONG, ids=[str(w[0]) for w in WRONG])
def test_wrong_limits_are_named(name, parameters, error, words):
    with pytest.raises(error, match=re.escape(words)):
        trained(name, **parameters)


@pytest.mark.parametrize("jobs", ["2", 1.5, 0, True])
def test_jobs_that_are_no_number_are_named(jobs):
    with pytest.raises((TypeError, ValueError), match=f"n_jobs must be .*; got {jobs!r}"):
        trained("chains", n_jobs=jobs)


def test_a_fitted_model_with_a_history_is_pickled():
    model, _ = trained("newton")
    assert pickle.loads(pickle.dumps(model)).history_ == model.history_


@pytest.mark.parametrize("spread", [1.0, 1e7])
def test_only_badly_scaled_features_are_blamed_on_their_scale(spread):
    X, y = rows()
    X = X * [1.0, spread, 1.0, 1.0, 1.0]
    for model, data in ((NashClassifier(alpha=1e-9, max_iter=1), (X, y)), (NashTagger(max_iter=1), ([X], [y]))):
        with pytest.warns(ConvergenceWarning) as caught:
            model.fit(*data)
        assert ("differ in size by a factor of 1e+07" in str(caught[0].message)) == (spread == 1e7)
