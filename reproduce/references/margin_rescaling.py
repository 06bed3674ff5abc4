"""Margin rescaling for networks: the structured SVM on trees, and its LP bound on graphs with cycles.

    min_w alpha/2 |w|^2 + mean max_y' <theta_i, y'> + loss(y', y_i) - <theta_i, y_i>,

the losses of eqs. 11 (all labels known) and 15 (some missing: their nodes cost nothing, and the truth's score is the
corrected one) of [franc2022]_. The maximum over labellings is that of a network without a game, whose scores are lifted
by the loss, so the same engine trains it, smoothed as little as its certificate allows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nashlearn.equilibrium import Equilibrium
from nashlearn.games.networks.batch import Networks
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import Evaluation, GameProblem, evaluation

__all__ = ["MarginProblem", "fit"]

_SCHEDULE = (0.5, 0.2, 0.1, 0.05)


class MarginProblem:
    """The mean loss of a problem whose networks have no game, with scores lifted by ``lift`` (n, k)."""

    def __init__(self, problem: GameProblem, networks: Networks, lift: np.ndarray):
        self._owner = networks.owner
        self.problem, self.lift, self.n_weights = problem, lift, problem.n_weights
        self.complete, self.curvature = problem.complete, problem.curvature
        self._last: Equilibrium | None = None

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``; ``smoothing`` must be positive."""
        problem, omega = self.problem, self.problem.omega
        S, T = problem.design.scores(w)
        self._last = found = problem.games.solve(
            (S + self.lift, T), smoothing=smoothing, tol=problem.tol, n_jobs=problem.n_jobs, start=self._last
        )
        seen = evaluation(
            found, omega, float(w @ problem.moments), lambda q: problem.design.moments(q, omega) - problem.moments
        )
        margins = omega[self._owner] @ (found.q[0] * self.lift).sum(axis=1)
        return seen._replace(entropy=seen.entropy + float(margins))


def fit(model: Any, X: Any, y: Any, node_weight: Any = None, propensities: Any = None) -> Any:
    """Train a NashTagger or NashMarkovNetwork as a structured SVM with its loss, alpha, tol and max_iter."""
    without = [np.zeros(len(labels)) for labels in y]
    problem, facts = model._in_memory(X, y, None, propensities=propensities, node_weight=without)
    networks, k = problem.games, problem.games.k
    counts = np.ones(networks.n) if node_weight is None else np.concatenate(node_weight)
    position = {label: i for i, label in enumerate(facts.words.classes.tolist())}
    codes = np.array([position.get(label, -1) for labels in y for label in np.asarray(labels).tolist()])
    lift = np.where(codes[:, None] >= 0, counts[:, None] * networks.costs.T[codes], 0.0)[networks.order]
    unit = max(float(lift.max()), np.finfo(float).tiny)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap is kept
        trained = train(
            MarginProblem(problem, networks, lift.reshape(-1, k)),
            Descent([unit * s for s in _SCHEDULE], unit * _SCHEDULE[-1]),
            alpha=float(model.alpha),
            tol=model.tol,
            max_iter=model.max_iter,
        )
    model._weights, model.dual_gap_, model.n_iter_ = trained.w, trained.dual_gap, trained.n_iter
    model.objective_ = trained.objective
    model._store(trained.w, facts, problem)
    return model
