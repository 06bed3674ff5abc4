"""Games of rows and their training give the numbers that 0.1 gave, whose kernels Numba compiled.

``tests/stored/rows-0.1.npz`` holds what 0.1 was asked and what it answered: scores with ties, -inf, NaN, 1e8 in common
and of either precision, proximal steps and their tangents, sweeps over examples, and the parts of Newton's method.
Sums may be taken in another order, and so answers are compared to rounding.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nashlearn import games
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.kernels import ascent, gram, loss, newton, planes, tangents
from nashlearn.kernels.rows import SharedSquare, Square
from nashlearn.training.designs.row_products import rows_of, squared_norms
from nashlearn.training.methods.ascent import listed

STORED = np.load(Path(__file__).parents[1] / "stored" / "rows-0.1.npz")
NAMES = sorted({key.partition("|")[0] for key in STORED if key.endswith("|prox")})
MAKE = {
    "zero_one": lambda size, given: games.zero_one(int(size)),
    "weighted": lambda size, given: games.zero_one(int(size), weights=given),
    "cost": lambda size, given: games.cost(given),
    "absolute": lambda size, given: games.absolute(int(size), values=given),
    "squared": lambda size, given: games.squared(int(size), values=given),
    "abstain": lambda size, given: games.abstain(8, float(size)),
    "thresholds": lambda size, given: ThresholdGame(int(size)),
}
SMALL = {
    "zero_one": games.zero_one(4),
    "cost": games.cost(np.abs(np.subtract.outer(np.arange(4), np.arange(4))) ** 1.5),
    "abstain": games.abstain(4, 0.3),
    "thresholds": ThresholdGame(4),
}
SHARES = np.full(30, 1 / 30) / 0.01
every = pytest.mark.parametrize("name", NAMES)


def game_of(name):
    kind, size = name.split()
    return MAKE[kind](size, STORED.get(f"{name}|given"))


def assert_same(found, key, unit=1.0):
    """Within 1e-13 of the largest entry, or a unit in the last place of float32; NaN and infinity where they were."""
    stored = STORED[key]
    assert found.shape == stored.shape and found.dtype == stored.dtype
    if stored.dtype.kind != "f":
        assert (found == stored).all()
        return
    assert (np.isfinite(found) == np.isfinite(stored)).all() and (np.isnan(found) == np.isnan(stored)).all()
    sure = np.isfinite(stored)
    bound = 1e-13 if stored.dtype == np.float64 else np.finfo(np.float32).eps
    size = np.maximum(np.abs(np.where(sure, stored, 0.0)).max(axis=-1, keepdims=True), unit)
    assert (np.abs(np.where(sure, found, 0.0) - np.where(sure, stored, 0.0)) <= bound * size).all()


@every
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_equilibria(name, kind):
    game, scores = game_of(name), STORED[f"{name}|{kind}|scores"]
    unit, n = game.unit, len(scores)
    value, gap, entropy = np.empty((3, n), kind)
    q, p = np.empty((n, game.n_labels), kind), np.empty((n, game.n_options), kind)
    loss.solve_rows(game.params.compiled(), scores, value, q, p, gap, entropy)
    assert_same(np.column_stack([value, gap, entropy, q, p]), f"{name}|{kind}|solve", unit)


@every
def test_proximal_steps_and_tangents(name):
    game = game_of(name)
    k, kernel = game.n_labels, game.params.compiled()
    a, g, start, _, p = np.split(STORED[f"{name}|prox"], np.cumsum([1, k, k, k]), axis=1)
    found, replies = np.ascontiguousarray(start), np.empty(p.shape)
    tangents = np.zeros((len(a), k, k))
    for i in range(len(a)):
        kernel.step(g[i].copy(), a[i, 0], found[i], replies[i])
        kernel.jacobian(a[i, 0], found[i], replies[i] > 0, tangents[i])
    assert_same(np.column_stack([a, g, start, found, replies]), f"{name}|prox")
    if f"{name}|tangent" in STORED:
        assert_same(tangents, f"{name}|tangent", 1e6)


@pytest.mark.parametrize("index", ["dense", "int32", "int64"])
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", ["zero_one", "cost", "abstain"])
def test_ascent(name, kind, index):
    game, X = SMALL[name], STORED["train|X" if index == "dense" else "train|sparse"].astype(kind)
    if index != "dense":
        X = sp.csr_matrix(X)
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    n, d, k = *X.shape, 4
    kernel, rows, sqnorms = game.params.compiled(), rows_of(X, 1.0), squared_norms(X) + 1.0
    Q, W = np.eye(k)[STORED["train|y"]], np.zeros((k, d + 1) if index == "dense" else (d + 1, k))
    moved, near, gains = np.empty(n, bool), np.zeros((n, k), bool), []
    order = np.random.default_rng(5).permutation(n)
    for _ in range(2):
        gains.append(ascent.sweep(kernel, rows, W, Q, SHARES, sqnorms, order, moved, near, 0.0))
        active = order[moved[order]]
        least, budget = 0.3 * gains[-1], 200.0 * active.size
        arrays = W, Q, SHARES, sqnorms, active, *listed(near, active)
        gains.append(ascent.inner_sweeps(kernel, rows, *arrays, least, 0.0, budget, 0.0))
    for part, found in (("Q", Q), ("W", W), ("gains", np.array(gains))):
        assert_same(found, f"ascent|{kind}|{index}|{name}|{part}", 10.0)


def gram_matrix():
    return STORED["train|X"] @ STORED["train|X"].T + 1.0


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", ["zero_one", "cost", "thresholds"])
def test_ascent_on_a_gram_matrix(name, kind):
    game, K, n, k = SMALL[name], gram_matrix(), 30, 4
    Q = game.labels.vertex(STORED["train|y"])
    if name == "thresholds":
        rows, W, diagonal = SharedSquare(K.astype(kind)), np.zeros((1, n + k)), K.diagonal() + 1.0
        lists = np.repeat(np.arange(n), k), np.arange(n * k + 1), np.tile(np.arange(k), n)
    else:
        rows, W, diagonal = Square(K.astype(kind)), np.zeros((k, n)), K.diagonal().copy()
        lists = np.arange(n), *listed(np.ones((n, k), bool), np.arange(n))
    arrays = W, Q, SHARES, diagonal, *lists
    ascent.inner_sweeps(game.params.compiled(), rows, *arrays, 0.0, 0.01, 5.0 * lists[0].size, 0.0)
    assert_same(Q, f"gram|{kind}|{name}|Q", 10.0)
    assert_same(W, f"gram|{kind}|{name}|W", 100.0)


@pytest.mark.parametrize("name", ["zero_one", "cost", "thresholds"])
def test_newton(name):
    game, K, n, k = SMALL[name], gram_matrix(), 30, 4
    kernel, truth = game.params.compiled(), game.labels.vertex(STORED["train|y"])
    stored = {key.rpartition("|")[2]: STORED[key] for key in STORED if key.startswith(f"newton|{name}|")}
    scores, omega, centre = stored["scores"], stored["omega"], STORED[f"gram|float64|{name}|Q"]
    near, promise = np.ones((n, k), bool), np.empty(n)
    ascent.rank(kernel, scores, centre, SHARES, K.diagonal() + (name == "thresholds"), near, promise)
    Q, tight = centre.copy(), np.empty((n, game.n_options), bool)
    total = newton.smoothed_rows(kernel, scores, truth, omega, 0.4, centre, Q, tight)
    packed, active = np.zeros((k * (k + 1) // 2, n)), np.zeros(n, np.intp)
    m = tangents.packed_tangents(kernel, 0.4, omega, Q, tight, np.arange(n), packed, active)
    applied = scores[:m].copy()
    newton.apply_packed(packed[:, :m], applied)
    U, owner, combined = np.zeros((n * k, k)), np.zeros(n * k, np.intp), np.empty((n, k))
    rows = tangents.directions(kernel, 0.4, omega, Q, tight, U, owner)
    tangents.combine(U[:rows], owner[:rows], np.linspace(-1, 1, rows), combined)
    found = {
        "near": near, "promise": promise, "Q": Q, "tight": tight, "packed": packed[:, :m], "active": active[:m],
        "numbers": np.array([total, newton.distance(omega, Q, centre)]), "applied": applied, "U": U[:rows],
        "owner": owner[:rows], "combined": combined,
    }  # fmt: skip
    for part, answer in found.items():
        assert_same(answer, f"newton|{name}|{part}")


def test_pushes_and_mixtures():
    K, C, slots = gram_matrix(), STORED["push|C"], STORED["push|slots"]
    KC, lost = np.zeros((2, 4, 30))
    plain, x, A = np.zeros((4, 30)), np.full(12, 1 / 12), STORED["planes|A"]
    gram.push(K, slots, C, plain, 0, plain.shape[1])
    gram.push_exactly(K, slots, C, KC, lost)
    for part, found in (("plain", plain), ("KC", KC), ("lost", lost)):
        assert_same(found, f"push|{part}")
    planes.best_mixture(STORED["planes|offset"], A @ A.T, x)
    assert_same(x, "planes|x")
