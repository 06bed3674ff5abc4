"""Margin rescaling for networks: the structured SVM on trees, and its LP bound on graphs with cycles.

    min_w alpha/2 |w|^2 + mean max_y' <theta_i, y'> + loss(y', y_i) - <theta_i, y_i>,

the losses of eqs. 11 (all labels known) and 15 (some missing: their nodes cost nothing, and the truth's score is the
corrected one) of [franc2022]_. The maximum over labelings is that of a network without a game, whose scores are lifted
by the loss, so the same engine trains it, smoothed as little as its certificate allows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nashlearn.training.designs.networks import NetworkProblem, edge_scores
from nashlearn.training.methods.descent import anneal
from nashlearn.training.objective import Evaluation

__all__ = ["MarginProblem", "fit"]

_SCHEDULE = (0.5, 0.2, 0.1, 0.05)


class MarginProblem:
    """The mean loss of a problem whose networks have no game, with scores lifted by ``lift`` (n, k)."""

    def __init__(self, problem: NetworkProblem, lift: np.ndarray):
        self.problem, self.lift, self.n_weights = problem, lift, problem.n_weights
        self.complete = problem.complete
        self._scores = np.empty_like(lift)

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``; ``smoothing`` must be positive."""
        problem, S = self.problem, self._scores
        split = problem.nodes.n_weights
        problem.nodes.scores(w[:split], S, problem.run)
        S += self.lift
        T = edge_scores(w[split:], problem.edges, problem.networks.k)
        played = problem.networks.play(S, T, smoothing, problem.weight, problem.run, problem.rounds(smoothing))
        moments = problem.moments_of(played)
        margin = float((played.nodes * self.lift).sum())
        penalty = float(w @ moments) + margin - (played.value - played.slack)
        loss, gradient = played.value - float(w @ problem.moments), moments - problem.moments
        return Evaluation(loss, gradient, margin, penalty, problem.drift_of(played))

    def curvature(self) -> np.ndarray:
        """That of the problem without margins."""
        return self.problem.curvature()


def fit(model: Any, X: Any, y: Any, node_weight: Any = None, propensities: Any = None) -> Any:
    """Train a NashTagger or NashMarkovNetwork as a structured SVM with its loss, alpha, tol and max_iter."""
    sizes = [len(labels) for labels in y]
    model._given, model._counts = propensities, [np.zeros(n) for n in sizes]
    problem = model._problem(X, y, None)
    networks, k = problem.networks, problem.networks.k
    counts = np.ones(networks.n) if node_weight is None else np.concatenate(node_weight)
    position = {label: i for i, label in enumerate(model.classes_.tolist())}
    codes = np.array([position.get(label, -1) for labels in y for label in np.asarray(labels).tolist()])
    lift = np.where(codes[:, None] >= 0, counts[:, None] * networks.costs.T[codes], 0.0)[networks.order]
    unit = max(float(lift.max()), np.finfo(float).tiny)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap is kept
        trained = anneal(
            MarginProblem(problem, lift.reshape(-1, k)),
            float(model.alpha),
            schedule=tuple(unit * s for s in _SCHEDULE),
            target=unit * _SCHEDULE[-1],
            tol=model.tol,
            max_iter=model.max_iter,
        )
    model._weights, model.dual_gap_, model.n_iter_ = trained.w, trained.dual_gap, trained.n_iter
    model.objective_ = trained.objective
    model._store(trained.w)
    return model
