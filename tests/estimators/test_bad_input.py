"""What is wrong is named: the argument, and what it accepts."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, games

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.arange(12) % 3
ALL = (NashClassifier, NashOrdinalClassifier, NashAbstainer)


def with_entry(value, csr=False):
    bad = X.copy()
    bad[3, 1] = value
    return sp.csr_array(bad) if csr else bad


PARAMETERS = [
    ({"alpha": 0.0}, ValueError, "alpha must be a positive, finite number; got 0.0"),
    ({"alpha": -1}, ValueError, "alpha must be a positive, finite number"),
    ({"alpha": np.nan}, ValueError, "alpha must be a positive, finite number; got nan"),
    ({"alpha": np.inf}, ValueError, "alpha must be a positive, finite number; got inf"),
    ({"alpha": "much"}, ValueError, "alpha must be 'auto' or a number; got 'much'"),
    ({"alpha": None}, TypeError, "alpha must be a number; got None"),
    ({"alpha": True}, TypeError, "alpha must be a number; got True"),
    ({"tol": 0.0}, ValueError, "tol must be a positive, finite number"),
    ({"tol": -1e-3}, ValueError, "tol must be a positive, finite number"),
    ({"tol": "tight"}, TypeError, "tol must be a number; got 'tight'"),
    ({"max_iter": 0}, ValueError, "max_iter must be a positive integer; got 0"),
    ({"max_iter": 1.5}, ValueError, "max_iter must be a positive integer; got 1.5"),
    ({"max_iter": np.inf}, ValueError, "max_iter must be a positive integer; got inf"),
    ({"max_iter": np.nan}, ValueError, "max_iter must be a positive integer; got nan"),
    ({"max_iter": None}, TypeError, "max_iter must be a number; got None"),
]


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(("parameters", "error", "words"), PARAMETERS, ids=[str(p[0]) for p in PARAMETERS])
def test_parameters_of_training(make, parameters, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make(**parameters).fit(X, Y)


CALLS = {
    "NaN in X": (lambda m: m().fit(with_entry(np.nan), Y), "Input X contains NaN"),
    "inf in X": (lambda m: m().fit(with_entry(np.inf), Y), "Input X contains infinity"),
    "NaN in sparse X": (lambda m: m().fit(with_entry(np.nan, csr=True), Y), "Input X contains NaN"),
    "NaN in predict": (lambda m: m().fit(X, Y).predict(with_entry(np.nan)), "Input X contains NaN"),
    "overflow in X": (lambda m: m().fit(1e200 * X, Y), "squares of its rows overflow"),
    "empty X": (lambda m: m().fit(X[:0], Y[:0]), "0 sample(s)"),
    "no features": (lambda m: m().fit(X[:, :0], Y), "0 feature(s)"),
    "1-D X": (lambda m: m().fit(X[:, 0], Y), "Expected 2D array"),
    "features in predict": (lambda m: m().fit(X, Y).predict(X[:, :1]), "expecting 2 features"),
    "short y": (lambda m: m().fit(X, Y[:-1]), "inconsistent numbers of samples: [12, 11]"),
    "None in y": (
        lambda m: m().fit(X, [None, *Y[1:]]),
        "y holds None in 1 of 12 rows, the first of them row 0",
    ),
    "None among words": (
        lambda m: m().fit(X, np.array(["a", "b", None] * 4, dtype=object)),
        "y holds None in 4 of 12 rows, the first of them row 2",
    ),
    "one class": (lambda m: m().fit(X, np.full(12, 7)), "y holds one class only, 7;"),
    "continuous y": (lambda m: m().fit(X, X[:, 0]), "Unknown label type: continuous"),
    "NaN in y": (lambda m: m().fit(X, np.where(Y == 1, np.nan, Y)), "Input y contains NaN"),
    "negative weight": (
        lambda m: m().fit(X, Y, sample_weight=Y - 1.0),
        "Negative values in data passed to `sample_weight`",
    ),
    "NaN weight": (lambda m: m().fit(X, Y, sample_weight=np.where(Y == 1, np.nan, 1)), "sample_weight contains NaN"),
    "short weights": (
        lambda m: m().fit(X, Y, sample_weight=np.ones(11)),
        "sample_weight.shape == (11,), expected (12,)",
    ),
    "class_weight": (lambda m: m(class_weight="even").fit(X, Y), "class_weight"),
    "unknown label": (
        lambda m: m().fit(X, Y).task_loss(X, Y + 1),
        "y holds the label 3, which was not seen in fit",
    ),
    "foreign label": (
        lambda m: m().fit(X, Y).task_loss(X, np.full(12, "a")),
        "y holds the label 'a', which was not seen",
    ),
    "task_loss length": (lambda m: m().fit(X, Y).task_loss(X, Y[:-1]), "inconsistent numbers of samples: [12, 11]"),
    "radius": (lambda m: m().fit(X, Y).worst_case_risk(-0.1), "radius must be a finite number, not negative; got -0.1"),
    "infinite radius": (lambda m: m().fit(X, Y).worst_case_risk(np.inf), "radius must be a finite number"),
    "confidence 1": (lambda m: m().fit(X, Y).moment_radius(1.0), "confidence must lie between 0 and 1; got 1.0"),
    "confidence 0": (lambda m: m().fit(X, Y).moment_radius(0), "confidence must lie between 0 and 1; got 0"),
}


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("case", CALLS)
def test_data_and_arguments(make, case):
    call, words = CALLS[case]
    with pytest.raises(ValueError, match=re.escape(words)):
        call(make)


@pytest.mark.parametrize("make", ALL)
def test_weights_that_are_all_zero(make):
    """Newer releases of scikit-learn find the fault themselves."""
    with pytest.raises(ValueError, match=r"sample_weight must be positive for at least|Sample weights must contain"):
        make().fit(X, Y, sample_weight=np.zeros(12))
    with pytest.raises(ValueError, match="sample_weight must be positive for at least one row"):
        make(class_weight={0: 0.0, 1: 0.0, 2: 1.0}).fit(X, Y, sample_weight=(Y < 2).astype(float))


LOSSES = {
    "unknown": (NashClassifier("hinge"), "loss must be one of ('zero_one', 'absolute', 'squared'), a cost matrix"),
    "misspelt": (NashClassifier("zero-one"), "got 'zero-one'. Did you mean 'zero_one'?"),
    "by another name": (NashClassifier("mae"), "got 'mae'. Did you mean 'absolute'?"),
    "no near name": (NashClassifier("hinge"), "a callable; got 'hinge'."),
    "ragged": (
        NashClassifier([[0, 1, 1], [1, 0]]),
        "loss must be a matrix of numbers, options by labels; got [[0, 1, 1]",
    ),
    "a number": (NashClassifier(5), "loss must be a matrix, options by labels, and not empty; got shape ()"),
    "too large": (NashClassifier(1 - np.eye(5)), "pandas.DataFrame(costs, index=labels, columns=labels)"),
    "kernel": (NashClassifier(kernel="gauss"), "kernel must be None or 'linear', one of ('rbf', 'poly', 'laplacian')"),
    "abstain": (NashClassifier("abstain"), "For abstention use NashAbstainer"),
    "negative": (NashClassifier(-np.eye(3)), "loss must not be negative; entry [0, 0] is -1"),
    "not finite": (NashClassifier(np.full((3, 3), np.nan)), "loss must be finite; entry [0, 0] is nan"),
    "infinite": (NashClassifier(np.full((3, 3), np.inf)), "loss must be finite"),
    "wrong size": (NashClassifier(1 - np.eye(4)), "loss has 4 columns, but y has 3 classes"),
    "1-D": (NashClassifier([0.0, 1.0, 2.0]), "loss must be a matrix, options by labels"),
    "callable of wrong size": (NashClassifier(lambda k: games.zero_one(k + 1)), "loss has 4 columns, but y has 3"),
    "values": (
        NashClassifier(lambda k: games.absolute(k, [0, 2, 1])),
        "values must be strictly increasing; got [0, 2, 1]",
    ),
    "decision": (
        NashClassifier(decision="best"),
        "decision must be one of ('auto', 'scores', 'equilibrium'); got 'best'",
    ),
    "ordinal loss": (NashOrdinalClassifier("squared"), "loss must be 'absolute'; got 'squared'"),
    "ordinal decision": (
        NashOrdinalClassifier(decision="best"),
        "decision must be one of ('auto', 'scores', 'equilibrium')",
    ),
    "negative price": (NashAbstainer(-0.1), "cost must be finite and not negative; got -0.1"),
    "NaN price": (NashAbstainer(np.nan), "cost must be finite and not negative"),
    "price in words": (NashAbstainer("dear"), "cost must be a number or one number for each label; got 'dear'"),
    "ordinal cost matrix": (NashOrdinalClassifier(np.eye(3)), "loss must be 'absolute'"),
    "prices": (NashAbstainer([0.1, 0.2]), "cost must be a number or one for each of the 3 labels"),
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses_and_decisions(case):
    model, words = LOSSES[case]
    with pytest.raises(ValueError, match=re.escape(words)):
        model.fit(X, Y)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.predict(X),
        lambda m: m.predict_proba(X),
        lambda m: m.decision_function(X),
        lambda m: m.task_loss(X, Y),
        lambda m: m.score(X, Y),
        lambda m: m.worst_case_risk(),
        lambda m: m.moment_radius(),
    ],
)
def test_before_fit(make, call):
    with pytest.raises(NotFittedError):
        call(make())


@pytest.mark.parametrize("make", ALL)
def test_sparse_gram_matrices(make):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        make(kernel="precomputed").fit(sp.csr_array(X @ X.T), Y)
