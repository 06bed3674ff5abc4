"""The risk bound: what it is made of, and that it holds for labels drawn afresh."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, games

# Random settings meet the advice about alpha and prices of abstaining, which is tested elsewhere.
pytestmark = [
    pytest.mark.filterwarnings("ignore:alpha=.* is so large"),
    pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying"),
]

COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0], [1.2, 0.6, 1.0]])
GRADES = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
CONSTANT = 3.0
MODELS = {
    "zero_one": (NashClassifier(intercept_scaling=CONSTANT), 1 - np.eye(3)),
    "absolute": (NashClassifier("absolute", intercept_scaling=CONSTANT), GRADES),
    "squared": (NashClassifier("squared", intercept_scaling=CONSTANT), GRADES**2),
    "cost": (NashClassifier(COST, intercept_scaling=CONSTANT), COST),
    "ordinal": (NashOrdinalClassifier(intercept_scaling=CONSTANT), GRADES),
    "abstain": (NashAbstainer(0.4, intercept_scaling=CONSTANT), games.abstain(3, 0.4).costs),
}
SMOOTHING = [0.0, 0.1, 1.0, 30.0]


def vertices(model, y):
    """Labels as the moments see them: one-hot, or the thresholds that lie below a grade."""
    ordinal = hasattr(model, "thresholds_")
    return (y[:, None] > np.arange(2)).astype(float) if ordinal else np.eye(3)[y]


def moments(model, X, Y, omega):
    """``E Phi(x)' y`` for (expected) vertices ``Y``."""
    if hasattr(model, "thresholds_"):
        return np.r_[X.T @ (omega * Y.sum(axis=1)), CONSTANT * (omega @ Y)]
    return ((omega[:, None] * Y).T @ np.column_stack([X, np.full(len(X), CONSTANT)])).ravel()


def truth(seed, n, d=2):
    """Inputs and the distribution of their labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    logits = X @ rng.normal(size=(d, 3)) * 1.5
    logits[:, 1] += 0.3
    pi = np.exp(logits)
    return X, pi / pi.sum(axis=1, keepdims=True), rng


def draw(pi, rng):
    """A label for each row; all three occur, so that the models compare."""
    while True:
        y = (rng.random(len(pi))[:, None] > pi.cumsum(axis=1)[:, :-1]).sum(axis=1)
        if np.unique(y).size == 3:
            return y


def largest(name):
    """The scale of a loss: its largest cost, 1 for thresholds."""
    return 1.0 if name == "ordinal" else MODELS[name][1].max()


def norm(model, name):
    """The norm of the weights in units of the costs; those of intercepts are ``intercept_`` over the constant."""
    weights = np.concatenate([model.coef_.ravel(), model.intercept_ / CONSTANT])
    return largest(name) * (1 + model.smoothing_) * np.linalg.norm(weights)


@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_grows_with_the_radius_and_covers_the_training_labels(name, smoothing):
    model, L = MODELS[name]
    for seed in range(3):
        X, pi, rng = truth(seed, 80)
        y, weight = draw(pi, rng), rng.exponential(size=80)
        model = clone(model).set_params(alpha=1e-3, smoothing=smoothing).fit(X, y, sample_weight=weight)
        paid = np.average((model.strategy(X) @ L)[np.arange(y.size), y], weights=weight)
        risks = [model.worst_case_risk(r) for r in (0.0, 0.1, 1.0)]
        assert paid <= risks[0] + 1e-9
        assert risks[0] < risks[1] < risks[2] + 1e-12
        assert model.worst_case_risk() == risks[0]
        slopes = (risks[1] - risks[0]) / 0.1, (risks[2] - risks[1]) / 0.9
        if smoothing:  # a minimum of lines, sigma = 0 and 1 among them
            assert slopes[1] <= slopes[0] * (1 + 1e-9)
            assert model.worst_case_risk(1e9) <= L.max() * (1 + 1e-9)
        else:  # one line: the mean loss, and the norm of the weights
            assert slopes == pytest.approx([norm(model, name)] * 2, rel=1e-9)
            objective = risks[0] / largest(name) + 0.5 * model.alpha * (slopes[0] / largest(name)) ** 2
            assert objective == pytest.approx(model.objective_, rel=1e-9)
        radii = [model.moment_radius(c) for c in (0.01, 0.5, 0.9, 0.999)]
        assert sorted(radii) == radii


@pytest.mark.parametrize("smoothing", SMOOTHING[1:])
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_is_at_most_that_of_the_loss_itself_and_of_the_dearest_labels(name, smoothing):
    """``sigma = 1`` is no worse than the mean loss, cost and log loss; ``sigma = 0`` trusts no label at all."""
    model, L = MODELS[name]
    X, pi, rng = truth(5, 60)
    y = draw(pi, rng)
    model = clone(model).set_params(smoothing=smoothing, alpha=1e-2).fit(X, y)
    p, log_q = model.strategy(X), model.predict_log_proba(X)
    mu, own = smoothing * largest(name), np.arange(y.size)
    cost = p @ L
    scores = mu * log_q - cost  # up to a constant for each row
    loss = np.mean(cost[own, y] - mu * log_q[own, y])

    def line(sigma, radius):
        mean = np.mean((sigma * scores + cost).max(axis=1) - sigma * scores[own, y])
        return mean + sigma * radius * norm(model, name)

    assert line(1.0, 0.0) == pytest.approx(loss + mu * np.mean(log_q.max(axis=1)), abs=1e-9)
    for radius in (0.0, 0.05, 0.5):
        bound = model.worst_case_risk(radius)
        assert bound <= min(line(0.0, radius), line(1.0, radius), loss + radius * norm(model, name)) + 1e-9
        # No value between those that are kept is much better.
        assert bound <= 1.1 * min(line(sigma, radius) for sigma in np.geomspace(1e-3, 4.0, 200)) + 1e-9


@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(MODELS)),
    log_alpha=st.floats(-5, 0),
    smoothing=st.sampled_from(SMOOTHING),
)
def test_the_bound_holds_for_every_distribution_within_its_radius(seed, name, log_alpha, smoothing):
    """For any label distributions, at the distance that their moments have: no chance is involved."""
    model, L = MODELS[name]
    X, pi, rng = truth(seed, 25)
    y = draw(pi, rng)
    omega = rng.exponential(size=25)
    omega /= omega.sum()
    model = clone(model).set_params(alpha=10.0**log_alpha, tol=1e-2, smoothing=smoothing)
    model.fit(X, y, sample_weight=omega)
    other = rng.dirichlet(np.full(3, 0.3), size=25)
    Y = other @ vertices(model, np.arange(3))
    apart = moments(model, X, Y, omega) - moments(model, X, vertices(model, y), omega)
    expected = omega @ np.sum(model.strategy(X) @ L * other, axis=1)
    bound = model.worst_case_risk(float(np.linalg.norm(apart)))
    assert expected <= bound + 1e-7 * (1 + bound)


@pytest.mark.parametrize("draws", [40, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("name", ["zero_one", "cost", "ordinal"])
def test_the_guarantee_covers_the_distribution_that_drew_the_labels(name, smoothing, draws):
    """With few rows and little regularisation the training risk is optimistic; the guarantee is not."""
    model, L = MODELS[name]
    X, pi, rng = truth(7, 30)
    X_wide = np.column_stack([X, rng.normal(size=(30, 4))])
    covered = inside = optimistic = 0
    for _ in range(draws):
        y = draw(pi, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = clone(model).set_params(alpha=1e-3, smoothing=smoothing).fit(X_wide, y)
        expected = np.mean(np.sum(fitted.strategy(X_wide) @ L * pi, axis=1))
        radius = fitted.moment_radius(0.9)
        covered += expected <= fitted.worst_case_risk(radius)
        optimistic += expected > fitted.worst_case_risk(0.0)
        omega = np.full(30, 1 / 30)
        Y = pi @ vertices(fitted, np.arange(3))
        apart = moments(fitted, X_wide, Y, omega) - moments(fitted, X_wide, vertices(fitted, y), omega)
        inside += np.linalg.norm(apart) <= radius
    assert covered >= 0.9 * draws
    assert inside >= 0.9 * draws
    assert optimistic >= 0.2 * draws


@pytest.mark.parametrize("name", ["zero_one", "ordinal"])
def test_the_radius_covers_even_where_labels_scatter_most(name):
    """Two extreme labels at equal odds: the moments' spread is then that of the formula, not far below it."""
    model, _ = MODELS[name]
    rng = np.random.default_rng(0)
    X = np.ones((40, 1)) * 3.0
    pi = np.tile([0.4995, 0.001, 0.4995], (40, 1))
    omega = np.full(40, 1 / 40)
    fitted = clone(model).fit(X, np.arange(40) % 3)
    Y = pi @ vertices(fitted, np.arange(3))
    radii, lengths = {c: fitted.moment_radius(c) for c in (0.5, 0.9)}, []
    for _ in range(500):
        y = rng.choice(3, size=40, p=pi[0])
        apart = moments(fitted, X, Y, omega) - moments(fitted, X, vertices(fitted, y), omega)
        lengths.append(np.linalg.norm(apart))
    for confidence, radius in radii.items():
        assert np.mean(np.array(lengths) <= radius) >= confidence
    assert max(lengths) >= 0.5 * radii[0.5]


def _paid(model, X, y, L, weight):
    """What the strategy that is played pays for the training labels."""
    return np.average((model.strategy(X) @ L)[np.arange(y.size), y], weights=weight)


def _fitted(model, X, y, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weight)


def _callable_kernel(A, B):
    return rbf_kernel(A, B, gamma=0.3)


RUNS = [(1e-2, 1, 0.0), (1e-7, 1, 0.0), (1e-3, 1000, 0.0), (1e-2, 1, 1.0), (1e-7, 3, 0.1), (1e-3, 1000, 1.0)]


@pytest.mark.parametrize("seeds", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [None, "rbf", "poly", "laplacian", _callable_kernel])
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_is_that_of_the_strategy_that_is_played_however_training_went(name, kernel, dtype, seeds):
    """Weights of classes and rows, single precision, runs of one iteration, warm starts: at radius 0, no slack."""
    model, L = MODELS[name]
    factors = {0: 1.0, 1: 3.0, 2: 0.5}
    for seed in range(seeds):
        X, pi, rng = truth(seed, 40)
        X = (10.0 * X).astype(dtype)
        y, weight = draw(pi, rng), rng.exponential(size=40)
        whole = weight * np.array([factors[c] for c in y])
        for alpha, max_iter, smoothing in RUNS:
            own = clone(model).set_params(
                alpha=alpha, max_iter=max_iter, kernel=kernel, class_weight=factors, warm_start=True, random_state=0
            )
            own.set_params(smoothing=smoothing)
            _fitted(own, X, y, weight)
            assert _paid(own, X, y, L, whole) <= own.worst_case_risk()
            _fitted(own.set_params(alpha=0.1 * alpha, max_iter=2), X, y, weight)  # from where it was
            assert _paid(own, X, y, L, whole) <= own.worst_case_risk()
            assert own.worst_case_risk() >= 0.0


def test_single_precision_has_the_same_strategy():
    """Scores of single precision would move ``p`` by more than any certificate allows for."""
    X, pi, rng = truth(0, 60)
    y = draw(pi, rng)
    X = (1e3 * X).astype(np.float32)
    for kernel in (None, "rbf", "poly", "laplacian"):
        model = NashClassifier(alpha=1e-4, kernel=kernel, gamma=1e-6).fit(X, y)
        p = model.strategy(X)
        assert p.dtype == np.float64
        assert np.array_equal(p, model.strategy(X.astype(np.float64)))


@pytest.mark.parametrize("name", MODELS)
def test_after_a_stream_there_is_no_bound(name):
    X, pi, rng = truth(0, 60)
    model = clone(MODELS[name][0]).fit(X, draw(pi, rng))
    assert np.isfinite(model.worst_case_risk(model.moment_radius()))
    model.partial_fit(X, draw(pi, rng))
    assert np.isnan(model.worst_case_risk()) and np.isnan(model.moment_radius())


@pytest.mark.parametrize("max_iter", [1, 3, 1000])
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_of_partitions(name, max_iter):
    da = pytest.importorskip("dask.array")
    model, L = MODELS[name]
    X, pi, rng = truth(3, 90)
    y, weight = draw(pi, rng), rng.exponential(size=90)
    model = clone(model).set_params(alpha=1e-4, max_iter=max_iter, class_weight={0: 1.0, 1: 3.0, 2: 0.5})
    _fitted(model, da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=20), da.from_array(weight, chunks=20))
    whole = weight * np.array([1.0, 3.0, 0.5])[y]
    assert _paid(model, X, y, L, whole) <= model.worst_case_risk()
    if name == "ordinal":
        assert (np.diff(model.thresholds_) >= 0).all()
