"""Small training problems with what tends to go wrong: zero rows, duplicate rows, weights, ties."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nashlearn import games
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.training import Problem, train
from nashlearn.training.designs.rows import PerClass, Shared
from nashlearn.training.methods.tempered import Tempered


def random_costs(options: int, k: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((options, k))


# Each maps the number of classes to a game.
LOSSES = {
    "zero_one": games.zero_one,
    "zero_one-weighted": lambda k: games.zero_one(k, weights=0.5 + np.arange(k)),
    "absolute": games.absolute,
    "absolute-uneven": lambda k: games.absolute(k, values=np.arange(k) ** 2.0),
    "absolute-weighted": lambda k: games.absolute(k, weights=0.5 + np.arange(k)),
    "squared": games.squared,
    "abstain-0": lambda k: games.abstain(k, 0.0),
    "abstain-0.2": lambda k: games.abstain(k, 0.2),
    "abstain-0.5": lambda k: games.abstain(k, 0.5),
    "abstain-0.6": lambda k: games.abstain(k, 0.6),
    "abstain-1.5": lambda k: games.abstain(k, 1.5),
    "abstain-per-label": lambda k: games.abstain(k, np.linspace(0.1, 0.6, k)),
    "cost-square": lambda k: games.cost(random_costs(k, k)),
    "cost-tall": lambda k: games.cost(random_costs(k + 3, k)),
    "cost-wide": lambda k: games.cost(random_costs(2, k)),
    "cost-ties": lambda k: games.cost(np.round(2 * random_costs(k, k))),
}


def data(seed: int, n: int, d: int, k: int, csr: bool = False):
    """Noisy linear classes; two rows are zero, four are copies of others, half of them with another label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = (X @ rng.normal(size=(d, k)) + 0.7 * rng.normal(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    X[k : k + 2] = 0.0
    X[-4:] = X[:4]
    y[-4:-2] = y[:2]
    return (sp.csr_array(X) if csr else X), y


def shares(seed: int, n: int, weighted: bool) -> np.ndarray:
    weight = np.random.default_rng(seed).exponential(size=n) if weighted else np.ones(n)
    return weight / weight.sum()


def per_class(X, y, game, alpha, omega=None, bias=1.0) -> Problem:
    omega = shares(0, y.size, False) if omega is None else omega
    return Problem(X, y, omega, alpha, game, PerClass(game.n_labels, X.shape[1], bias))


def thresholded(X, y, k, alpha, omega=None) -> Problem:
    omega = shares(0, y.size, False) if omega is None else omega
    return Problem(X, y, omega, alpha, ThresholdGame(k - 1), Shared(k - 1, X.shape[1]))


def solve_tempered(problem, mu, tol=1e-9, max_iter=500, **options):
    return train(problem, Tempered(mu), tol=tol, max_iter=max_iter, random_state=np.random.default_rng(0), **options)
